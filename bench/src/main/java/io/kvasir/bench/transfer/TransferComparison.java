package io.kvasir.bench.transfer;

import io.kvasir.panama.NixlAvailability.Available;
import io.kvasir.panama.NixlProbe;

import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * NIXL's calls and transfers through C and through Java, in turns, each time in processes of its
 * own. Question answered: what does a call cost that is made from Java, and is a transfer as fast?
 *
 * <p>The same peer process serves both: it registers memory, and looks for messages every 10 µs and
 * a little. The loopback library moves nothing between processes; there a second agent inside the
 * measured process stands for it, and small transfers show what comes on top of a copy in the
 * cache.
 */
public final class TransferComparison {
    private static final String C = "C";
    private static final String TRANSFERS = CallCosts.Layer.TRANSFERS.name();
    private static final String TRANSPORT = CallCosts.Layer.TRANSPORT.name();
    private static final String NONE = "-";
    private static final int DEFAULT_TURNS = 3;
    private static final int NOT_THERE = 3;

    /**
     * Keeps malloc from giving a round's requests back to the system, so that the next round begins
     * with page faults: whether it does depends on what else the process has freed.
     */
    private static final Map<String, String> KEEP_MEMORY =
            Map.of(
                    "MALLOC_TRIM_THRESHOLD_", Integer.toString(1 << 30),
                    "MALLOC_MMAP_THRESHOLD_", Integer.toString(32 << 20));

    /**
     * How much is measured.
     *
     * @param turns processes of each program
     * @param warmUpMs of each call
     * @param rounds of each call
     * @param bytesPerSize moved for each size of transfer; 0 measures calls only
     * @param mostBytes of a transfer; also what the peer registers
     */
    record Extent(int turns, int warmUpMs, int rounds, long bytesPerSize, long mostBytes) {
        static final Extent USUAL = new Extent(DEFAULT_TURNS, 100, 101, 128L << 20, 128L << 20);

        static final Extent LOOPBACK = new Extent(DEFAULT_TURNS, 100, 101, 0, 64 << 10);

        Extent withTurns(int other) {
            return new Extent(other, warmUpMs, rounds, bytesPerSize, mostBytes);
        }
    }

    private final String baseline;
    private final String library;
    private final boolean isReal;
    private final Extent extent;
    private final Samples calls = new Samples();
    private final Samples allocated = new Samples();
    private final Samples sweep = new Samples();
    private final Map<String, Integer> downcalls = new HashMap<>();

    private TransferComparison(String baseline, String library, boolean isReal, Extent extent) {
        this.baseline = baseline;
        this.library = library;
        this.isReal = isReal;
        this.extent = extent;
    }

