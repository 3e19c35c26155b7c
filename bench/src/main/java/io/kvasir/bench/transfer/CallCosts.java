package io.kvasir.bench.transfer;

import com.sun.management.ThreadMXBean;

import io.kvasir.panama.NixlAvailability.Available;
import io.kvasir.panama.NixlProbe;

import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * What each call of a request costs through Java: the same calls on the same memory in the same
 * order as {@code nixl_baseline.c} makes, and the same lines printed.
 *
 * <pre>
 *   call NAME DOWNCALLS NS BYTES    first quartile of the rounds' means; BYTES allocated
 * </pre>
 */
public final class CallCosts {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int PIECES = 1024; // of the lists that requests are made of
    private static final int PIECE_BYTES = 64;
    private static final int BATCH = 256; // requests of a round
    private static final int REPEATS = 4096; // of a call that needs no request of its own
    private static final byte[] MESSAGE = new byte[16];

    /** Through what. */
    enum Layer {
        /** {@link io.kvasir.panama.NixlTransfers}. */
        TRANSFERS,
        /** {@link io.kvasir.nixl.transfer.NixlTransport}. */
        TRANSPORT
    }

    private final RequestCalls calls;
    private final long warmUpNs;
    private final double[] times;
    private final PrintStream out;
    private final long[] requests = new long[BATCH];
    private boolean measuring; // false while all calls are warmed up
    private final boolean[] running = new boolean[BATCH];
    private final int[] places = new int[PIECES / 2];

    private CallCosts(RequestCalls calls, long warmUpNs, int rounds, PrintStream out) {
        this.calls = calls;
        this.warmUpNs = warmUpNs;
        this.times = new double[rounds];
        this.out = out;
        Arrays.setAll(places, i -> 2 * i); // no neighbours: nothing to merge
    }

    /**
     * Measures in this process.
     *
     * @param args layer, milliseconds of warm-up of each call, rounds, and of a peer in another
     *     process its address and metadata; without them a second agent here stands for it
     */
    public static void main(String[] args) {
        if (!(NixlProbe.probe() instanceof Available nixl)) {
            throw new IllegalArgumentException(NixlProbe.probe().describe());
        }
        final long bytes = (long) PIECES * PIECE_BYTES;
        final PeerMemory peer = PeerMemory.of(args, 3, bytes);
        final RequestCalls calls =
                switch (Layer.valueOf(args[0])) {
                    case TRANSFERS -> new RequestCalls.OfTransfers(nixl, peer, PIECES, PIECE_BYTES);
                    case TRANSPORT ->
                            new RequestCalls.OfTransport(
                                    TransferEnd.open(TransferEnd.Kind.NIXL, bytes),
                                    peer,
                                    PIECES,
                                    PIECE_BYTES);
                };
        final CallCosts costs =
                new CallCosts(
                        calls,
                        TimeUnit.MILLISECONDS.toNanos(Long.parseLong(args[1])),
                        Integer.parseInt(args[2]),
                        System.out);
        costs.measureAll(nixl);
        costs.measuring = true;
        costs.measureAll(nixl);
        System.out.flush();
        Runtime.getRuntime().halt(0); // agents end with the process, as in C
    }

    private void measureAll(Available nixl) {
        measure("prepare_a_piece", 1, PIECES, this::prepare);
        measure("make_1", 1, BATCH, () -> make(1, null));
        measure("make_16", 1, BATCH, () -> make(16, null));
        measure("make_64", 1, BATCH, () -> make(64, null));
        measure("make_256", 1, BATCH, () -> make(256, null));
        measure("make_1_notified", 3, BATCH, () -> make(1, MESSAGE));
        measure("release", 2, BATCH, this::release);
        measure("post_64_B", 1, BATCH, this::post);
        measure("notifications_none", 2, REPEATS, this::notifications);
        requests[0] = calls.make(places, 1, null);
        running[0] = calls.post(requests[0]);
        await(0);
        measure("status_done", 1, REPEATS, () -> status(false));
        calls.release(requests[0]);
        stick(nixl)
                .ifPresent(
                        stick -> {
                            stick.accept(true);
                            requests[0] = calls.make(places, 1, null);
                            calls.post(requests[0]);
                            measure("status_running", 1, REPEATS, () -> status(true));
                            stick.accept(false);
                            calls.release(requests[0]);
                        });
    }

