package io.kvasir.bench.transfer;

import io.kvasir.bench.transfer.Rounds.Kind;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/**
 * How long pulls of many descriptors take through the transport and through C, transfer by transfer
 * in turn in one process, into the same memory: made, posted and polled.
 *
 * <pre>
 *   sweep DESCRIPTORS DESCRIPTOR_BYTES C_NS JAVA_NS SHARE BYTES    medians; SHARE of C's throughput that Java
 *                                                        has; BYTES allocated for a transfer
 * </pre>
 */
public final class ThroughputSweep {
    private static final int[] COUNTS = {1, 64, 256, 1024};
    private static final int[] LENGTHS = {4 << 10, 16 << 10, 64 << 10, 128 << 10};
    private static final long WARM_UP_NS = 1_000_000_000; // of the smallest, before the first size
    private static final int FEWEST = 61;
    private static final int MOST = 4000;

    private ThroughputSweep() {}

    /**
     * Measures in this process.
     *
     * @param args the compiled {@code nixl_baseline.c}, bytes to move for each size, bytes of the
     *     largest transfer, and of a peer in another process its address and metadata; without them
     *     another agent here stands for it
     */
    public static void main(String[] args) {
        final long bytesPerSize = Long.parseLong(args[1]);
        final long mostBytes = Long.parseLong(args[2]);
        final PairedRun sides =
                PairedRun.open(
                        PairedRun.Layer.TRANSPORT,
                        Path.of(args[0]),
                        mostBytes,
                        PeerMemory.of(args, 3, mostBytes));
        long atFirstNs = WARM_UP_NS;
        for (int length : LENGTHS) {
            for (int count : COUNTS) {
                final long bytes = (long) length * count;
                if (bytes <= mostBytes) {
                    final int transfers =
                            Math.toIntExact(Math.clamp(bytesPerSize / bytes, FEWEST, MOST));
                    measure(sides, count, length, transfers, atFirstNs);
                    atFirstNs = 0;
                }
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // agents end with the process
    }

    private static void measure(
            PairedRun sides, int count, int length, int transfers, long atFirstNs) {
        sides.lists(count, length, indices(count));
        sides.warmUp(Kind.TRANSFER, count, atFirstNs, transfers / 2);
        sides.measure(Kind.TRANSFER, count, transfers);
        System.out.printf(
                Locale.ROOT,
                "sweep %d %d %.0f %.0f %.4f %.3f%n",
                count,
                length,
                sides.c(),
                sides.java(),
                sides.share(),
                sides.allocated());
    }

    /** Every second one, then the others: hardly any neighbours, as in a real pool. */
    static int[] indices(int count) {
        final int half = (count + 1) / 2;
        final int[] indices = new int[count];
        Arrays.setAll(indices, i -> i < half ? 2 * i : 2 * (i - half) + 1);
        return indices;
    }
}
