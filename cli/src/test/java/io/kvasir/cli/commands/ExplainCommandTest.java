package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.StubServer;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

class ExplainCommandTest {
    private static final int BLOCK = 16;

    private static Cluster cluster() throws InterruptedException {
        return Cluster.start(
                new Cluster.Plan(
                        "127.0.0.1",
                        0,
                        Cluster.Plan.same(
                                2,
                                () ->
                                        SimConfig.builder()
                                                .model(SimModel.NAME)
                                                .blockSize(BLOCK)
                                                .speedUp(100)
                                                .build()),
                        () ->
                                GatewayConfig.builder()
                                        .set(GatewaySettings.DECISION_LOG_SIZE, 8)
                                        .set(GatewaySettings.TOKENIZER, SimModel.files())),
                RoutingMode.KV);
    }

    /** Sends a prompt of so many tokens. */
    private static void complete(Cluster cluster, String id, int tokens) throws Exception {
        final String prompt =
                IntStream.range(0, tokens)
                        .mapToObj(i -> Integer.toString(i % 250))
                        .collect(Collectors.joining(","));
        try (HttpClient http = HttpClient.newHttpClient()) {
            final HttpResponse<String> answer =
                    http.send(
                            HttpRequest.newBuilder(cluster.url().resolve("/v1/completions"))
                                    .header("x-request-id", id)
                                    .header("content-type", "application/json")
                                    .POST(
                                            HttpRequest.BodyPublishers.ofString(
                                                    "{\"model\":\"kvasir-sim\",\"max_tokens\":2,"
                                                            + "\"prompt\":["
                                                            + prompt
                                                            + "]}"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            assertEquals(200, answer.statusCode(), answer.body());
        }
    }

    /** The request's answer is out before its record ends. */
    private static CommandRun ended(Cluster cluster, String... more) {
        final List<String> words = new ArrayList<>(List.of("explain"));
        words.addAll(List.of(more));
        words.add("--url=" + cluster.adminUrl());
        final AtomicReference<CommandRun> run = new AtomicReference<>();
        Eventually.holds(
                () -> "its record ends: " + run.get().out(),
                () -> {
                    run.set(CommandRun.of(words.toArray(String[]::new)));
                    return run.get().exitCode() != 0 || !run.get().out().contains("running");
                });
        return run.get();
    }

    @Test
    void aRepeatedPromptGoesWhereItsBlocksAreAndTheOtherWorkerLosesByThem() throws Exception {
        try (Cluster cluster = cluster()) {
            complete(cluster, "first", 10 * BLOCK + 1);
            assertTrue(ended(cluster, "first").out().contains("0 predicted, 0 by the engine"));
            awaitIndexed(cluster, 10);
            complete(cluster, "second", 10 * BLOCK + 1);
            final CommandRun run = ended(cluster, "second");
            assertEquals(0, run.exitCode(), run.err());
            final String out = run.out();
            assertTrue(out.startsWith("request second: completions, attempt 1 at 20"), out);
            assertTrue(out.contains("161 tokens, 10 whole blocks of 16; mode kv"), out);
            assertTrue(out.contains(": it holds 10 of 10 blocks and costs"), out);
            assertTrue(out.contains(", the least of 2 candidates\n"), out);
            assertTrue(
                    out.contains(" lost by 10 blocks (160 tokens): +10 to prefill, 0 in use"), out);
            assertTrue(out.contains("cached tokens: 160 predicted, 160 by the engine: exact"), out);
            assertTrue(out.contains("outcome: ok (200)"), out);
            assertFalse(out.contains("\u001b"), out);

            assertEquals(out, ended(cluster).out(), "without an id the newest is shown");
            final JsonNode json = Json.parse(ended(cluster, "second", "--json").out());
            final JsonNode explained = json.path("decisions").path(0);
            assertEquals(10, explained.path("runner_up").path("lost_by_blocks").asDouble());
            assertEquals(160, explained.path("runner_up").path("lost_by_tokens").asDouble());
            assertEquals(0, explained.path("engine_minus_predicted_tokens").asDouble());
            assertEquals(161, explained.path("decision").path("tokens").asInt());
        }
    }

    /** Waits until workers hold so many blocks and nothing is booked. */
    private static void awaitIndexed(Cluster cluster, int expected) throws Exception {
        Eventually.until(
                expected + " blocks and no booking",
                () -> {
                    int blocks = 0;
                    int booked = 0;
                    for (JsonNode worker : workers(cluster)) {
                        blocks += worker.path("index_blocks").asInt();
                        booked += worker.path("active_requests").asInt();
                        booked += worker.path("active_blocks").asInt();
                    }
                    return blocks >= expected && booked == 0;
                });
    }

    private static JsonNode workers(Cluster cluster) throws Exception {
        try (HttpClient http = HttpClient.newHttpClient()) {
            final HttpResponse<String> answer =
                    http.send(
                            HttpRequest.newBuilder(
                                            URI.create(cluster.adminUrl() + "/debug/workers"))
                                    .build(),
                            HttpResponse.BodyHandlers.ofString());
            return Json.parse(answer.body()).path("workers");
        }
    }

    @Test
    void whatIsNotHeldAnyMoreSaysHowManyAreKeptAndTheKnob() throws Exception {
        try (Cluster cluster = cluster()) {
            final CommandRun none = ended(cluster);
            assertEquals(1, none.exitCode());
            assertEquals("", none.out());
            assertEquals(
                    "no decision has been made yet; the last 8 are kept (decision-log-size)\n",
                    none.err());
            complete(cluster, "old", 5);
            for (int i = 0; i < 8; i++) {
                complete(cluster, "new-" + i, 5);
            }
            final CommandRun old = ended(cluster, "old");
            assertEquals(1, old.exitCode());
            assertTrue(old.err().contains("`old` is among the last 8"), old.err());
            assertTrue(old.err().contains("decision-log-size"), old.err());
            final CommandRun json = ended(cluster, "a b&id=new-1#?", "--json");
            assertEquals(1, json.exitCode());
            assertTrue(
                    Json.parse(json.out()).path("missing").asText().contains("`a b&id=new-1#?`"));
        }
    }

    private static String decision(String more, String... candidates) {
        return "{\"kept\":3,\"decisions\":[{\"request_id\":\"r\",\"route\":\"chat\",\"attempt\":1,"
                + "\"mode\":\"kv\",\"overlap_weight\":1.5,\"temperature\":0.0,\"tokens\":64,"
                + "\"blocks\":4,\"block_size\":16,\"worker\":\"a\",\"dp_rank\":0,"
                + more
                + "\"candidates\":["
                + String.join(",", candidates)
                + "]}]}";
    }

    private static String candidate(String name, double cost, String excludedOrNull) {
        return "{\"worker\":\""
                + name
                + "\",\"dp_rank\":0,\"excluded\":"
                + (excludedOrNull == null ? "null" : "\"" + excludedOrNull + "\"")
                + ",\"index_state\":\"exact\",\"overlap_blocks\":1,\"prefill_blocks\":"
                + cost
                + ",\"decode_blocks\":2,\"added_blocks\":0.0,\"cost\":"
                + (excludedOrNull == null ? cost : "null")
                + "}";
    }

    private static CommandRun explain(StubServer stub, String... more) {
        final List<String> words = new ArrayList<>(List.of("explain", "--url=" + stub.url()));
        words.addAll(List.of(more));
        return CommandRun.of(words.toArray(String[]::new));
    }

    @Test
    void exclusionsTemperatureAndSplitAlternativesAreSaid() throws Exception {
        try (StubServer stub = new StubServer()) {
            stub.page(
                    "/debug/decisions",
                    200,
                    decision(
                            "\"leg\":\"prefill\",\"split\":{\"split\":false,\"reason\":\"sooner"
                                    + " alone\",\"local_seconds\":0.25,\"transfer_seconds\":0.5},",
                            candidate("a", 9, null),
                            candidate("b", 7, null),
                            candidate("c", 1, "busy"),
                            candidate("d\\u001b[2J", 1, "tainted"),
                            candidate("e", 1, "busy")));
            final CommandRun run = explain(stub, "r");
            assertEquals(0, run.exitCode(), run.err());
            final String out = run.out();
            assertTrue(out.contains("chat, prefill leg, attempt 1"), out);
            assertTrue(out.contains("not the least: the temperature draws"), out);
            assertTrue(out.contains("cheapest other b/0 would have cost less by 2 blocks"), out);
            assertTrue(out.contains("over a limit of load (busy-…): c/0, e/0\n"), out);
            assertTrue(out.contains("(a taint): d?[2J/0\n"), out);
            assertTrue(out.contains("the engine has not said"), out);
            assertTrue(out.contains("not split: sooner alone; alone 250.0 ms and ? ms"), out);
        }
    }

    @Test
    void aSessionThatStaysIsSaid() throws Exception {
        try (StubServer stub = new StubServer()) {
            stub.page(
                    "/debug/decisions",
                    200,
                    decision(
                            "\"by_session\":true,",
                            candidate("a", 9, null),
                            candidate("b", 7, null)));
            final String out = explain(stub, "r").out();
            assertTrue(out.contains("costs 9; it had the last request of the session"), out);
            assertFalse(out.contains("temperature draws"), out);
            assertTrue(out.contains("cheapest other b/0 would have cost less by 2 blocks"), out);
        }
    }

    @Test
    void whatTheEngineStatesOfABatchIsNotComparedAndNoAlarm() throws Exception {
        final String stated =
                "\"predicted_cached_tokens\":16,\"engine_cached_tokens\":48,"
                        + "\"engine_prompt_tokens\":110,";
        try (StubServer stub = new StubServer()) {
            stub.page(
                    "/debug/decisions",
                    200,
                    decision("\"prompts\":3," + stated, candidate("a", 9, null)));
            final String out = explain(stub, "r").out();
            assertTrue(out.contains("  64 tokens of 3 prompts, 4 whole blocks"), out);
            assertTrue(
                    out.contains(
                            "cached tokens: 16 predicted, 48 by the engine: not compared, a batch"
                                    + " of 3 prompts\n"),
                    out);
            assertFalse(out.contains("kvasir doctor"), out);
            final JsonNode json = Json.parse(explain(stub, "r", "--json").out());
            assertTrue(json.at("/decisions/0/engine_minus_predicted_tokens").isNull(), out);

            for (String one : List.of("", "\"prompts\":1,")) {
                stub.page("/debug/decisions", 200, decision(one + stated, candidate("a", 9, null)));
                final String alone = explain(stub, "r").out();
                assertTrue(alone.contains("  64 tokens, 4 whole blocks"), alone);
                assertTrue(alone.contains("48 by the engine: 32 more\n"), alone);
                assertTrue(
                        alone.contains("the engine counts 110 prompt tokens, the gateway 64"),
                        alone);
            }
        }
    }

    @Test
    void tenThousandCandidatesAreCutAndCounted() throws Exception {
        try (StubServer stub = new StubServer()) {
            final String[] many = new String[10_001];
            many[0] = candidate("a", 1, null);
            for (int i = 1; i < many.length; i++) {
                many[i] = candidate("w" + i, i + 1, i % 2 == 0 ? "unavailable" : null);
            }
            stub.page("/debug/decisions", 200, decision("", many));
            final String out = explain(stub, "r", "--rows=3").out();
            assertTrue(out.contains("\n4998 costlier candidates are left out (--rows)\n"), out);
            assertTrue(out.contains("w2/0, w4/0, w6/0 and 4997 more\n"), out);
            assertTrue(out.lines().count() < 20, out);
        }
    }

    @Test
    void answersThatAreNoDecisionsAreOneLine(@TempDir Path folder) throws Exception {
        final Path token = Files.writeString(folder.resolve("token"), "\n s3cret \nother\n");
        try (StubServer stub = new StubServer()) {
            assertFails(explain(stub), "answered 404: no such page; is --url the admin port");
            stub.page("/debug/decisions", 401, "{\"error\":{\"message\":\"who?\\u001b\"}}");
            assertFails(
                    explain(stub),
                    "answered 401: who??; give the gateway's admin token by --token-file");
            assertFails(
                    explain(stub, "--token=s3cret"),
                    "answered 401: who??; the token of --token was refused: give the gateway's"
                            + " admin token");
            assertFails(
                    explain(stub, "--token-file=" + token),
                    "; the token of --token-file " + token + ", line 2 was refused");
            stub.page("/debug/decisions", 403, "no");
            assertFails(explain(stub, "--token=s3cret"), "; the token of --token was refused");
            assertFails(explain(stub), "answered 403: no; give");
            stub.page(
                    "/debug/decisions",
                    403,
                    "{\"error\":{\"message\":\"without an admin token, no\"}}");
            for (CommandRun run : List.of(explain(stub, "--token=s3cret"), explain(stub))) {
                assertFails(run, "answered 403: without an admin token, no");
                assertFalse(run.err().contains("was refused"), run.err());
            }
            for (String hostile :
                    List.of("", "[]", "7", "{", "\"x\"", "<html>", "[".repeat(5_000))) {
                stub.page("/debug/decisions", 200, hostile);
                assertFails(explain(stub), "something else than a JSON object");
            }
            stub.page("/debug/decisions", 200, "{\"decisions\":[7,{\"candidates\":[[],3,{}]}]}");
            assertEquals(0, explain(stub, "r").exitCode());
            assertEquals(0, explain(stub, "r", "--token-file=" + token).exitCode());
            assertEquals("Bearer s3cret", stub.authorization("/debug/decisions"));
            assertEquals(2, explain(stub, "--token=a", "--token-file=" + token).exitCode());
            assertEquals(2, explain(stub, "--rows=0").exitCode());
            assertEquals(2, explain(stub, "--timeout-s=0").exitCode());
            assertEquals(2, explain(stub, " ").exitCode());
        }
        assertEquals(2, CommandRun.of("explain", "--url=localhost:9000").exitCode());
        assertFails(CommandRun.of("explain", "--url=http://127.0.0.1:1"), "cannot reach the admin");
    }

    private static void assertFails(CommandRun run, String text) {
        assertEquals(3, run.exitCode(), run.out() + run.err());
        assertEquals("", run.out());
        assertEquals(1, run.err().lines().count(), run.err());
        assertTrue(run.err().contains(text), run.err());
    }
}
