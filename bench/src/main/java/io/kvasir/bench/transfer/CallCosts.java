package io.kvasir.bench.transfer;

import io.kvasir.bench.transfer.Rounds.Kind;
import io.kvasir.panama.nixl.NixlAvailability.Available;

import java.io.PrintStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * What each call of a request costs through Java and through C, in turn in one process.
 *
 * <pre>
 *   call NAME C_NS JAVA_NS MORE_NS BYTES    medians; MORE for each downcall; BYTES allocated
 * </pre>
 */
public final class CallCosts {
    private static final int DESCRIPTORS = 1024; // of the lists that requests are made of
    private static final int DESCRIPTOR_BYTES = 64;

    private final PairedRun sides;
    private final long warmUpNs;
    private final int rounds;
    private final PrintStream out;
    private boolean measuring; // false while all calls are warmed up

    private CallCosts(PairedRun sides, long warmUpNs, int rounds, PrintStream out) {
        this.sides = sides;
        this.warmUpNs = warmUpNs;
        this.rounds = rounds;
        this.out = out;
        final int[] indices = new int[DESCRIPTORS / 2];
        Arrays.setAll(indices, i -> 2 * i); // no neighbours: nothing to merge
        sides.lists(DESCRIPTORS, DESCRIPTOR_BYTES, indices);
    }

    /**
     * Measures in this process.
     *
     * @param args the compiled {@code nixl_baseline.c}, Java's layer, milliseconds of warm-up of
     *     each call, rounds, and of a peer in another process its address and metadata; without
     *     them another agent here stands for it
     */
    public static void main(String[] args) {
        final long bytes = (long) DESCRIPTORS * DESCRIPTOR_BYTES;
        final PairedRun sides =
                PairedRun.open(
                        PairedRun.Layer.valueOf(args[1]),
                        Path.of(args[0]),
                        bytes,
                        PeerMemory.of(args, 4, bytes));
        final CallCosts costs =
                new CallCosts(
                        sides,
                        TimeUnit.MILLISECONDS.toNanos(Long.parseLong(args[2])),
                        Integer.parseInt(args[3]),
                        System.out);
        costs.measureAll();
        costs.measuring = true;
        costs.measureAll();
        System.out.flush();
        Runtime.getRuntime().halt(0); // agents end with the process
    }

    private void measureAll() {
        measure("prepare_a_descriptor", Kind.PREPARE, DESCRIPTORS, 1, DESCRIPTORS);
        measure("make_1", Kind.MAKE, 1, 1, Rounds.BATCH);
        measure("make_16", Kind.MAKE, 16, 1, Rounds.BATCH);
        measure("make_64", Kind.MAKE, 64, 1, Rounds.BATCH);
        measure("make_256", Kind.MAKE, 256, 1, Rounds.BATCH);
        measure("make_1_notified", Kind.MAKE_NOTIFIED, 1, 3, Rounds.BATCH);
        measure("release", Kind.RELEASE, 1, 2, Rounds.BATCH);
        measure("post_64_B", Kind.POST, 1, 1, Rounds.BATCH);
        measure("notifications_none", Kind.NOTIFICATIONS, 0, 2, Rounds.REPEATS);
        sides.hold(false);
        measure("status_done", Kind.STATUS, 0, 1, Rounds.REPEATS);
        sides.drop();
        stick(sides.nixl()).ifPresent(this::measureRunning);
    }

    private void measureRunning(Stick stick) {
        stick.accept(true);
        sides.hold(true);
        measure("status_running", Kind.STATUS, 1, 1, Rounds.REPEATS);
        stick.accept(false);
        sides.drop();
    }

    private void measure(String name, Kind kind, int argument, int downcalls, int calls) {
        sides.warmUp(kind, argument, warmUpNs, 1);
        if (!measuring) {
            return;
        }
        sides.measure(kind, argument, rounds);
        out.printf(
                Locale.ROOT,
                "call %s %.2f %.2f %.2f %.3f%n",
                name,
                sides.c() / calls,
                sides.java() / calls,
                sides.more() / calls / downcalls,
                sides.allocated() / calls);
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
