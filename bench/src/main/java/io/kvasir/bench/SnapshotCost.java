package io.kvasir.bench;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.index.SlotExport;
import io.kvasir.core.index.SlotImport;
import io.kvasir.core.index.SlotPath;
import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.snapshot.SlotRecords;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Cost of a snapshot and of a restore per held block, the bytes of it, and the longest slice, which
 * is what the events of other workers wait for. Question answered: how far is a restart by logical
 * snapshots from one by mapped files?
 *
 * <p>One worker holds so many blocks, in prompts of 256 of which 64 share the first 64. What the
 * index writer does is done here on one thread and measured in its CPU time, so that other load of
 * the machine counts little.
 */
public final class SnapshotCost {
    private static final int PROMPT = 256;
    private static final int SHARED = 64;
    private static final int PER_PREFIX = 64;
    private static final int SLICE_BLOCKS = 1024; // as the index writer's
    private static final double NS_PER_US = 1e3;
    private static final double NS_PER_MS = 1e6;

    private SnapshotCost() {}

    /** Held blocks, as many arguments as sizes are wanted; 128 Ki twice, 1 Mi, 4 Mi without. */
    public static void main(String[] args) {
        final int[] sizes =
                args.length == 0
                        ? new int[] {1 << 17, 1 << 17, 1 << 20, 1 << 22}
                        : Arrays.stream(args).mapToInt(Integer::parseInt).toArray();
        System.out.println(
                "| held blocks | snapshot ns/block | slice p99/longest µs | bytes/block"
                        + " | restore ns/block | restore ms | chunk p99/longest µs |");
        for (int blocks : sizes) {
            measure(blocks);
        }
    }

    private static long cpuNs() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    private static void measure(int blocks) {
        try (PrefixIndex index =
                new PrefixIndex(new PrefixIndexConfig(2, 2L * blocks, 3L * blocks))) {
            fill(index, blocks);
            final long held = index.heldBlocks(0);
            final List<byte[]> chunks = new ArrayList<>();
            final Costs slices = new Costs();
            final SlotRecords records = new SlotRecords(chunks::add);
            try (SlotExport export = index.export(0)) {
                boolean more = true;
                while (more) {
                    final long start = cpuNs();
                    more = export.show(SLICE_BLOCKS, records);
                    if (!more) {
                        records.finish();
                    }
                    slices.add(cpuNs() - start);
                }
            }
            final Costs parts = new Costs();
            final SlotImport into = index.importInto(1);
            final SlotPath path = new SlotPath();
            for (byte[] chunk : chunks) {
                final long start = cpuNs();
                read(chunk, path, into);
                parts.add(cpuNs() - start);
            }
            into.end(0, 0, CopyRule.PHYSICAL);
            if (index.heldBlocks(1) != held) {
                throw new IllegalStateException("not all of the blocks were restored");
            }
            System.out.printf(
                    Locale.ROOT,
                    "| %,d | %.1f | %s | %.1f | %.1f | %.0f | %s |%n",
                    held,
                    slices.total / (double) held,
                    slices,
                    chunks.stream().mapToLong(chunk -> chunk.length).sum() / (double) held,
                    parts.total / (double) held,
                    parts.total / NS_PER_MS,
                    parts);
        }
    }

    private static void read(byte[] chunk, SlotPath path, SlotImport into) {
        SlotRecords.read(
                chunk,
                path,
                new SlotRecords.Reader() {
                    @Override
                    public boolean path(SlotPath shown) {
                        return into.path(shown);
                    }

                    @Override
                    public void copies(long engineHash, int copies) {
                        into.copies(engineHash, copies);
                    }
                });
    }

    private static void fill(PrefixIndex index, int blocks) {
        final long[] hashes = new long[PROMPT];
        for (long prompt = 0; index.heldBlocks(0) < blocks; prompt++) {
            final long prefix = -1 - prompt / PER_PREFIX * PROMPT;
            final long own = 1 + prompt * PROMPT;
            Arrays.setAll(hashes, i -> i < SHARED ? prefix - i : own + i);
            if (index.store(0, true, 0, hashes, hashes, PROMPT, true) != StoreResult.STORED) {
                throw new IllegalStateException("the index is too small: " + prompt);
            }
        }
    }

    /** What each of many steps has cost. */
    private static final class Costs {
        private final List<Long> costs = new ArrayList<>();
        private long total;

        void add(long ns) {
            costs.add(ns);
            total += ns;
        }

        @Override
        public String toString() {
            final long[] sorted = costs.stream().mapToLong(Long::longValue).sorted().toArray();
            return String.format(
                    Locale.ROOT,
                    "%.0f/%.0f",
                    sorted[sorted.length * 99 / 100] / NS_PER_US,
                    sorted[sorted.length - 1] / NS_PER_US);
        }
    }
}
