package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.List;

class RunStatsTest {
    private static final long MS = 1_000_000;

    @Test
    void hitRateSpreadAndTimesAreWhatTheHelpSays() {
        final RunStats stats = new RunStats(10);
        stats.record(served("a", 100, 80, 10 * MS));
        stats.record(served("a", 100, 40, 20 * MS));
        stats.record(served("b", 200, 180, 30 * MS));
        stats.record(failed());
        final RunStats.Result result = stats.result("kv", 4, 2_000 * MS);
        assertEquals(4, result.requests());
        assertEquals(1, result.errors());
        assertEquals(300.0 / 400, result.hitRate(), 1e-9);
        assertEquals(200, result.ttftP50Ms(), 0.5, "20 ms of wall time at speed-up 10");
        assertEquals(300, result.ttftP95Ms(), 0.5);
        assertEquals(80.0 / ((80 + 20) / 4.0), result.loadSpread(), 1e-9, "a computed 80 of 100");
        assertEquals(2, result.wallSeconds(), 1e-9);
        assertEquals(List.of("went wrong"), result.firstErrors());
    }

    @Test
    void gapsBetweenTokensAreInTraceTimeToo() {
        final RunStats stats = new RunStats(10);
        for (int i = 1; i <= 100; i++) {
            stats.recordGap(i * MS);
        }
        final RunStats.InterToken gaps = stats.result("kv", 1, MS).interToken();
        assertEquals(500, gaps.p50Ms(), 1);
        assertEquals(950, gaps.p95Ms(), 1);
        assertEquals(990, gaps.p99Ms(), 1);
        assertEquals(505, gaps.meanMs(), 1);
    }

    @Test
    void aRunWithoutAnswersHasNoTimesAndNoRates() throws IOException {
        final RunStats stats = new RunStats(1);
        stats.record(failed());
        final RunStats.Result result = stats.result("kv", 4, MS);
        for (double each :
                new double[] {
                    result.hitRate(),
                    result.ttftP50Ms(),
                    result.ttftP95Ms(),
                    result.totalMeanMs(),
                    result.issueLagP99Ms(),
                    result.interToken().meanMs(),
                    result.loadSpread()
                }) {
            assertTrue(Double.isNaN(each), result.toString());
        }

        final StringWriter text = new StringWriter();
        ResultPrinter.table(List.of(result), new PrintWriter(text));
        final String row = text.toString().lines().toList().get(2);
        assertTrue(row.matches("kv +1 +1 +- +- +- +- +0\\.0"), row);
        assertEquals(
                "kv               1/9 requests, 1 errors, cache hits -, TTFT p50 -",
                Progress.line("kv", stats, 9));

        final ObjectNode into = Json.object();
        ResultPrinter.json(List.of(result), into);
        final JsonNode mode = Json.MAPPER.readTree(into.toString()).at("/modes/0");
        for (String field : List.of("hit_rate", "ttft_p50_ms", "total_mean_ms", "load_spread")) {
            assertTrue(mode.path(field).isNull(), mode.toString());
        }
        assertFalse(mode.has("inter_token_mean_ms"), mode.toString());
    }

    @Test
    void answersFromCachesAloneAreEvenlySpread() {
        final RunStats stats = new RunStats(1);
        stats.record(served("a", 100, 100, MS));
        assertEquals(1, stats.result("kv", 4, MS).loadSpread());
    }

    @Test
    void aWrongForecastIsExplainedOnlyByEventsInBetween() {
        final RunStats stats = new RunStats(1);
        stats.record(forecast(32, 32, 5, 9));
        stats.record(forecast(32, 48, 5, 6));
        stats.record(forecast(48, 32, 5, 5));
        stats.record(forecast(16, 32, -1, -1));
        stats.record(forecast(16, 32, 5, Outcome.UNSTATED));
        stats.record(forecast(16, 32, Outcome.UNSTATED, 5));
        stats.record(forecast(16, 32, -1, 0));
        stats.record(forecast(-1, 32, 1, 1));
        assertEquals(
                new RunStats.Prediction(7, 1, 2, 4, 1, 5), stats.result("kv", 1, MS).prediction());
    }

    @Test
    void tableAndJsonShowTheSameRun() throws IOException {
        final RunStats stats = new RunStats(1);
        stats.record(served("w0", 100, 75, 12 * MS));
        stats.record(failed());
        final List<RunStats.Result> results = List.of(stats.result("round-robin", 2, 500 * MS));
        final StringWriter text = new StringWriter();
        ResultPrinter.table(results, new PrintWriter(text));
        final String row = text.toString().lines().toList().get(2);
        assertTrue(row.startsWith("round-robin"), row);
        assertTrue(row.contains("75.0 %"), row);
        assertTrue(text.toString().contains("round-robin: error: went wrong"), text.toString());

        final ObjectNode into = Json.object();
        ResultPrinter.json(results, into);
        final JsonNode mode = Json.MAPPER.readTree(into.toString()).at("/modes/0");
        assertEquals("round-robin", mode.get("mode").asText());
        assertEquals(0.75, mode.get("hit_rate").asDouble());
        assertEquals(12.0, mode.get("ttft_p50_ms").asDouble(), 0.02);
        assertEquals(12.0, mode.get("ttft_p95_ms").asDouble(), 0.02);
        assertEquals(2.0, mode.get("load_spread").asDouble());
        assertEquals(2, mode.get("requests").asInt());
        assertEquals(1, mode.get("errors").asInt());
        assertEquals(0, mode.at("/prediction/compared").asInt());
        assertEquals(25, mode.at("/workers/w0/computed_prompt_tokens").asInt());
    }

    @Test
    void aPromptIsComputedByThePrefillWorkerOfASplitRequest() {
        final RunStats stats = new RunStats(1);
        stats.record(new Outcome(null, "d", "p", 0, 0, 1, 1, 100, 40, 1, -1, -1, -1, ""));
        stats.record(served("d", 10, 0, 1));
        final ObjectNode into = Json.object();
        ResultPrinter.json(List.of(stats.result("split", 2, 1)), into);
        final JsonNode workers = into.at("/modes/0/workers");
        assertEquals(60, workers.at("/p/computed_prompt_tokens").asInt(), into::toString);
        assertEquals(0, workers.at("/p/requests").asInt(), into::toString);
        assertEquals(10, workers.at("/d/computed_prompt_tokens").asInt(), into::toString);
        assertEquals(2, workers.at("/d/requests").asInt(), into::toString);
    }

    private static Outcome served(String worker, long prompt, long cached, long ttftNs) {
        return new Outcome(
                null, worker, worker, 0, 0, ttftNs, 2 * ttftNs, prompt, cached, 1, -1, -1, -1, "");
    }

    private static Outcome forecast(long predicted, long cached, long router, long engine) {
        return new Outcome(
                null, "w", "w", 0, 0, 1, 1, 100, cached, 1, predicted, router, engine, "");
    }

    private static Outcome failed() {
        return new Outcome("went wrong", "", "", 0, 0, 1, 1, 0, 0, 0, -1, -1, -1, "");
    }
}
