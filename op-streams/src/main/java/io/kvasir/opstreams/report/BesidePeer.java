package io.kvasir.opstreams.report;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.LiveMaximum;
import io.kvasir.opstreams.kvops.ReplayPlan;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Program: replays streams against the product's index and a peer's in turn, a fresh process each,
 * and prints what one takes of the other. Whatever else the machine does falls on both, so the
 * ratio of two neighbours says more than two figures of different hours.
 */
public final class BesidePeer {
    static final String USAGE =
            "usage: bench/run beside-peer STREAM.kvops... [--peer PROGRAM (KVASIR_PEER)]"
                    + " [--name INDEX (smg-into)] [--turns N (3)] [--warm-up-seconds S (30)]"
                    + " [--jvm-option OPT]...";

    private static final String NAME = "smg-into";
    private static final double NS_PER_US = 1e3;
    private static final String ROW = "%-22s %-16s %9s %-19s %9s %-19s %7s%n";

    private final List<Path> streams = new ArrayList<>();
    private final List<String> jvmOptions = new ArrayList<>();
    private final PrintStream out;
    private final PrintStream err;
    private String program;
    private String name = NAME;
    private int turns = 3;
    private double warmUpSeconds = ReplayPlan.WARM_UP_SECONDS;
    private long wrong;

    private BesidePeer(PrintStream out, PrintStream err) {
        this.out = out;
        this.err = err;
    }

    /**
     * Compares. Ends with 0, 1 when an answer of the product's index was wrong, 2 for a wrong
     * command line, 3 when a stream cannot be read or measured, or there is no peer.
     *
     * @param args streams and options
     */
    public static void main(String[] args) throws InterruptedException {
        final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.exit(run(List.of(args), System.getenv("KVASIR_PEER"), out, System.err));
    }

    static int run(List<String> args, String defaultProgram, PrintStream out, PrintStream err)
            throws InterruptedException {
        final BesidePeer program = new BesidePeer(out, err);
        program.program = defaultProgram;
        try {
            program.parse(args);
            program.compare();
            return program.wrong == 0 ? 0 : 1;
        } catch (IllegalArgumentException e) {
            err.println("bench beside-peer: " + e.getMessage());
            err.println(USAGE);
            return 2;
        } catch (IOException e) {
            err.println("bench beside-peer: " + e);
            return 3;
        }
    }

    private void parse(List<String> args) {
        for (int i = 0; i < args.size(); i++) {
            final String word = args.get(i);
            if (!word.startsWith("--")) {
                streams.add(Path.of(word));
                continue;
            }
            if (i + 1 == args.size()) {
                throw new IllegalArgumentException(word + " needs a value");
            }
            final String value = args.get(++i);
            switch (word) {
                case "--peer" -> program = value;
                case "--name" -> name = value;
                case "--turns" -> turns = positive(word, value);
                case "--warm-up-seconds" -> warmUpSeconds = ReportOptions.seconds(word, value);
                case "--jvm-option" -> jvmOptions.add(value);
                default -> throw new IllegalArgumentException("unknown option " + word);
            }
        }
        if (streams.isEmpty()) {
            throw new IllegalArgumentException("no stream given");
        }
    }

    private static int positive(String option, String value) {
        try {
            final int number = Integer.parseInt(value);
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " " + value + " is no number", e);
        }
        throw new IllegalArgumentException(option + " " + value + " is not positive");
    }

    private void compare() throws IOException, InterruptedException {
        if (program == null || !Files.isExecutable(Path.of(program))) {
            throw new IOException(
                    "no peer to replay: "
                            + (program == null ? "set KVASIR_PEER or --peer" : program));
        }
        final PeerProgram peer = new PeerProgram(Path.of(program), name);
        out.printf(
                Locale.ROOT,
                ROW,
                "stream",
                "figure",
                "kvasir",
                "(min-max)",
                name,
                "(min-max)",
                "ratio");
        for (Path stream : streams) {
            compare(stream, peer);
        }
        if (wrong > 0) {
            out.println("WRONG ANSWERS: " + wrong);
        }
    }

    private void compare(Path stream, PeerProgram peer) throws IOException, InterruptedException {
        final KvopsBench bench = new KvopsBench(1, jvmOptions, err::println);
        final LiveMaximum live = bench.liveMaximum(stream);
        final double[][] apply = new double[2][turns];
        final double[][] query = new double[2][turns];
        final double[][] bytes = {{0}, {peer.bytesPerPair(stream)}};
        long peerWrong = 0;
        final ReplayPlan plan = ReplayPlan.of(stream).withWarmUpSeconds(warmUpSeconds);
        for (int turn = 0; turn < turns; turn++) {
            final KvopsResult ours = bench.run(plan, live);
            err.println(stream.getFileName() + ": " + name + ", turn " + (turn + 1));
            final PeerProgram.Costs theirs = peer.replay(stream);
            apply[0][turn] = ours.median(Figure.APPLY_NS_PER_BLOCK);
            apply[1][turn] = theirs.applyNs();
            query[0][turn] = ours.median(Figure.QUERY_MEAN_US);
            query[1][turn] = theirs.queryNs() / NS_PER_US;
            bytes[0][0] = ours.median(Figure.BYTES_PER_PAIR);
            wrong += ours.mismatches();
            peerWrong += theirs.wrong();
        }
        final String title = Comparison.streamName(stream);
        row(title, "apply ns/block", apply);
        row(title, "query mean us", query);
        row(title, "bytes/pair", bytes);
        if (peerWrong > 0) {
            out.println(title + ": " + peerWrong + " wrong answers of " + name);
        }
    }

    /** A figure's row; its ratio is the median of the turns' ratios. */
    private void row(String title, String figure, double[][] values) {
        final double[] ratios = new double[values[0].length];
        Arrays.setAll(ratios, turn -> values[0][turn] / values[1][turn]);
        Arrays.sort(ratios);
        Arrays.sort(values[0]);
        Arrays.sort(values[1]);
        out.printf(
                Locale.ROOT,
                ROW,
                title,
                figure,
                Comparison.number(middle(values[0])),
                range(values[0]),
                Comparison.number(middle(values[1])),
                range(values[1]),
                String.format(Locale.ROOT, "%.2f", middle(ratios)));
    }

    private static double middle(double[] sorted) {
        return sorted[sorted.length / 2];
    }

    private static String range(double[] sorted) {
        return "("
                + Comparison.number(sorted[0])
                + "-"
                + Comparison.number(sorted[sorted.length - 1])
                + ")";
    }
}
