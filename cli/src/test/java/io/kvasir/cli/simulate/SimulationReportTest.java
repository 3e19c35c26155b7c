package io.kvasir.cli.simulate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;

class SimulationReportTest {
    @Test
    void answersOfOneTokenHaveNoTimeBetweenTokens() {
        final FleetStats stats = new FleetStats(2);
        final FleetStats.Request request = stats.arrived(0, 100, 0);
        request.token(5_000_000, 40, true);
        request.finished();
        final SimulationReport report = report(stats);
        final JsonNode run = run(report);
        assertTrue(run.path("inter_token_mean_ms").isNull(), run.toString());
        assertTrue(run.path("inter_token_p99_ms").isNull(), run.toString());
        assertEquals(0.4, run.path("hit_rate").asDouble());
        assertEquals(5, run.path("ttft_p50_ms").asDouble(), 0.01);
        final String row = row(report);
        assertTrue(row.matches("kv:1 .* - +2\\.00"), row);
    }

    @Test
    void aRunWithoutRequestsHasNoTimesAndNoRates() {
        final SimulationReport report = report(new FleetStats(2));
        final JsonNode run = run(report);
        for (String field : List.of("hit_rate", "ttft_p50_ms", "ttft_mean_ms", "imbalance")) {
            assertTrue(run.path(field).isNull(), run.toString());
        }
        final String row = row(report);
        assertTrue(row.matches("kv:1( +-){10}"), row);
    }

    private static SimulationReport report(FleetStats stats) {
        return new SimulationReport(
                List.of(new CacheBounds(0.5, 0.5)),
                List.of(new PolicyResults("kv:1", List.of(stats.result("kv:1")))));
    }

    private static JsonNode run(SimulationReport report) {
        final ObjectNode into = Json.object();
        report.write(into);
        return into.at("/policies/0/runs/0");
    }

    private static String row(SimulationReport report) {
        final StringWriter text = new StringWriter();
        report.print(new PrintWriter(text));
        return text.toString().lines().toList().get(2).strip();
    }
}