    /**
     * Measures and prints the tables.
     *
     * @param args path of the compiled {@code nixl_baseline.c}; path of the loopback library or
     *     {@code -}; turns, 3 without
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        if (!(NixlProbe.probe() instanceof Available nixl)) {
            System.err.println("bench: " + NixlProbe.probe().describe());
            System.exit(NOT_THERE);
            return;
        }
        final int turns = args.length > 2 ? Integer.parseInt(args[2]) : DEFAULT_TURNS;
        if (!args[1].equals(NONE)) {
            measure(args[0], args[1], false, Extent.LOOPBACK.withTurns(turns), System.out);
        }
        measure(args[0], nixl.path(), !nixl.loopback(), Extent.USUAL.withTurns(turns), System.out);
    }

    static void measure(
            String baseline, String library, boolean isReal, Extent extent, PrintStream out)
            throws IOException, InterruptedException {
        final TransferComparison comparison =
                new TransferComparison(baseline, library, isReal, extent);
        for (int turn = 0; turn < extent.turns; turn++) {
            final List<String> programs = new ArrayList<>(List.of(C, TRANSFERS, TRANSPORT));
            Collections.rotate(programs, turn);
            for (String program : programs) {
                comparison.run(program, "calls");
            }
            for (String program : programs) {
                if (!program.equals(TRANSFERS) && extent.bytesPerSize > 0) {
                    comparison.run(program, "sweep");
                }
            }
        }
        comparison.print(out);
    }

    private void run(String program, String what) throws IOException, InterruptedException {
        if (!isReal) {
            record(program, command(program, what));
            return;
        }
        try (TransferPeer peer = TransferPeer.start(TransferEnd.Kind.NIXL, extent.mostBytes)) {
            final List<String> command = command(program, what);
            command.add(Long.toString(peer.base()));
            command.add(HexFormat.of().formatHex(peer.metadata()));
            record(program, command);
        }
    }

    private List<String> command(String program, String what) {
        final boolean isC = program.equals(C);
        final List<String> command = new ArrayList<>();
        if (what.equals("calls")) {
            final String warmUp = Integer.toString(extent.warmUpMs);
            final String rounds = Integer.toString(extent.rounds);
            command.addAll(
                    isC
                            ? List.of(baseline, library, what, warmUp, rounds)
                            : JavaProcess.command(CallCosts.class, program, warmUp, rounds));
        } else {
            final String perSize = Long.toString(extent.bytesPerSize);
            final String most = Long.toString(extent.mostBytes);
            command.addAll(
                    isC
                            ? List.of(baseline, library, what, perSize, most)
                            : JavaProcess.command(ThroughputSweep.class, perSize, most));
        }
        return command;
    }

    private void record(String program, List<String> command)
            throws IOException, InterruptedException {
        final Map<String, String> environment = new HashMap<>(KEEP_MEMORY);
        environment.put(NixlProbe.LIBRARY_VARIABLE, library);
        for (String[] words : MeasuringProcess.run(command, environment)) {
            if (words[0].equals("call")) {
                downcalls.put(words[1], Integer.parseInt(words[2]));
                calls.add(words[1], program, Double.parseDouble(words[3]));
                allocated.add(words[1], program, Double.parseDouble(words[4]));
            } else if (words[0].equals("sweep")) {
                final String size = words[1] + " x " + words[2];
                final double bytes = Double.parseDouble(words[1]) * Double.parseDouble(words[2]);
                sweep.add(size, program, bytes / Double.parseDouble(words[3]));
                allocated.add(size, program, Double.parseDouble(words[4]));
            }
        }
    }

    private void print(PrintStream out) {
        out.printf("%s, %d turns: median (lowest–highest)%n", library, extent.turns);
        out.printf(
                "%-20s %9s %26s %26s %10s %8s %26s %10s %8s%n",
                "call",
                "downcalls",
                "C ns",
                "NixlTransfers ns",
                "each more",
                "B/op",
                "NixlTransport ns",
                "each more",
                "B/op");
        for (String name : calls.names()) {
            out.printf(
                    Locale.ROOT,
                    "%-20s %9d %26s %26s %10.1f %8.1f %26s %10.1f %8.1f%n",
                    name,
                    downcalls.get(name),
                    Samples.spread(calls.of(name, C), 1),
                    Samples.spread(calls.of(name, TRANSFERS), 1),
                    more(name, TRANSFERS),
                    allocated.median(name, TRANSFERS),
                    Samples.spread(calls.of(name, TRANSPORT), 1),
                    more(name, TRANSPORT),
                    allocated.median(name, TRANSPORT));
        }
        out.println();
        if (sweep.names().isEmpty()) {
            return;
        }
        out.printf(
                "%-16s %24s %24s %20s %8s %8s%n",
                "pieces x bytes", "C GB/s", "NixlTransport GB/s", "ratio", "of best", "B/op");
        for (String size : sweep.names()) {
            out.printf(
                    Locale.ROOT,
                    "%-16s %24s %24s %20s %8.3f %8.1f%n",
                    size,
                    Samples.spread(sweep.of(size, C), 2),
                    Samples.spread(sweep.of(size, TRANSPORT), 2),
                    Samples.spread(ratios(size), 2),
                    Collections.max(sweep.of(size, TRANSPORT)) / Collections.max(sweep.of(size, C)),
                    allocated.median(size, TRANSPORT));
        }
        out.println();
    }

    /**
     * Nanoseconds over C for each downcall, from the fastest turn of each: other programs only add.
     */
    private double more(String name, String program) {
        final double java = Collections.min(calls.of(name, program));
        final double c = Collections.min(calls.of(name, C));
        return (java - c) / downcalls.get(name);
    }

    /** Java's share of C's throughput, turn by turn. */
    private List<Double> ratios(String size) {
        final List<Double> java = sweep.of(size, TRANSPORT);
        final List<Double> c = sweep.of(size, C);
        final List<Double> ratios = new ArrayList<>();
        for (int turn = 0; turn < java.size(); turn++) {
            ratios.add(java.get(turn) / c.get(turn));
        }
        return ratios;
    }
}
