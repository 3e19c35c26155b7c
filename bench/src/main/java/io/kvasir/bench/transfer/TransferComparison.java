package io.kvasir.bench.transfer;

import io.kvasir.bench.transfer.PairedRun.Layer;
import io.kvasir.nixl.probe.ChildJvm;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.probe.TransferPeer;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlProbe;

import java.io.IOException;
import java.io.PrintStream;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * NIXL's calls and transfers through C and through Java, in turn in one process each. Question
 * answered: what does a call cost that is made from Java, and is a transfer as fast?
 *
 * <p>The peer is another process: it registers memory, and polls for messages every 10 µs and a
 * little. The loopback library moves nothing between processes; there another agent inside the
 * measured process stands for it, and small transfers show what comes on top of a copy in the
 * cache.
 */
public final class TransferComparison {
    private static final String C = "C";
    private static final String JAVA = "Java";
    private static final String MORE = "more";
    private static final String SHARE = "share";
    private static final String ALLOCATED = "allocated";
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
     * @param turns processes of each layer
     * @param warmUpMs of each call
     * @param rounds of each call and side
     * @param bytesPerSize moved by each side for each size of transfer; 0 measures calls only
     * @param mostBytes of a transfer; also what the peer registers
     */
    record Extent(int turns, int warmUpMs, int rounds, long bytesPerSize, long mostBytes) {
        static final Extent USUAL = new Extent(DEFAULT_TURNS, 200, 501, 256L << 20, 128L << 20);

        static final Extent LOOPBACK = new Extent(DEFAULT_TURNS, 200, 501, 0, 64 << 10);

        Extent withTurns(int other) {
            return new Extent(other, warmUpMs, rounds, bytesPerSize, mostBytes);
        }
    }

    private final String baseline;
    private final String library;
    private final boolean isReal;
    private final Extent extent;
    private final Map<Layer, Samples> calls = new EnumMap<>(Layer.class);
    private final Samples sweep = new Samples();

    private TransferComparison(String baseline, String library, boolean isReal, Extent extent) {
        this.baseline = baseline;
        this.library = library;
        this.isReal = isReal;
        this.extent = extent;
        for (Layer layer : Layer.values()) {
            calls.put(layer, new Samples());
        }
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
            for (Layer layer : Layer.values()) {
                comparison.runCalls(layer);
            }
            if (extent.bytesPerSize > 0) {
                comparison.runSweep();
            }
        }
        comparison.print(out);
    }

    private void runCalls(Layer layer) throws IOException, InterruptedException {
        final Samples samples = calls.get(layer);
        for (String[] words :
                run(
                        CallCosts.class,
                        baseline,
                        layer.name(),
                        Integer.toString(extent.warmUpMs),
                        Integer.toString(extent.rounds))) {
            if (words[0].equals("call")) {
                add(samples, words[1], words, 2, MORE);
            }
        }
    }

    private void runSweep() throws IOException, InterruptedException {
        for (String[] words :
                run(
                        ThroughputSweep.class,
                        baseline,
                        Long.toString(extent.bytesPerSize),
                        Long.toString(extent.mostBytes))) {
            if (words[0].equals("sweep")) {
                add(sweep, words[1] + " x " + words[2], words, 3, SHARE);
            }
        }
    }

    private static void add(Samples samples, String name, String[] words, int at, String compared) {
        samples.add(name, C, Double.parseDouble(words[at]));
        samples.add(name, JAVA, Double.parseDouble(words[at + 1]));
        samples.add(name, compared, Double.parseDouble(words[at + 2]));
        samples.add(name, ALLOCATED, Double.parseDouble(words[at + 3]));
    }

    private List<String[]> run(Class<?> program, String... arguments)
            throws IOException, InterruptedException {
        final Map<String, String> environment = new HashMap<>(KEEP_MEMORY);
        environment.put(NixlProbe.LIBRARY_VARIABLE, library);
        final List<String> command = ChildJvm.command(program, arguments);
        if (!isReal) {
            return MeasuringProcess.run(command, environment);
        }
        try (TransferPeer peer = TransferPeer.start(TransferEnd.Kind.NIXL, extent.mostBytes)) {
            command.add(Long.toString(peer.base()));
            command.add(HexFormat.of().formatHex(peer.metadata()));
            return MeasuringProcess.run(command, environment);
        }
    }

    private void print(PrintStream out) {
        out.printf("%s, %d turns: medians, median (lowest–highest)%n", library, extent.turns);
        calls.forEach((layer, samples) -> printCalls(out, layer, samples));
        if (!sweep.names().isEmpty()) {
            printSweep(out);
        }
    }

    private static void printCalls(PrintStream out, Layer layer, Samples samples) {
        out.printf(
                "%-20s %9s %9s %28s %8s%n", layer, "C ns", "Java ns", "more ns a downcall", "B/op");
        for (String name : samples.names()) {
            out.printf(
                    Locale.ROOT,
                    "%-20s %9.1f %9.1f %28s %8.1f%n",
                    name,
                    samples.median(name, C),
                    samples.median(name, JAVA),
                    Samples.spread(samples.of(name, MORE), 1),
                    samples.median(name, ALLOCATED));
        }
        out.println();
    }

    private void printSweep(PrintStream out) {
        out.printf(
                "%-20s %9s %9s %28s %8s%n",
                "descriptors x bytes", "C GB/s", "Java GB/s", "Java's share", "B/op");
        for (String size : sweep.names()) {
            final String[] factors = size.split(" x ", 2);
            final double bytes = Double.parseDouble(factors[0]) * Double.parseDouble(factors[1]);
            out.printf(
                    Locale.ROOT,
                    "%-20s %9.2f %9.2f %28s %8.1f%n",
                    size,
                    bytes / sweep.median(size, C),
                    bytes / sweep.median(size, JAVA),
                    Samples.spread(sweep.of(size, SHARE), 3),
                    sweep.median(size, ALLOCATED));
        }
        out.println();
    }
}
