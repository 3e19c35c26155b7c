package io.kvasir.opstreams.kvops;

import java.util.Arrays;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A reader beside a writer. The writer applies the stream's events as fast as it can, or at a given
 * rate; the reader asks for the prompts that arrive next in the stream, one after the other without
 * pause, until the writer is through. Each pass has a fresh index; the first is not counted.
 * Answers cannot be checked, as they depend on how far the writer is.
 */
final class ConcurrentReplay {
    private static final int AHEAD = 64; // prompts that the reader is ahead of the writer

    private final ReplayPlan plan;
    private final KvopsStream stream;
    private final LiveMaximum live;
    private final int[] prompts; // operations that are queries, long enough
    private final int[] promptsBefore; // by operation, how many of them come before it

    ConcurrentReplay(ReplayPlan plan, KvopsStream stream, LiveMaximum live) {
        this.plan = plan;
        this.stream = stream;
        this.live = live;
        this.promptsBefore = new int[stream.size()];
        final int[] found = new int[stream.queries()];
        int count = 0;
        for (int i = 0; i < stream.size(); i++) {
            promptsBefore[i] = count;
            if (stream.isQuery(i) && stream.localHashes(i).length >= Math.max(1, plan.depth())) {
                found[count++] = i;
            }
        }
        if (count == 0) {
            throw new IllegalArgumentException(
                    plan.file() + " has no query of " + Math.max(1, plan.depth()) + " blocks");
        }
        this.prompts = Arrays.copyOf(found, count);
    }

    /** Runs all passes. */
    ForkResult run() {
        try (BlockIndex index = newIndex()) {
            new Pass(index, new Latencies()).run();
        }
        final Latencies latencies = new Latencies();
        final Measured measured = new Measured();
        long cpuNs = 0;
        long wallNs = 0;
        long refused = 0;
        boolean seesPreemption = false;
        for (int i = 0; i < plan.passes(); i++) {
            try (BlockIndex index = newIndex()) {
                final Pass pass = new Pass(index, latencies);
                pass.run();
                cpuNs += pass.writerCpuNs;
                wallNs += pass.writerWallNs;
                refused += pass.refused;
                seesPreemption = pass.seesPreemption;
                measured.memory(index);
            }
        }
        return measured.latencies(latencies, seesPreemption)
                .apply(cpuNs, plan.passes() * stream.events(), plan.passes() * stream.eventBlocks())
                .put(Figure.REFUSED_STORES, refused)
                .put(Figure.WALL_S, wallNs / 1e9)
                .with(latencies);
    }

    private BlockIndex newIndex() {
        return Indexes.make(plan, stream.header(), live);
    }

    /** One pass over the stream by two threads. */
    private final class Pass {
        private final BlockIndex index;
        private final Latencies latencies;
        private final CyclicBarrier start = new CyclicBarrier(2);
        private final AtomicInteger position = new AtomicInteger(); // in prompts; writer's
        private volatile boolean written;
        private volatile Throwable failure;
        private long writerCpuNs;
        private long writerWallNs;
        private long pacedBlocks;
        private long refused;
        private boolean seesPreemption;

        Pass(BlockIndex index, Latencies latencies) {
            this.index = index;
            this.latencies = latencies;
        }

        void run() {
            final Thread writer = thread("kvops-writer", this::write);
            final Thread reader = thread("kvops-reader", this::read);
            Threads.joinFully(writer); // the index must outlive both threads, also after an error
            Threads.joinFully(reader);
            if (failure != null) {
                throw new IllegalStateException("a thread of the replay failed", failure);
            }
        }

        private Thread thread(String name, Runnable work) {
            return Thread.ofPlatform()
                    .name(name)
                    .start(
                            () -> {
                                try {
                                    start.await();
                                    work.run();
                                } catch (InterruptedException
                                        | BrokenBarrierException
                                        | RuntimeException
                                        | Error e) {
                                    failure = e;
                                } finally {
                                    written = true; // the other one must not wait for ever
                                }
                            });
        }

        private void write() {
            final ThreadUsage usage = ThreadUsage.ofCurrentThread();
            final double nsPerBlock =
                    plan.blockRate() == 0 ? 0 : TimeUnit.SECONDS.toNanos(1) / plan.blockRate();
            final long startNs = System.nanoTime();
            final long startCpuNs = usage.cpuNs();
            int from = 0;
            for (int i = 0; i < stream.size(); i++) {
                if (stream.isQuery(i)) {
                    apply(from, i, startNs, nsPerBlock);
                    position.setRelease(promptsBefore[i]);
                    from = i + 1;
                }
            }
            apply(from, stream.size(), startNs, nsPerBlock);
            writerCpuNs = usage.cpuNs() - startCpuNs;
            writerWallNs = System.nanoTime() - startNs;
        }

        private void apply(int from, int to, long startNs, double nsPerBlock) {
            if (nsPerBlock == 0) {
                refused += stream.apply(index, from, to);
                return;
            }
            for (int i = from; i < to; i++) {
                while (System.nanoTime() - startNs < (long) (pacedBlocks * nsPerBlock)) {
                    Thread.onSpinWait();
                }
                refused += stream.apply(index, i, i + 1);
                pacedBlocks += stream.eventBlocks(i);
            }
        }

        private void read() {
            final ThreadUsage usage = ThreadUsage.ofCurrentThread();
            seesPreemption = usage.seesPreemption();
            final BlockIndex.Reader reader = index.reader();
            int step = 0;
            do { // once at least, however late this thread gets a core
                final int prompt = position.getAcquire() + step++ % AHEAD;
                query(reader, usage, Math.min(prompt, prompts.length - 1));
            } while (!written);
        }

        private void query(BlockIndex.Reader reader, ThreadUsage usage, int prompt) {
            final long[] hashes = stream.localHashes(prompts[prompt]);
            final int count = plan.depth() == 0 ? hashes.length : plan.depth();
            final long switchesBefore = usage.involuntarySwitches();
            final long startNs = System.nanoTime();
            reader.match(hashes, count);
            final long ns = System.nanoTime() - startNs;
            latencies.record(ns, usage.involuntarySwitches() != switchesBefore);
        }
    }
}
