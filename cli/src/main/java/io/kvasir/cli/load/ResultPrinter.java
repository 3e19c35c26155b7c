package io.kvasir.cli.load;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Measured;
import io.kvasir.cli.console.TextTable;

import java.io.PrintWriter;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/** Prints the results of a demo or replay: one table for people, one JSON object for programs. */
public final class ResultPrinter {
    private static final double PERCENT = 100;

    private ResultPrinter() {}

    /** One row a mode, and the first errors of each below. */
    public static void table(List<RunStats.Result> results, PrintWriter out) {
        final TextTable table =
                new TextTable(
                        "mode",
                        "requests",
                        "errors",
                        "cache hits",
                        "TTFT p50 ms",
                        "TTFT p95 ms",
                        "load spread",
                        "wall s");
        for (RunStats.Result r : results) {
            table.row(
                    r.mode(),
                    Integer.toString(r.requests()),
                    Integer.toString(r.errors()),
                    Measured.text("%.1f %%", r.hitRate() * PERCENT),
                    Measured.text("%.1f", r.ttftP50Ms()),
                    Measured.text("%.1f", r.ttftP95Ms()),
                    Measured.text("%.2f", r.loadSpread()),
                    Measured.text("%.1f", r.wallSeconds()));
        }
        table.print(out);
        for (RunStats.Result r : results) {
            for (String error : r.firstErrors()) {
                out.println(r.mode() + ": error: " + error);
            }
        }
    }

    /** How right the gateway's forecasts were, one row a mode. */
    public static void predictions(List<RunStats.Result> results, PrintWriter out) {
        final TextTable table =
                new TextTable(
                        "forecast of cached tokens",
                        "compared",
                        "exact",
                        "explained by events",
                        "unexplained");
        for (RunStats.Result r : results) {
            final RunStats.Prediction p = r.prediction();
            table.row(
                    r.mode(),
                    Integer.toString(p.compared()),
                    Integer.toString(p.exact()),
                    Integer.toString(p.explainedByEvents()),
                    Integer.toString(p.unexplained()));
        }
        table.print(out);
    }

    /** One entry a mode under {@code modes}, in the order of the runs. */
    public static void json(List<RunStats.Result> results, ObjectNode into) {
        final ArrayNode modes = into.putArray("modes");
        for (RunStats.Result r : results) {
            final ObjectNode mode = modes.addObject();
            mode.put("mode", r.mode())
                    .put("hit_rate", Measured.rounded(r.hitRate()))
                    .put("ttft_p50_ms", Measured.rounded(r.ttftP50Ms()))
                    .put("ttft_p95_ms", Measured.rounded(r.ttftP95Ms()))
                    .put("load_spread", Measured.rounded(r.loadSpread()))
                    .put("requests", r.requests())
                    .put("errors", r.errors())
                    .put("ttft_p99_ms", Measured.rounded(r.ttftP99Ms()))
                    .put("ttft_mean_ms", Measured.rounded(r.ttftMeanMs()))
                    .put("total_p50_ms", Measured.rounded(r.totalP50Ms()))
                    .put("total_p95_ms", Measured.rounded(r.totalP95Ms()))
                    .put("total_mean_ms", Measured.rounded(r.totalMeanMs()))
                    .put("prompt_tokens", r.promptTokens())
                    .put("cached_tokens", r.cachedTokens())
                    .put("output_tokens", r.outputTokens())
                    .put("wall_s", Measured.rounded(r.wallSeconds()))
                    .put("issue_lag_p99_wall_ms", Measured.rounded(r.issueLagP99Ms()));
            if (r.interToken().meanMs() > 0) {
                mode.put("inter_token_p50_ms", Measured.rounded(r.interToken().p50Ms()))
                        .put("inter_token_p95_ms", Measured.rounded(r.interToken().p95Ms()))
                        .put("inter_token_p99_ms", Measured.rounded(r.interToken().p99Ms()))
                        .put("inter_token_mean_ms", Measured.rounded(r.interToken().meanMs()));
            }
            final RunStats.Prediction p = r.prediction();
            mode.putObject("prediction")
                    .put("compared", p.compared())
                    .put("exact", p.exact())
                    .put("explained_by_events", p.explainedByEvents())
                    .put("unexplained", p.unexplained())
                    .put("over", p.over())
                    .put("under", p.under());
            final ObjectNode workers = mode.putObject("workers");
            final Set<String> names = new TreeSet<>(r.requestsByWorker().keySet());
            names.addAll(r.computedTokens().keySet());
            for (String name : names) {
                workers.putObject(name)
                        .put("requests", r.requestsByWorker().getOrDefault(name, 0))
                        .put("computed_prompt_tokens", r.computedTokens().getOrDefault(name, 0L));
            }
            final ArrayNode errors = mode.putArray("first_errors");
            r.firstErrors().forEach(errors::add);
        }
    }
}
