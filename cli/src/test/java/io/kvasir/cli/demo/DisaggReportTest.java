package io.kvasir.cli.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;
import io.kvasir.cli.load.Outcome;
import io.kvasir.cli.load.RunStats;

import org.junit.jupiter.api.Test;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;

class DisaggReportTest {
    private static final long MS = 1_000_000;

    private static MixedTraffic.Result run(Division division, long seed, long ms) {
        final RunStats stats = new RunStats(1);
        stats.record(
                new Outcome(null, "w", "w", 0, 0, ms / 2 * MS, ms * MS, 10, 0, 4, -1, -1, -1, ""));
        stats.recordGap(5 * MS);
        final RunStats.Result result = stats.result("all", 4, ms * MS);
        final boolean moves = division != Division.AGGREGATED;
        return new MixedTraffic.Result(
                division, seed, result, result, result, moves ? 3 : 0, moves ? 2_500_000 : 0);
    }

    private static DisaggReport report() {
        return new DisaggReport(
                List.of(
                        run(Division.AGGREGATED, 1, 400),
                        run(Division.ALWAYS, 1, 200),
                        run(Division.CONDITIONAL, 1, 100),
                        run(Division.AGGREGATED, 2, 300),
                        run(Division.ALWAYS, 2, 600),
                        run(Division.CONDITIONAL, 2, 330),
                        run(Division.AGGREGATED, 3, 100),
                        run(Division.ALWAYS, 3, 200),
                        run(Division.CONDITIONAL, 3, 80)));
    }

    @Test
    void eachSeedIsHeldAgainstTheBetterOneOfBoth() {
        final StringWriter text = new StringWriter();
        report().print(new PrintWriter(text));
        assertTrue(
                text.toString()
                        .lines()
                        .anyMatch(
                                line ->
                                        line.matches(
                                                "request, mean ms .* 200 +100"
                                                        + " +0\\.80 \\(0\\.50-1\\.10\\)")),
                text.toString());
        assertTrue(text.toString().contains("MB moved"), text.toString());
        assertTrue(text.toString().contains("better than both in 2 of 3 runs"), text.toString());
    }

    @Test
    void theSameStandsInJson() {
        final ObjectNode root = Json.object();
        report().json(root);
        assertEquals(9, root.path("runs").size());
        assertEquals(2_500_000, root.at("/runs/1/moved_bytes").asLong());
        assertEquals(1.1, root.at("/conditional_to_better/request, mean ms/most").asDouble(), 0.01);
    }

    @Test
    void aRunWithoutAnswersIsNotCompared() {
        final RunStats.Result none = new RunStats(1).result("all", 4, MS);
        final DisaggReport report =
                new DisaggReport(
                        List.of(
                                run(Division.AGGREGATED, 1, 400),
                                run(Division.ALWAYS, 1, 200),
                                new MixedTraffic.Result(
                                        Division.CONDITIONAL, 1, none, none, none, 0, 0)));
        final StringWriter text = new StringWriter();
        report.print(new PrintWriter(text));
        assertTrue(
                text.toString()
                        .lines()
                        .anyMatch(line -> line.matches("request, mean ms .* 200 +- +- *")),
                text.toString());
        assertTrue(text.toString().contains("nothing to compare"), text.toString());
        final ObjectNode root = Json.object();
        report.json(root);
        assertTrue(root.at("/conditional_to_better/TTFT p50 ms").isNull(), root.toString());
    }
}
