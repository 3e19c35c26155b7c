package io.kvasir.bench.transfer;

import io.kvasir.nixl.probe.ChildJvm;
import io.kvasir.nixl.probe.TransferEnd;

import java.io.IOException;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * How much of a copy hides behind the computation of layers: a prefill that pushes each layer while
 * the next is computed, and a decode that computes each layer while the next is pulled. Over NIXL
 * where it is there and over shared memory, to a second process, several processes each.
 *
 * <p>Hidden is {@code 1 - (pipelined - compute) / copy}, of each round; the median counts. With a
 * copy that takes no longer than the computation, what cannot hide is the last layer's copy (the
 * first one's, when pulling): of 32 layers 3 %.
 */
public final class Pipelining {
    private static final int DEFAULT_FORKS = 3;
    private static final int DEFAULT_LAYERS = 32;
    private static final int ROUNDS = 61;
    private static final long BLOCK_BYTES = 64 << 10;
    private static final int[] LAYER_BLOCKS = {4, 16};
    private static final List<String> WAYS = List.of("compute", "copy", "in turn", "pipelined");
    private static final double NS_PER_MS = 1e6;

    private Pipelining() {}

    /**
     * Measures and prints a table for each transport.
     *
     * @param args processes for each transport (3) and layers (32), as far as given
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        final int forks = args.length > 0 ? Integer.parseInt(args[0]) : DEFAULT_FORKS;
        final int layers = args.length > 1 ? Integer.parseInt(args[1]) : DEFAULT_LAYERS;
        for (TransferEnd.Kind kind : TransferEnd.Kind.values()) {
            if (kind == TransferEnd.Kind.NIXL && TransferEnd.best() != kind) {
                System.out.println("NIXL is not there: shared memory only");
            } else {
                measure(kind, forks, ROUNDS, layers, BLOCK_BYTES, LAYER_BLOCKS, System.out);
            }
        }
    }

    static void measure(
            TransferEnd.Kind kind,
            int forks,
            int rounds,
            int layers,
            long blockBytes,
            int[] layerBlocks,
            PrintStream out)
            throws IOException, InterruptedException {
        final List<String> arguments =
                new ArrayList<>(
                        List.of(
                                kind.name(),
                                Integer.toString(rounds),
                                Integer.toString(layers),
                                Long.toString(blockBytes)));
        for (int blocks : layerBlocks) {
            arguments.add(Integer.toString(blocks));
        }
        final Samples samples = new Samples();
        for (int fork = 0; fork < forks; fork++) {
            final List<String> command =
                    ChildJvm.command(PipeliningRun.class, arguments.toArray(String[]::new));
            for (String[] words : MeasuringProcess.run(command, Map.of())) {
                if (words[0].equals("case")) {
                    add(samples, words);
                }
            }
        }
        print(kind, forks, layers, samples, out);
    }

    private static void add(Samples samples, String[] words) {
        final String name = "%-5s %9s %12s".formatted(words[1], words[2], words[3]);
        final double[] ns = new double[WAYS.size()];
        for (int way = 0; way < ns.length; way++) {
            ns[way] = Double.parseDouble(words[4 + way]);
            samples.add(name, WAYS.get(way), ns[way] / NS_PER_MS);
        }
        samples.add(name, "hidden", Double.parseDouble(words[4 + ns.length]));
    }

    private static void print(
            TransferEnd.Kind kind, int forks, int layers, Samples samples, PrintStream out) {
        out.printf(
                "%s, %d layers, %d processes: medians in ms, share hidden (lowest–highest)%n",
                kind, layers, forks);
        out.printf(
                "%-5s %9s %12s %9s %9s %9s %9s %s%n",
                "", "layer B", "copy/compute", "compute", "copy", "in turn", "pipelined", "hidden");
        for (String name : samples.names()) {
            out.print(name);
            for (String way : WAYS) {
                out.printf(Locale.ROOT, " %9.2f", samples.median(name, way));
            }
            out.println(" " + Samples.spread(samples.of(name, "hidden"), 3));
        }
        out.println();
    }
}
