package io.kvasir.cli.demo;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.TextTable;
import io.kvasir.cli.load.ResultPrinter;

import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/**
 * What {@link MixedTraffic} has shown of each {@link Division}: medians over the seeds, and for
 * each seed how conditional splitting stands beside the better one of the other two.
 */
public final class DisaggReport {
    private static final double MB = 1e6;

    private static final List<Measure> MEASURES =
            List.of(
                    new Measure("request, mean ms", r -> r.all().totalMeanMs()),
                    new Measure("TTFT p50 ms", r -> r.all().ttftP50Ms()),
                    new Measure("TTFT p95 ms", r -> r.all().ttftP95Ms()),
                    new Measure("inter-token p50 ms", r -> r.all().interToken().p50Ms()),
                    new Measure("inter-token p95 ms", r -> r.all().interToken().p95Ms()),
                    new Measure("inter-token p99 ms", r -> r.all().interToken().p99Ms()),
                    new Measure("chats: request, mean ms", r -> r.chats().totalMeanMs()),
                    new Measure("chats: TTFT p50 ms", r -> r.chats().ttftP50Ms()),
                    new Measure("chats: TTFT p95 ms", r -> r.chats().ttftP95Ms()),
                    new Measure("long: request, mean ms", r -> r.contexts().totalMeanMs()),
                    new Measure("long: TTFT p50 ms", r -> r.contexts().ttftP50Ms()),
                    new Measure("long: TTFT p95 ms", r -> r.contexts().ttftP95Ms()));

    private static final List<Measure> COUNTS =
            List.of(
                    new Measure("requests split", r -> r.pulls()),
                    new Measure("MB moved", r -> r.movedBytes() / MB),
                    new Measure("errors", r -> r.all().errors()));

    private final List<MixedTraffic.Result> results;
    private final long[] seeds;

    /** One number of a run; less is better. */
    private record Measure(String title, ToDoubleFunction<MixedTraffic.Result> of) {}

    /** Of runs of every division with the same seeds, at least one. */
    public DisaggReport(List<MixedTraffic.Result> results) {
        this.results = List.copyOf(results);
        this.seeds = results.stream().mapToLong(MixedTraffic.Result::seed).distinct().toArray();
    }

    /** Prints the table, the first errors and what it means. */
    public void print(PrintWriter out) {
        final TextTable table =
                new TextTable(
                        "median of " + seeds.length + (seeds.length == 1 ? " run" : " runs"),
                        Division.AGGREGATED.title(),
                        Division.ALWAYS.title(),
                        Division.CONDITIONAL.title(),
                        "to the better (range)");
        MEASURES.forEach(measure -> table.row(row(measure, toTheBetter(measure))));
        COUNTS.forEach(measure -> table.row(row(measure, "")));
        table.print(out);
        for (MixedTraffic.Result result : results) {
            for (String error : result.all().firstErrors()) {
                out.println(result.division().title() + ": error: " + error);
            }
        }
        out.println();
        out.println(meaning());
        out.flush();
    }

    private String[] row(Measure measure, String last) {
        return Stream.concat(
                        Stream.concat(
                                Stream.of(measure.title()),
                                Arrays.stream(Division.values())
                                        .map(division -> number(median(measure, division)))),
                        Stream.of(last))
                .toArray(String[]::new);
    }

    private String toTheBetter(Measure measure) {
        final double[] ratios = ratios(measure);
        if (!isComplete(ratios)) {
            return "-";
        }
        return String.format(
                Locale.ROOT,
                "%.2f (%.2f-%.2f)",
                median(ratios),
                ratios[0],
                ratios[ratios.length - 1]);
    }

    /** Conditional ÷ the better one of the others, per seed, in rising order. */
    private double[] ratios(Measure measure) {
        return Arrays.stream(seeds)
                .mapToDouble(
                        seed ->
                                value(measure, Division.CONDITIONAL, seed)
                                        / Math.min(
                                                value(measure, Division.AGGREGATED, seed),
                                                value(measure, Division.ALWAYS, seed)))
                .sorted()
                .toArray();
    }

    private double value(Measure measure, Division division, long seed) {
        for (MixedTraffic.Result result : results) {
            if (result.division() == division && result.seed() == seed) {
                return measure.of().applyAsDouble(result);
            }
        }
        throw new IllegalStateException("no run of " + division + " with seed " + seed);
    }

    private double median(Measure measure, Division division) {
        return median(
                Arrays.stream(seeds)
                        .mapToDouble(seed -> value(measure, division, seed))
                        .sorted()
                        .toArray());
    }

    private static double median(double[] sorted) {
        final int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /** One sentence about the first measure, made from the numbers whatever they are. */
    public String meaning() {
        final Measure mean = MEASURES.getFirst();
        final double[] ratios = ratios(mean);
        if (!isComplete(ratios)) {
            return "Not every run had answers: nothing to compare.";
        }
        final long better = Arrays.stream(ratios).filter(ratio -> ratio < 1).count();
        return String.format(
                Locale.ROOT,
                "A request took %.0f ms when split by expected cost, %.0f ms by four engines that"
                        + " do both, %.0f ms when always split: better than both in %d of %d runs,"
                        + " %.2f of the better one in the median, %.2f at worst.",
                median(mean, Division.CONDITIONAL),
                median(mean, Division.AGGREGATED),
                median(mean, Division.ALWAYS),
                better,
                ratios.length,
                median(ratios),
                ratios[ratios.length - 1]);
    }

    /** The runs one by one, and the ratios of the table. */
    public void json(ObjectNode into) {
        final ArrayNode runs = into.putArray("runs");
        for (MixedTraffic.Result result : results) {
            final ObjectNode run = runs.addObject();
            run.put("division", result.division().title()).put("seed", result.seed());
            run.put("split_requests", result.pulls()).put("moved_bytes", result.movedBytes());
            ResultPrinter.json(List.of(result.all(), result.chats(), result.contexts()), run);
        }
        final ObjectNode table = into.putObject("conditional_to_better");
        for (Measure measure : MEASURES) {
            final double[] ratios = ratios(measure);
            if (!isComplete(ratios)) {
                table.putNull(measure.title());
                continue;
            }
            table.putObject(measure.title())
                    .put("median", median(ratios))
                    .put("least", ratios[0])
                    .put("most", ratios[ratios.length - 1]);
        }
        into.put("meaning", meaning());
    }

    /** Whether every run had what is measured; those that had not are NaN, which sorts last. */
    private static boolean isComplete(double[] sorted) {
        return !Double.isNaN(sorted[sorted.length - 1]);
    }

    private static String number(double value) {
        if (Double.isNaN(value)) {
            return "-";
        }
        return String.format(Locale.ROOT, value == Math.rint(value) ? "%.0f" : "%.1f", value);
    }
}
