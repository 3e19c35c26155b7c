package io.kvasir.cli.simulate;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Measured;
import io.kvasir.cli.console.TextTable;

import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * What the policies did, as a table for people or an object for programs.
 *
 * @param bounds of hit rates, one a seed
 * @param policies in the order in which they were asked for
 */
record SimulationReport(List<CacheBounds> bounds, List<PolicyResults> policies) {
    private static final String BASE = "round-robin";
    private static final double PERCENT = 100;

    /** Prints the table. */
    void print(PrintWriter out) {
        final TextTable table =
                new TextTable(
                        "policy",
                        "cache hits %",
                        "+-",
                        "regret",
                        "TTFT p50 ms",
                        "p95 ms",
                        "+-",
                        "/ " + BASE,
                        "p99 ms",
                        "inter-token ms",
                        "imbalance");
        for (PolicyResults each : policies) {
            table.row(
                    each.policy(),
                    Measured.text("%.2f", each.mean(FleetStats.Result::hitRate) * PERCENT),
                    Measured.text("%.2f", each.spread(FleetStats.Result::hitRate) * PERCENT / 2),
                    Measured.text("%.2f", regret(each) * PERCENT),
                    Measured.text("%.0f", each.mean(FleetStats.Result::ttftP50Ms)),
                    Measured.text("%.0f", each.mean(FleetStats.Result::ttftP95Ms)),
                    Measured.text("%.0f", each.spread(FleetStats.Result::ttftP95Ms) / 2),
                    Measured.text("%.3f", ofBase(each)),
                    Measured.text("%.0f", each.mean(FleetStats.Result::ttftP99Ms)),
                    Measured.text("%.1f", each.mean(FleetStats.Result::gapMeanMs)),
                    Measured.text("%.2f", each.mean(FleetStats.Result::imbalance)));
        }
        table.print(out);
        out.printf(
                Locale.ROOT,
                "bounds of hits: %.2f %% in one endless cache (regret counts from here), %.2f %% in"
                        + " one least-recently-used cache of all memory%n",
                bound(CacheBounds::endless) * PERCENT,
                bound(CacheBounds::pooled) * PERCENT);
    }

    private double bound(ToDoubleFunction<CacheBounds> of) {
        return bounds.stream().mapToDouble(of).average().orElseThrow();
    }

    /** Hits that the endless cache has and the policy has not. */
    private double regret(PolicyResults each) {
        return bound(CacheBounds::endless) - each.mean(FleetStats.Result::hitRate);
    }

    /** TTFT p95 as a part of round robin's; NaN where that was not run. */
    private double ofBase(PolicyResults each) {
        return policies.stream()
                .filter(other -> other.policy().equals(BASE))
                .mapToDouble(base -> base.mean(FleetStats.Result::ttftP95Ms))
                .map(base -> each.mean(FleetStats.Result::ttftP95Ms) / base)
                .findFirst()
                .orElse(Double.NaN);
    }

    /** Adds the numbers. */
    void write(ObjectNode into) {
        into.put("endless_cache_hit_rate", Measured.rounded(bound(CacheBounds::endless)))
                .put("pooled_cache_hit_rate", Measured.rounded(bound(CacheBounds::pooled)));
        final ArrayNode all = into.putArray("policies");
        for (PolicyResults each : policies) {
            final ObjectNode one = all.addObject().put("policy", each.policy());
            one.put("regret_hit_rate", Measured.rounded(regret(each)));
            if (!Double.isNaN(ofBase(each))) {
                one.put("ttft_p95_of_round_robin", Measured.rounded(ofBase(each)));
            }
            final ArrayNode runs = one.putArray("runs");
            for (FleetStats.Result run : each.runs()) {
                runs.addObject()
                        .put("requests", run.requests())
                        .put("hit_rate", Measured.rounded(run.hitRate()))
                        .put("ttft_p50_ms", Measured.rounded(run.ttftP50Ms()))
                        .put("ttft_p95_ms", Measured.rounded(run.ttftP95Ms()))
                        .put("ttft_p99_ms", Measured.rounded(run.ttftP99Ms()))
                        .put("ttft_mean_ms", Measured.rounded(run.ttftMeanMs()))
                        .put("inter_token_mean_ms", Measured.rounded(run.gapMeanMs()))
                        .put("inter_token_p99_ms", Measured.rounded(run.gapP99Ms()))
                        .put("imbalance", Measured.rounded(run.imbalance()));
            }
        }
    }
}
