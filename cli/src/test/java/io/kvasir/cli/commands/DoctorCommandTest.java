package io.kvasir.cli.commands;

import static io.kvasir.cli.commands.DoctorRuns.BLOCK;
import static io.kvasir.cli.commands.DoctorRuns.LONG;
import static io.kvasir.cli.commands.DoctorRuns.SHORT;
import static io.kvasir.cli.commands.DoctorRuns.assertFailed;
import static io.kvasir.cli.commands.DoctorRuns.assertOfSilence;
import static io.kvasir.cli.commands.DoctorRuns.assertResult;
import static io.kvasir.cli.commands.DoctorRuns.checks;
import static io.kvasir.cli.commands.DoctorRuns.doctor;
import static io.kvasir.cli.commands.DoctorRuns.engine;
import static io.kvasir.cli.commands.DoctorRuns.ofConfiguration;
import static io.kvasir.cli.commands.DoctorRuns.spec;
import static io.kvasir.cli.commands.DoctorRuns.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.RawServer;
import io.kvasir.cli.StubServer;
import io.kvasir.cli.console.Json;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

@Order(0) // takes longest: begins before all others
@Execution(ExecutionMode.CONCURRENT) // each waits for a doctor of its own
class DoctorCommandTest {
    @Test
    void anEngineAsItShouldBePassesEverything() {
        try (SimEngine engine = engine(SimConfig.builder().blockSize(BLOCK))) {
            final CommandRun run =
                    doctor(spec(engine), "--model=kvasir-sim", "--tokenizer=sim", LONG);
            assertEquals(0, run.exitCode(), run.out() + run.err());
            final String out = run.out();
            assertTrue(out.startsWith("e " + engine.url() + "\nPASS  reachable: "), out);
            for (String name :
                    List.of(
                            "model",
                            "token ids",
                            "chat template",
                            "probe prompt",
                            "events arrive",
                            "events are numbered",
                            "block size",
                            "hash chain",
                            "replay",
                            "cached tokens")) {
                assertTrue(out.contains("\nPASS  " + name + ": "), name + " in " + out);
            }
            assertTrue(out.contains("\nPASS  cached tokens: 64 of 65; expected: 64 of 65\n"), out);
            assertTrue(out.contains("\n0 failed, "), out);
            assertFalse(out.contains("\u001b"), out);
        }
    }

    @Test
    void ranksAreTestedOneByOneAndWorkersOfAConfigurationByItsSettings(@TempDir Path folder)
            throws Exception {
        final int ports = FreePorts.run(4); // those of the second rank follow
        try (SimEngine ranks =
                        engine(
                                SimConfig.builder()
                                        .model("m")
                                        .blockSize(32)
                                        .dataParallelSize(2)
                                        .eventsPort(ports)
                                        .replayPort(ports + 2));
                SimEngine other = engine(SimConfig.builder().model("n").eventsPort(-1))) {
            final Path config =
                    Files.writeString(
                            folder.resolve("gateway.yaml"),
                            "model: m\ntokenizer: sim\nblock-size: 32\nmodels:\n  - name: n\n"
                                    + "    block-size: 16\nworkers:\n  - url: "
                                    + ranks.url()
                                    + "\n    name: two\n    dp: 2\n    events: "
                                    + ranks.eventsEndpoint(0)
                                    + "\n    replay: "
                                    + ranks.replayEndpoint(0)
                                    + "\nworkers-file: more.yaml\nttl-secs: 9\n");
            Files.writeString(
                    folder.resolve("more.yaml"),
                    "- url: " + other.url() + "\n  name: load\n  model: n\n");
            final CommandRun run = doctor(config.toString(), "--json", LONG);
            assertTrue(run.err().contains("warning: ttl-secs has no effect"), run.err());
            final JsonNode engines = Json.parse(run.out()).path("engines");
            assertEquals(3, engines.size(), engines.toString());
            assertEquals("two/0", engines.path(0).path("engine").asText());
            assertEquals("two/1", engines.path(1).path("engine").asText());
            assertEquals("load", engines.path(2).path("engine").asText());
            assertFalse(engines.path(1).toString().contains("FAIL"), engines.toString());
            final String load = engines.path(2).toString();
            assertTrue(load.contains("\"check\":\"events arrive\",\"result\":\"SKIP\""), load);
            assertTrue(load.contains("no events= is named"), load);
            assertTrue(load.contains("\"check\":\"cached tokens\",\"result\":\"PASS\""), load);
        }
    }

