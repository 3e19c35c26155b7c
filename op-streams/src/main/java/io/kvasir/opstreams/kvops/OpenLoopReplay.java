package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Open loop: one thread applies each event, another asks each query, at the stream's times divided
 * by the speed-up, whether or not the earlier ones are done. Latencies count from the time that a
 * query was due, so a stall is paid by everything that waited for it. The clock stops when the last
 * event is applied. Answers cannot be checked.
 */
final class OpenLoopReplay {
    /** Length of a run whose plan names no speed-up, in seconds. */
    static final int DEFAULT_SECONDS = 10;

    private static final long SPIN_NS = TimeUnit.MICROSECONDS.toNanos(60); // a park's overshoot
    private static final long HEAD_START_NS = TimeUnit.MILLISECONDS.toNanos(20);

    private final KvopsStream stream;
    private final BlockIndex index;
    private final double nsPerStreamUs;
    private final long firstUs;
    private final Latencies latencies = new Latencies();
    private final Histogram eventLag = Latencies.histogram();
    private final long startNs;
    private volatile Throwable failure;
    private long writerCpuNs;
    private long wallNs;
    private long drainNs;
    private long refused;

    OpenLoopReplay(ReplayPlan plan, KvopsStream stream, BlockIndex index) {
        this.stream = stream;
        this.index = index;
        final int size = stream.size();
        this.firstUs = size == 0 ? 0 : stream.timeUs(0);
        final long spanUs = size == 0 ? 0 : stream.timeUs(size - 1) - firstUs;
        final double speedUp =
                plan.speedUp() > 0
                        ? plan.speedUp()
                        : Math.max(
                                1e-9, (double) spanUs / TimeUnit.SECONDS.toMicros(DEFAULT_SECONDS));
        this.nsPerStreamUs = TimeUnit.MICROSECONDS.toNanos(1) / speedUp;
        this.startNs = System.nanoTime() + HEAD_START_NS;
    }

    /** Runs both threads to the end of the stream; to be called once. */
    ForkResult run() {
        final ThreadUsage usage = ThreadUsage.ofCurrentThread();
        final Thread writer = Thread.ofPlatform().name("kvops-writer").start(this::write);
        try {
            query(usage);
        } finally {
            Threads.joinFully(writer); // the index must outlive it
        }
        if (failure != null) {
            throw new IllegalStateException("the writer of the replay failed", failure);
        }
        return new Measured()
                .latencies(latencies, usage.seesPreemption())
                .memory(index)
                .apply(writerCpuNs, stream.events(), stream.eventBlocks())
                .put(Figure.REFUSED_STORES, refused)
                .put(Figure.WALL_S, wallNs / 1e9)
                .putUs(Figure.EVENT_LAG_P50_US, eventLag.getValueAtPercentile(50))
                .putUs(Figure.EVENT_LAG_P99_US, eventLag.getValueAtPercentile(99))
                .put(Figure.DRAIN_MS, drainNs / 1e6)
                .with(latencies);
    }

    private long dueNs(int operation) {
        return startNs + (long) ((stream.timeUs(operation) - firstUs) * nsPerStreamUs);
    }

    private static void awaitTime(long dueNs) {
        for (long left = dueNs - System.nanoTime(); left > 0; left = dueNs - System.nanoTime()) {
            if (left > SPIN_NS) {
                LockSupport.parkNanos(left - SPIN_NS);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    private void write() {
        try {
            final ThreadUsage usage = ThreadUsage.ofCurrentThread();
            final long cpuBefore = usage.cpuNs();
            long lastDueNs = startNs;
            for (int i = 0; i < stream.size(); i++) {
                if (!stream.isQuery(i)) {
                    lastDueNs = dueNs(i);
                    awaitTime(lastDueNs);
                    refused += stream.apply(index, i, i + 1);
                    eventLag.recordValue(Latencies.clamped(System.nanoTime() - lastDueNs));
                }
            }
            final long endNs = System.nanoTime();
            writerCpuNs = usage.cpuNs() - cpuBefore;
            wallNs = endNs - startNs;
            drainNs = Math.max(0, endNs - lastDueNs);
        } catch (RuntimeException | Error e) {
            failure = e;
        }
    }

    private void query(ThreadUsage usage) {
        final BlockIndex.Reader reader = index.reader();
        for (int i = 0; i < stream.size() && failure == null; i++) {
            if (stream.isQuery(i)) {
                final long[] prompt = stream.localHashes(i);
                final long dueNs = dueNs(i);
                awaitTime(dueNs - SPIN_NS);
                final long switchesBefore = usage.involuntarySwitches();
                awaitTime(dueNs);
                reader.match(prompt, prompt.length);
                final long ns = System.nanoTime() - dueNs;
                latencies.record(ns, usage.involuntarySwitches() != switchesBefore);
            }
        }
    }
}