    /** Some calls of one kind. */
    @FunctionalInterface
    private interface Round {
        /** Nanoseconds of all of them. */
        long run();
    }

    private void measure(String name, int downcalls, int callsOfRound, Round round) {
        final long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < warmUpNs) {
            round.run();
        }
        if (!measuring) {
            return;
        }
        final long before = THREADS.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < times.length; i++) {
            times[i] = (double) round.run() / callsOfRound;
        }
        final long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
        Arrays.sort(times);
        out.printf(
                Locale.ROOT,
                "call %s %d %.2f %.3f%n",
                name,
                downcalls,
                times[times.length / 4],
                (double) allocated / times.length / callsOfRound);
    }

    private long prepare() {
        final long startNs = System.nanoTime();
        final long list = calls.preparePeer();
        final long tookNs = System.nanoTime() - startNs;
        calls.releaseList(list);
        return tookNs;
    }

    private long make(int count, byte[] notification) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(places, count, notification);
        }
        final long tookNs = System.nanoTime() - startNs;
        for (int i = 0; i < BATCH; i++) {
            calls.release(requests[i]);
        }
        return tookNs;
    }

    private long release() {
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(places, 1, null);
        }
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            calls.release(requests[i]);
        }
        return System.nanoTime() - startNs;
    }

    private long post() {
        for (int i = 0; i < BATCH; i++) {
            requests[i] = calls.make(places, 1, null);
        }
        final long startNs = System.nanoTime();
        for (int i = 0; i < BATCH; i++) {
            running[i] = calls.post(requests[i]);
        }
        final long tookNs = System.nanoTime() - startNs;
        for (int i = 0; i < BATCH; i++) {
            await(i);
            calls.release(requests[i]);
        }
        return tookNs;
    }

    private void await(int i) {
        while (running[i]) {
            running[i] = calls.isRunning(requests[i]);
        }
    }

    private long status(boolean expected) {
        final long startNs = System.nanoTime();
        for (int i = 0; i < REPEATS; i++) {
            if (calls.isRunning(requests[0]) != expected) {
                throw new IllegalStateException("a request is running: " + !expected);
            }
        }
        return System.nanoTime() - startNs;
    }

    private long notifications() {
        final long startNs = System.nanoTime();
        for (int i = 0; i < REPEATS; i++) {
            if (calls.notifications() != 0) {
                throw new IllegalStateException("a notification came that nobody sent");
            }
        }
        return System.nanoTime() - startNs;
    }

    /** Makes all requests hang. */
    @FunctionalInterface
    private interface Stick {
        void accept(boolean stuck);
    }

    /** The loopback library's fault; absent in NIXL. */
    @SuppressWarnings("restricted") // the library is loaded already; this calls one more function
    private static Optional<Stick> stick(Available nixl) {
        return SymbolLookup.libraryLookup(nixl.path(), Arena.global())
                .find("kvasir_loopback_stick")
                .map(
                        symbol ->
                                Linker.nativeLinker()
                                        .downcallHandle(
                                                symbol,
                                                FunctionDescriptor.of(
                                                        ValueLayout.JAVA_INT,
                                                        ValueLayout.ADDRESS,
                                                        ValueLayout.JAVA_BOOLEAN)))
                .map(
                        call ->
                                stuck -> {
                                    try {
                                        final int status =
                                                (int) call.invokeExact(MemorySegment.NULL, stuck);
                                        if (status != 0) {
                                            throw new IllegalStateException("stick: " + status);
                                        }
                                    } catch (RuntimeException e) {
                                        throw e;
                                    } catch (Throwable t) {
                                        throw new AssertionError("C does not throw", t);
                                    }
                                });
    }
}
