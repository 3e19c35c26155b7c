package io.kvasir.bench.transfer;

import com.sun.management.ThreadMXBean;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;

/**
 * How long pulls of many pieces take through the transport: made, posted and polled like those of
 * {@code nixl_baseline.c}, and the same lines printed.
 *
 * <pre>
 *   sweep PIECES PIECE_BYTES NS BYTES    first quartile of the times; BYTES allocated for one
 * </pre>
 */
public final class ThroughputSweep {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int[] COUNTS = {1, 64, 256, 1024};
    private static final int[] LENGTHS = {4 << 10, 16 << 10, 64 << 10, 128 << 10};
    private static final long WARM_UP_NS = 1_000_000_000; // of the smallest, before the first size
    private static final int FEWEST = 15;
    private static final int MOST = 4000;

    private final TransferEnd own;
    private final PeerMemory peer;
    private final PrintStream out;

    private ThroughputSweep(TransferEnd own, PeerMemory peer, PrintStream out) {
        this.own = own;
        this.peer = peer;
        this.out = out;
    }

    /**
     * Measures in this process.
     *
     * @param args bytes to move for each size, bytes of the largest transfer, and of a peer in
     *     another process its address and metadata; without them a second agent here stands for it
     */
    public static void main(String[] args) {
        final long bytesPerSize = Long.parseLong(args[0]);
        final long mostBytes = Long.parseLong(args[1]);
        final ThroughputSweep sweep =
                new ThroughputSweep(
                        TransferEnd.open(TransferEnd.Kind.NIXL, mostBytes),
                        PeerMemory.of(args, 2, mostBytes),
                        System.out);
        long atFirstNs = WARM_UP_NS;
        for (int length : LENGTHS) {
            for (int count : COUNTS) {
                final long bytes = (long) length * count;
                if (bytes <= mostBytes) {
                    final int transfers =
                            Math.toIntExact(Math.clamp(bytesPerSize / bytes, FEWEST, MOST));
                    sweep.measure(count, length, transfers, atFirstNs);
                    atFirstNs = 0;
                }
            }
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // agents end with the process, as in C
    }

    private void measure(int count, int length, int transfers, long atFirstNs) {
        final RequestCalls.OfTransport calls =
                new RequestCalls.OfTransport(own, peer, count, length);
        final int[] places = places(count);
        final long startNs = System.nanoTime();
        for (int i = 0; i < transfers / 2 || System.nanoTime() - startNs < atFirstNs; i++) {
            transfer(calls, places);
        }
        final double[] times = new double[transfers];
        final long before = THREADS.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < transfers; i++) {
            times[i] = transfer(calls, places);
        }
        final long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
        calls.close();
        Arrays.sort(times);
        out.printf(
                Locale.ROOT,
                "sweep %d %d %.0f %.3f%n",
                count,
                length,
                times[transfers / 4],
                (double) allocated / transfers);
    }

    /** Every second one, then the others: hardly any neighbours, as in a real pool. */
    static int[] places(int count) {
        final int half = (count + 1) / 2;
        final int[] places = new int[count];
        Arrays.setAll(places, i -> i < half ? 2 * i : 2 * (i - half) + 1);
        return places;
    }

    private static long transfer(RequestCalls calls, int[] places) {
        final long startNs = System.nanoTime();
        final long request = calls.make(places, places.length, null);
        boolean running = calls.post(request);
        while (running) {
            running = calls.isRunning(request);
        }
        final long tookNs = System.nanoTime() - startNs;
        calls.release(request);
        return tookNs;
    }
}