    @Test
    void anotherBlockSizeIsNamedWithTheRightOne() {
        try (SimEngine engine = engine(SimConfig.builder().blockSize(BLOCK))) {
            final CommandRun run = doctor(spec(engine), "--block-size=32", "--json", LONG);
            assertEquals(1, run.exitCode(), run.err());
            final Map<String, JsonNode> checks = checks(run);
            assertFailed("block size", "16 by its events", "set block-size to 16", checks);
            assertResult("SKIP", "hash chain", checks);
            assertResult("PASS", "cached tokens", checks);
            assertResult("SKIP", "token ids", checks);
        }
    }

    @Test
    void anotherChatTemplateIsFoundAlthoughTheTokenizerIsTheSame(@TempDir Path folder)
            throws Exception {
        for (String name : List.of("tokenizer.json", "tokenizer_config.json")) {
            Files.writeString(
                    folder.resolve(name),
                    Files.readString(SimModel.files().resolve(name))
                            .replace("assistant\\n", "assistant \\n")
                            .replace("assistant\\\\n", "assistant \\\\n"));
        }
        try (SimEngine engine = engine(SimConfig.builder())) {
            final CommandRun run = doctor(spec(engine), "--tokenizer=" + folder, "--json", LONG);
            assertEquals(1, run.exitCode(), run.out());
            final Map<String, JsonNode> checks = checks(run);
            assertFailed("chat template", "from token ", "chat_template.jinja", checks);
            assertResult("PASS", "token ids", checks);
            assertResult("PASS", "hash chain", checks);
        }
    }

