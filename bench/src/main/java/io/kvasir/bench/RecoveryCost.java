package io.kvasir.bench;

import io.kvasir.pipeline.publish.KvEventPublisher;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RecoveryQuery;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What a relay pays for its local indexer: heap for each block that its engine holds, the time that
 * publishing waits while a dump is made, bytes and heap of the dump. Question answered: how many
 * blocks may a local indexer have, and how long is a worker's event late because of a router that
 * came late?
 *
 * <p>One worker holds so many blocks, in prompts of 256 of which 64 share the first 64, as in
 * {@link SnapshotCost}. Times are wall time and CPU time of the one thread that does all; heap is
 * what is used after collections.
 */
public final class RecoveryCost {
    private static final long WORKER = 1;
    private static final int PROMPT = 256;
    private static final int SHARED = 64;
    private static final int PER_PREFIX = 64;
    private static final int MESSAGE_BYTES = 512 << 10;
    private static final int DUMPS = 7;
    private static final int COLLECTIONS = 4;
    private static final double NS_PER_MS = 1e6;

    /** Sends nothing. */
    private static final class NoTransport implements RouterEventTransport {
        @Override
        public void publish(long workerId, int dpRank, long firstEventId, KvBatch events) {}

        @Override
        public void close() {}
    }

    private RecoveryCost() {}

    /** Held blocks, as many arguments as sizes are wanted; 100,000 twice and 1,000,000 without. */
    public static void main(String[] args) throws IOException {
        final int[] sizes =
                args.length == 0
                        ? new int[] {100_000, 100_000, 1_000_000}
                        : Arrays.stream(args).mapToInt(Integer::parseInt).toArray();
        System.out.println(
                "| held blocks | heap, bytes/block | dump ms: first, wall/CPU | median of "
                        + DUMPS
                        + " | to messages ms | dump, bytes/block | messages | heap with it |");
        for (int blocks : sizes) {
            measure(blocks);
        }
        System.out.printf(
                Locale.ROOT,
                "load of the machine: %.1f%n",
                ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
    }

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static long usedHeap() {
        for (int i = 0; i < COLLECTIONS; i++) {
            System.gc();
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private static void measure(int blocks) throws IOException {
        final long before = usedHeap();
        // one event is remembered: the ring is up to 16 MiB more, whatever the blocks
        final LocalIndexer indexer = new LocalIndexer(WORKER, 0, 1, 1, 1 << 20, 2 * blocks);
        try (KvEventPublisher publisher = new KvEventPublisher(1, new NoTransport(), indexer)) {
            fill(publisher, indexer, blocks);
            final int held = indexer.blocks();
            final long withBlocks = usedHeap() - before;
            final long[] wall = new long[DUMPS + 1];
            final long[] cpu = new long[DUMPS + 1];
            List<byte[]> answer = List.of();
            for (int i = 0; i <= DUMPS; i++) {
                publisher.publishRemoved(-1); // the dump before is of no use any more
                publisher.publishRemoved(-1);
                final long start = System.nanoTime();
                final long cpuStart = cpuNs();
                answer = ask(indexer);
                wall[i] = System.nanoTime() - start;
                cpu[i] = cpuNs() - cpuStart;
            }
            final long start = System.nanoTime();
            long bytes = 0;
            for (byte[] message : answer) {
                bytes += message.length;
            }
            final double encodeMs = (System.nanoTime() - start) / NS_PER_MS;
            final long withDump = usedHeap() - before;
            System.out.printf(
                    Locale.ROOT,
                    "| %,d | %.1f | %.1f/%.1f | %.1f/%.1f | %.1f | %.1f | %d | %.1f |%n",
                    held,
                    withBlocks / (double) held,
                    wall[0] / NS_PER_MS,
                    cpu[0] / NS_PER_MS,
                    median(wall) / NS_PER_MS,
                    median(cpu) / NS_PER_MS,
                    encodeMs,
                    bytes / (double) held,
                    answer.size(),
                    withDump / (double) held);
            if (indexer.counts().dumpsMade() != wall.length) { // and so it is there until now
                throw new IllegalStateException(indexer.counts() + ", wanted " + wall.length);
            }
        }
    }

    /** Of all but the first. */
    private static long median(long[] ns) {
        final long[] sorted = Arrays.copyOfRange(ns, 1, ns.length);
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static List<byte[]> ask(LocalIndexer indexer) {
        return indexer.answer(
                new RecoveryQuery(WORKER, 0, 0, RecoveryQuery.NO_END).toBytes(), MESSAGE_BYTES);
    }

    private static void fill(KvEventPublisher publisher, LocalIndexer indexer, int blocks)
            throws IOException {
        final long[] names = new long[PROMPT];
        final int[] tokens = new int[PROMPT];
        for (long prompt = 0; indexer.blocks() < blocks; prompt++) {
            final long prefix = -2 - prompt / PER_PREFIX * PROMPT;
            final long own = 1 + prompt * PROMPT;
            Arrays.setAll(names, i -> mixed(i < SHARED ? prefix - i : own + i));
            Arrays.setAll(tokens, i -> (int) names[i]);
            publisher.publishStored(tokens, names, null);
        }
    }

    /** Engines name blocks by hashes. */
    private static long mixed(long number) {
        final long spread = number * 0x9E3779B97F4A7C15L;
        return spread ^ spread >>> 32;
    }
}
