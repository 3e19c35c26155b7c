package io.kvasir.opstreams.report;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.LiveMaximum;
import io.kvasir.opstreams.kvops.ReplayMode;
import io.kvasir.opstreams.kvops.ReplayPlan;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Clock;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;

/**
 * Program: replays streams against all indexes and compares. Prints one table and writes {@code
 * index.html} (table, latency curves, machine, method) and {@code figures.csv}.
 */
public final class Report {
    private static final Map<Figure, Double> PERCENTILES =
            Map.of(
                    Figure.QUERY_P50_US, 50.0,
                    Figure.QUERY_P99_US, 99.0,
                    Figure.QUERY_P999_US, 99.9,
                    Figure.QUERY_P9999_US, 99.99);
    private static final List<String> METHOD =
            List.of(
                    "Each index runs in fresh JVMs, one after the other; figures are medians over"
                        + " them, min–max beside. A JVM decodes the stream, replays it on indexes"
                        + " of their own until figures stand still (warm-up), then measures on an"
                        + " empty one sized for exactly what the stream's workers hold at most.",
                    "apply: CPU time of the thread between the first and the last event of each"
                            + " burst, the clock's own cost taken off.",
                    "queries: wall time; left out are those during which the thread lost its core"
                            + " (preempted_share).",
                    "inorder: every answer is checked against the stream (checksum_mismatches)."
                        + " beside: a reader asks for the next prompts without pause while a writer"
                        + " applies all events as fast as it can.",
                    "ratio: first index ÷ the other; below 1 the first is faster or smaller.",
                    "A percentile of fewer queries than it takes for one beyond it is left out.");

    private final ReportOptions options;
    private final PrintStream out;
    private final PrintStream err;

    /**
     * Prepares a report.
     *
     * @param out gets the table
     * @param err gets progress
     */
    Report(ReportOptions options, PrintStream out, PrintStream err) {
        this.options = options;
        this.out = out;
        this.err = err;
    }

    /**
     * Makes a report. Ends with 0, 1 when an answer was wrong, 2 for a wrong command line, 3 when a
     * stream cannot be read or measured.
     *
     * @param args see {@link ReportOptions}
     */
    public static void main(String[] args) throws InterruptedException {
        final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.exit(run(List.of(args), out, System.err));
    }

    static int run(List<String> args, PrintStream out, PrintStream err)
            throws InterruptedException {
        try {
            return new Report(ReportOptions.parse(args), out, err).make() == 0 ? 0 : 1;
        } catch (IllegalArgumentException e) {
            err.println("bench report: " + e.getMessage());
            err.println(ReportOptions.USAGE);
            return 2;
        } catch (IOException e) {
            err.println("bench report: " + e);
            return 3;
        }
    }

    /** Measures, prints and writes; returns the number of wrong answers. */
    private long make() throws IOException, InterruptedException {
        final String loadBefore = Machine.loadAverage();
        final Peers peers =
                Peers.read()
                        .of(
                                options.streams().stream()
                                        .map(Comparison::streamName)
                                        .collect(Collectors.toSet()));
        final Comparison comparison = new Comparison(options.indexes(), peers);
        final StringBuilder charts = new StringBuilder();
        final List<String> csv = new ArrayList<>();
        csv.add("stream,mode,index,figure,median,min,max");
        final KvopsBench bench =
                new KvopsBench(options.forks(), options.jvmOptions(), err::println);
        long mismatches = 0;
        for (Path stream : options.streams()) {
            final LiveMaximum live = bench.liveMaximum(stream);
            for (ReplayMode mode : options.modes()) {
                final Map<String, KvopsResult> results = new LinkedHashMap<>();
                for (String index : options.indexes()) {
                    final ReplayPlan plan =
                            ReplayPlan.of(stream)
                                    .withIndex(index)
                                    .withMode(mode)
                                    .withWarmUpSeconds(options.warmUpSeconds());
                    final KvopsResult result = bench.run(plan, live);
                    results.put(index, result);
                    mismatches += result.mismatches();
                    addTo(csv, result);
                }
                comparison.add(results);
                charts.append(chart(results, peers));
            }
        }
        out.print(comparison.text());
        Files.createDirectories(options.out());
        replace(options.out().resolve("figures.csv"), String.join("\n", csv) + "\n");
        final Path page = options.out().resolve("index.html");
        replace(page, page(comparison, charts, peers, loadBefore));
        out.println("curves: " + page);
        if (mismatches > 0) {
            out.println("WRONG ANSWERS: " + mismatches);
        }
        return mismatches;
    }

    /** Writes a file beside the former one, which stays until the new one is whole. */
    private static void replace(Path file, String text) throws IOException {
        final Path unfinished = file.resolveSibling(file.getFileName() + ".unfinished");
        try {
            Files.writeString(unfinished, text);
            Files.move(
                    unfinished,
                    file,
                    StandardCopyOption.ATOMIC_MOVE,
                    StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(unfinished);
        }
    }

    private static void addTo(List<String> csv, KvopsResult result) {
        for (Figure figure : result.figures()) {
            csv.add(
                    String.join(
                            ",",
                            Comparison.streamName(result),
                            result.plan().mode().label(),
                            result.plan().index(),
                            figure.field(),
                            Double.toString(result.median(figure)),
                            Double.toString(result.min(figure)),
                            Double.toString(result.max(figure))));
        }
    }

    private static String chart(Map<String, KvopsResult> results, Peers peers) {
        final KvopsResult first = results.values().iterator().next();
        final String stream = Comparison.streamName(first);
        final String mode = first.plan().mode().label();
        final LatencyChart chart = new LatencyChart("Query latency: " + stream + ", " + mode);
        results.forEach((index, result) -> chart.curve(index, result.latencies()));
        for (String peer : peers.names()) {
            final List<Double> percentiles = new ArrayList<>();
            final List<Double> values = new ArrayList<>();
            PERCENTILES.forEach(
                    (figure, percentile) -> {
                        final OptionalDouble known = peers.figure(stream, mode, peer, figure);
                        if (known.isPresent()) {
                            percentiles.add(percentile);
                            values.add(known.getAsDouble());
                        }
                    });
            chart.marks(peer, percentiles, values);
        }
        return chart.isEmpty() ? "" : chart.svg();
    }

    private String page(
            Comparison comparison, StringBuilder charts, Peers peers, String loadBefore) {
        final List<String> machine = new ArrayList<>(Machine.facts());
        machine.add("load average before: " + loadBefore);
        machine.add("commit: " + options.commit());
        machine.add("date: " + LocalDate.now(Clock.systemUTC()));
        machine.add(
                "processes per figure: "
                        + options.forks()
                        + "; JVM: --enable-native-access=ALL-UNNAMED -XX:+UseCompactObjectHeaders"
                        + " -XX:+UseSerialGC, heap by the stream's length "
                        + String.join(" ", options.jvmOptions()));
        return new Html("Kvasir: indexes on op streams")
                .heading("Figures")
                .table(comparison.rows())
                .heading("Latency curves")
                .markup(charts.toString())
                .heading("Machine")
                .list(machine)
                .heading("Method")
                .list(METHOD)
                .heading("Peers")
                .paragraph(
                        peers.names().isEmpty()
                                ? "No figures of peers on these streams; bench/run beside-peer"
                                        + " replays one."
                                : peers.origin())
                .page();
    }
}