    @Test
    void aClockThatIsAnHourOffIsFound() throws Exception {
        final String date =
                DateTimeFormatter.RFC_1123_DATE_TIME.format(
                        Instant.now().plusSeconds(3600).atOffset(ZoneOffset.UTC));
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1));
                RawServer server =
                        new RawServer(
                                (line, body) ->
                                        RawServer.forwarded(
                                                engine.url(),
                                                "date: " + date + "\r\n",
                                                line,
                                                body))) {
            final CommandRun run = doctor(server.url(), "--json", LONG);
            assertEquals(1, run.exitCode(), run.err());
            final Map<String, JsonNode> checks = checks(run);
            assertFailed("clock", " s ahead of this machine", "NTP", checks);
            assertResult("PASS", "reachable", checks);
            assertResult("PASS", "probe prompt", checks);
        }
    }

    @Test
    void aServerThatHangsOrIsNotThereIsGivenUpAfterTheLimit() throws Exception {
        try (RawServer hangs = new RawServer((_, _) -> null);
                RawServer drips =
                        new RawServer(
                                (line, _) ->
                                        line.endsWith("/health")
                                                ? RawServer.answer(200, "", new byte[0])
                                                : "HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\n1"
                                                        .getBytes(StandardCharsets.ISO_8859_1))) {
            final CommandRun run = doctor(hangs.url(), "--json", "--timeout-s=1");
            assertEquals(1, run.exitCode(), run.err());
            final Map<String, JsonNode> checks = checks(run);
            assertFailed("reachable", "has not answered in 1000 ms", "without /v1", checks);
            assertEquals(1, checks.size(), checks.toString());
            assertOfSilence(DoctorCommandTest::assertDrips, drips.url(), "--json");
            final CommandRun none = doctor("http://127.0.0.1:1");
            assertEquals(1, none.exitCode());
            assertTrue(none.out().contains("FAIL  reachable: "), none.out());
        }
    }

    private static void assertDrips(CommandRun run) {
        final Map<String, JsonNode> checks = checks(run);
        assertResult("PASS", "reachable", checks);
        assertResult("FAIL", "model", checks);
        assertResult("FAIL", "probe prompt", checks);
        assertResult("SKIP", "cached tokens", checks);
    }

    @Test
    void hostileBodiesAreFailuresInOneLineEach() throws Exception {
        for (String hostile :
                List.of(
                        "",
                        "{\"data\":7,\"tokens\":[1e99,-1],\"usage\":[]}",
                        "{\"tokens\":\"\u001b[2J\u202e\",\"data\":[[],{\"id\":{}}]}",
                        "[".repeat(100_000),
                        "{\"tokens\":[" + "1,".repeat(100_000) + "1]}",
                        "\u0000\u001b]0;title\u0007",
                        """
                        vllm:cache_config_info{block_size="99999999999"} 1
                        vllm:cache_config_info{block_size="0"} 1
                        sglang:page_size -5
                        """)) {
            try (RawServer server =
                    new RawServer(
                            (_, _) ->
                                    RawServer.answer(
                                            200, "", hostile.getBytes(StandardCharsets.UTF_8)))) {
                final CommandRun run = doctor(server.url(), "--tokenizer=sim", LONG);
                assertEquals(1, run.exitCode(), hostile + run.err());
                assertEquals("", run.err());
                assertTrue(run.out().contains("FAIL  model: "), run.out());
                assertTrue(run.out().contains("FAIL  token ids: "), run.out());
                assertFalse(run.out().matches("(?s).*[\u0000-\u0008\u001b\u202e].*"), run.out());
                assertTrue(run.out().lines().allMatch(l -> l.length() < 1_000), run.out());
            }
        }
    }

    @Test
    void wrongCommandLinesAndFilesAreOneLine(@TempDir Path folder) throws Exception {
        assertEquals(2, doctor().exitCode());
        assertEquals(2, doctor("http://h:1/v1").exitCode());
        assertEquals(2, doctor("http://h:1", "--timeout-s=0").exitCode());
        assertEquals(2, doctor("http://h:1", "--block-size=-1").exitCode());
        final CommandRun missing = doctor(folder.resolve("no.yaml").toString());
        assertEquals(3, missing.exitCode());
        assertTrue(missing.err().contains("no such file"), missing.err());
        final Path empty = Files.writeString(folder.resolve("gateway.yaml"), "model: m\n");
        assertEquals(2, doctor(empty.toString(), "--model=m").exitCode());
        final CommandRun none = doctor(empty.toString());
        assertEquals(3, none.exitCode());
        assertTrue(none.err().contains("names no workers"), none.err());
        assertEquals(2, doctor(empty.toString(), "--token=t").exitCode());
        assertEquals(2, doctor("http://h:1,events=tcp://h:2", "--token=t").exitCode());
        assertEquals(2, doctor("http://h:1", "--token=t", "--model=m").exitCode());
        final CommandRun tokenizer = doctor("http://127.0.0.1:1", "--tokenizer=" + folder);
        assertEquals(3, tokenizer.exitCode());
        assertTrue(
                tokenizer
                        .err()
                        .contains(
                                "cannot load the tokenizer: cannot read the model's tokenizer files"
                                        + " at "
                                        + folder
                                        + ": there is no file "
                                        + folder.resolve("tokenizer.json")),
                tokenizer.err());
    }

    private static String queues(String main) {
        return "{\"model\":\"m\",\"mode\":\"kv\",\"block_size\":16,\"workers\":[{\"worker\":\"a\"}],\"queues\":{"
                + main
                + "}}";
    }

    private static String queue(boolean threshold, int requests, int tokens, int oldestMs) {
        return "\"main\":{\"threshold\":"
                + threshold
                + ",\"requests\":"
                + requests
                + ",\"tokens\":"
                + tokens
                + ",\"oldest_ms\":"
                + oldestMs
                + ",\"limits\":{\"queue-max-requests\":10,\"queue-max-tokens\":1000,"
                + "\"queue-max-wait-ms\":30000},\"refused\":{\"queue_full\":3,\"deadline\":0}}";
    }

    private static StubServer gateway(String workers, String metrics) throws Exception {
        return new StubServer()
                .page("/ready", 200, "{\"status\":\"ready\"}")
                .page("/metrics", 200, metrics)
                .page("/debug/workers", 200, workers);
    }

    /** Outcomes of a gateway, by check. */
    private static Map<String, JsonNode> ofGateway(int exitCode, StubServer stub) {
        final CommandRun run = doctor(stub.url(), "--json", LONG);
        assertEquals(exitCode, run.exitCode(), run.out() + run.err());
        final Map<String, JsonNode> checks = new TreeMap<>();
        for (JsonNode check : Json.parse(run.out()).at("/gateways/0/checks")) {
            checks.put(check.path("check").asText(), check);
        }
        return checks;
    }

    @Test
    void aQueueOfAGatewayIsShownWithItsLimitsAndRefusals() throws Exception {
        try (StubServer stub = gateway(queues(queue(true, 7, 799, 14_999)), "")) {
            final Map<String, JsonNode> checks = ofGateway(0, stub);
            assertEquals(
                    Set.of("gateway", "model m: queue room", "model m: queue wait"),
                    checks.keySet());
            final String figures =
                    "7 of 10 requests wait, 799 of 1000 tokens, the oldest for 15.0 s of 30.0 s;"
                            + " refused so far: 3 queue_full";
            assertEquals(figures, checks.get("model m: queue room").path("seen").asText());
            final String text = doctor(stub.url(), LONG).out();
            assertTrue(text.startsWith("kvasir ? " + stub.url() + "\nPASS  gateway: ready"), text);
            assertTrue(text.contains("\nPASS  model m: queue wait: " + figures + "; "), text);
            assertTrue(text.endsWith("\n0 failed, 3 passed, 0 skipped\n"), text);
        }
    }

    @Test
    void aQueueThatIsFullOrSlowFailsAndSaysWhich() throws Exception {
        try (StubServer stub = gateway(queues(queue(true, 10, 20, 30_001)), "")) {
            final Map<String, JsonNode> full = ofGateway(1, stub);
            assertFailed("model m: queue room", "full: 10 of 10", "add workers", full);
            assertFailed("model m: queue wait", "beyond the longest wait: ", "lowered", full);
            stub.page("/debug/workers", 200, queues(queue(true, 2, 800, 15_000)));
            final Map<String, JsonNode> nearly = ofGateway(1, stub);
            assertFailed("model m: queue room", "nearly full: 2 of 10", "add workers", nearly);
            assertFailed("model m: queue wait", "near the longest wait: ", "no worker", nearly);
            stub.page("/debug/workers", 200, queues(queue(true, 0, 0, 0)));
            assertResult("PASS", "model m: queue room", ofGateway(0, stub));
        }
    }

    @Test
    void whereNoneCanWaitTheRequestsThatBusyWorkersCostAreCounted() throws Exception {
        final String busy =
                "kvasir_routing_refused_total{cause=\"all_workers_busy\",model=\"%s\",pool=\"%s\"}"
                        + " 5\n";
        try (StubServer stub = gateway(queues(""), busy.formatted("other", "main"))) {
            assertResult("PASS", "model m: queue", ofGateway(0, stub));
            stub.page("/metrics", 200, busy.formatted("m", "main"));
            final Map<String, JsonNode> off = ofGateway(1, stub);
            assertFailed("model m: queue", "busy: 5", "set queue-threshold", off);
            stub.page("/metrics", 200, busy.formatted("m", "prefill"));
            final Map<String, JsonNode> prefill = ofGateway(1, stub);
            assertResult("PASS", "model m: queue", prefill);
            assertFailed("model m: prefill queue", "busy: 5", "set queue-threshold", prefill);
            stub.page("/metrics", 200, busy.formatted("m", "main"))
                    .page("/debug/workers", 200, queues(queue(false, 0, 0, 0)));
            final Map<String, JsonNode> follow = ofGateway(1, stub);
            assertFailed("model m: queue", "busy: 5", "set queue-threshold", follow);
            assertResult("PASS", "model m: queue room", follow);
            stub.page("/debug/workers", 200, queues(queue(true, 0, 0, 0)));
            assertEquals(3, ofGateway(0, stub).size(), "they wait now");
        }
    }

    @Test
    void aGatewayThatIsNotReadyOrAskedWithoutItsTokenSaysSo() throws Exception {
        try (StubServer stub = gateway(queues(""), "")) {
            stub.page("/ready", 503, "{\"status\":\"draining\"}");
            assertFailed("gateway", "not ready: draining", "kvasir status", ofGateway(1, stub));
            stub.page(
                    "/debug/workers",
                    401,
                    "{\"error\":{\"message\":\"the admin port needs a token\"}}");
            final CommandRun refused = doctor(stub.url(), LONG);
            assertEquals(3, refused.exitCode(), refused.out());
            assertTrue(refused.err().contains("--token-file"), refused.err());
            stub.page("/debug/workers", 200, queues(""));
            assertEquals(1, doctor(stub.url(), "--token=t", LONG).exitCode());
            assertEquals("Bearer t", stub.authorization("/debug/workers"));
        }
    }

    @Test
    void aRunningGatewayIsToldFromAnEngineAndItsQueueIsShown() throws Exception {
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1));
                GatewayServer gateway =
                        GatewayServer.start(
                                GatewayConfig.builder()
                                        .set(GatewaySettings.MODEL, SimModel.NAME)
                                        .set(GatewaySettings.PORT, 0)
                                        .set(GatewaySettings.ADMIN_PORT, 0L)
                                        .set(GatewaySettings.ADMIN_TOKEN, new Secret("t"))
                                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 4_096L)
                                        .worker(WorkerConfig.parse(engine.url().toString()))
                                        .build())) {
            final String url = gateway.adminUrl();
            final CommandRun refused = doctor(url, LONG);
            assertEquals(3, refused.exitCode(), refused.out());
            assertTrue(refused.err().contains("--token-file"), refused.err());
            CommandRun run = doctor(url, "--token=t", LONG);
            while (run.exitCode() != 0) { // until the worker has answered
                assertEquals(1, run.exitCode(), run.err());
                run = doctor(url, "--token=t", LONG);
            }
            assertTrue(
                    run.out()
                            .contains(
                                    "\nPASS  queue room: 0 of 1024 requests wait, 0 of 16777216"
                                            + " tokens, the oldest for 0 ms of 30.0 s; refused so"
                                            + " far: none; "),
                    run.out());
            assertTrue(run.out().contains("\nPASS  queue wait: "), run.out());
            assertTrue(run.out().endsWith("\n0 failed, 3 passed, 0 skipped\n"), run.out());
        }
    }

    @Test
    void aPageThatIsNoGatewaysIsTestedAsAnEngineAndGetsNoToken() throws Exception {
        for (String page :
                List.of("", "[]", "{\"workers\":{}}", "{\"workers\":[]}", "{\"error\":{}}")) {
            for (int status : new int[] {200, 401, 403, 500}) {
                try (StubServer stub = new StubServer().page("/debug/workers", status, page)) {
                    final CommandRun run = doctor(stub.url(), "--json", SHORT);
                    assertEquals(1, run.exitCode(), run.err());
                    assertEquals(1, Json.parse(run.out()).path("engines").size(), run.out());
                    assertEquals("null", stub.authorization("/debug/workers"));
                }
            }
        }
    }

    @Test
    void anEngineIsReachableWhereTheProbeOfAGatewayWouldTakeIt() throws Exception {
        for (int status : new int[] {200, 401, 404}) {
            try (StubServer stub = new StubServer().page("/health", status, "")) {
                assertResult("PASS", "reachable", checks(doctor(stub.url(), "--json", SHORT)));
            }
        }
        for (int status : new int[] {400, 500, 503}) {
            try (StubServer stub = new StubServer().page("/health", status, "")) {
                final CommandRun run = doctor(stub.url(), "--json", SHORT);
                assertFailed("reachable", "answered " + status, "without /v1", checks(run));
                assertEquals(status == 400, run.out().contains("https"), run.out());
            }
        }
    }

    @Test
    void aFileOfWorkersIsReadAndWhatItListsIsTested(@TempDir Path folder) throws Exception {
        final String config = "model: kvasir-sim\nblock-size: 16\nworkers-file: more.yaml\n";
        final Path more = folder.resolve("more.yaml");
        final CommandRun missing = ofConfiguration(folder, config, LONG);
        assertEquals(1, missing.exitCode(), missing.err());
        assertFailed("reachable", "more.yaml", "check its address", store(0, missing));
        assertEquals(0, Json.parse(missing.out()).path("engines").size());
        Files.writeString(more, "[]\n");
        assertFailed(
                "workers", "none", "register", store(0, ofConfiguration(folder, config, LONG)));
        Files.writeString(more, "- url: nonsense\n");
        assertFailed("reachable", "nonsense", "", store(0, ofConfiguration(folder, config, LONG)));
        try (SimEngine engine = engine(SimConfig.builder().eventsPort(-1))) {
            Files.writeString(more, "- url: " + engine.url() + "\n  name: w\n");
            final CommandRun well = ofConfiguration(folder, config, LONG);
            assertEquals(0, well.exitCode(), well.out());
            assertEquals("1: w", store(0, well).get("workers").path("seen").asText());
            assertEquals("w", Json.parse(well.out()).at("/engines/0/engine").asText());
            assertResult("PASS", "cached tokens", checks(well));
        }
    }
}
