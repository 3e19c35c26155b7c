package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
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
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;

class StatusCommandTest {
    private static final String METRICS =
            """
            # HELP kvasir_build_info x
            kvasir_build_info{version="9.9"} 1
            process_start_time_seconds 1.0
            kvasir_requests_total{model="m",mode="kv",route="chat",status="200"} 40
            kvasir_requests_total{model="m",mode="kv",route="chat",status="429"} 10
            kvasir_requests_total{model="m",mode="",route="health",status="200"} 1000
            kvasir_upstream_attempts_total{outcome="ok",worker="w\\"1"} 40
            kvasir_snapshots_total{kind="own",outcome="taken"} 3
            kvasir_snapshots_total{kind="own",outcome="failed"} 1
            kvasir_snapshot_last_failures{kind="own"} 1
            kvasir_snapshots_total{kind="shared",outcome="failed"} 4
            kvasir_snapshot_last_failures{kind="shared"} 0
            kvasir_prefill_pool_snapshot_last_failures{kind="own"} 2
            kvasir_prefill_pool_failures_total 3
            kvasir_snapshot_age_seconds{kind="own"} 90
            kvasir_resource_used{resource="index-bytes"} 90
            kvasir_resource_limit{resource="index-bytes"} 100
            kvasir_resource_used{resource="event-ring"} 1
            kvasir_resource_limit{resource="event-ring"} 100
            no metric at all
            kvasir_failures_total{ NaN
            """;

    private static String worker(String name, String more) {
        return "{\"worker\":\""
                + name
                + "\",\"dp_rank\":0,\"available\":true,\"health\":\"up\",\"pool\":\"main\","
                + more
                + "\"index_state\":\"exact\",\"events\":{\"age_ms\":5}}";
    }

    private static StubServer stub(String... workers) throws IOException {
        return new StubServer()
                .page("/ready", 200, "{\"status\":\"ready\"}")
                .page("/metrics", 200, METRICS)
                .page(
                        "/debug/workers",
                        200,
                        "{\"model\":\"m\",\"mode\":\"kv\",\"block_size\":16,\"workers\":["
                                + String.join(",", workers)
                                + "],\"replicas\":{\"heard_of\":2,\"bookings\":7},\"event_plane\":"
                                + "{\"problem\":\"no nats\",\"unknown_workers\":[{}]}}");
    }

    private static CommandRun run(String command, String url, String... more) {
        final List<String> words = new ArrayList<>(List.of(command, "--url=" + url));
        words.addAll(List.of(more));
        return CommandRun.of(words.toArray(String[]::new));
    }

    @Test
    @SuppressWarnings("try") // engines end before the test does
    void aWorkerThatDiesIsFirstAndTheGatewayIsNotReadyWithoutAny() throws Exception {
        try (SimEngine dying = SimEngine.start(SimConfig.builder().build());
                SimEngine living = SimEngine.start(SimConfig.builder().build());
                GatewayServer gateway =
                        GatewayServer.start(
                                GatewayConfig.builder()
                                        .set(GatewaySettings.MODEL, SimModel.NAME)
                                        .set(GatewaySettings.PORT, 0)
                                        .set(GatewaySettings.ADMIN_PORT, 0L)
                                        .set(GatewaySettings.ADMIN_TOKEN, new Secret("t"))
                                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMillis(50))
                                        .worker(WorkerConfig.parse(dying.url() + ",name=zz"))
                                        .worker(
                                                WorkerConfig.parse(
                                                        living.url()
                                                                + ",name=aa,events="
                                                                + living.eventsEndpoint(0)
                                                                + ",replay="
                                                                + living.replayEndpoint(0)))
                                        .build())) {
            final String url = gateway.adminUrl();
            assertEquals(3, run("status", url).exitCode());
            final String well = until("status", url, out -> isWell(out, url));
            assertTrue(well.startsWith("kvasir "), well);
            assertTrue(well.contains("\nmode kv, blocks of 16 tokens"), well);
            assertTrue(well.contains("\naa/0 "), well);
            assertTrue(well.contains("  none "), well);
            assertFalse(well.contains("\u001b"), well);
            dying.close();
            final String ill = until("status", url, StatusCommandTest::isOnlyFirstDown);
            assertTrue(ill.indexOf("\nzz/0") < ill.indexOf("\naa/0"), ill);
            living.close();
            until("status", url, out -> out.contains("! not ready: no worker can be used"));
            final CommandRun none = run("status", url, "--token=t", "--json");
            assertEquals(1, none.exitCode());
            assertFalse(Json.parse(none.out()).path("ready").asBoolean());
        }
    }

    /** Readiness is a page of its own, of an earlier moment than that of the workers. */
    private static boolean isWell(String out, String url) {
        return out.contains("2 workers, all as they should be")
                && out.contains(" at " + url + ": ready, up ")
                && out.contains("  exact ");
    }

    /** Not the other one, whose probe or events may be late on a busy machine. */
    private static boolean isOnlyFirstDown(String out) {
        return out.contains("1 not as they should be")
                && out.lines()
                        .anyMatch(line -> line.startsWith("zz/0 ") && line.contains("down: "));
    }

    private static String until(String command, String url, Predicate<String> shown) {
        final AtomicReference<String> out = new AtomicReference<>();
        Eventually.holds(
                out::get,
                () -> {
                    out.set(run(command, url, "--token=t").out());
                    return shown.test(out.get());
                });
        return out.get();
    }

    @Test
    void everythingThatIsNotAsItShouldBeIsSaid() throws Exception {
        try (StubServer stub =
                stub(
                        worker("a", "\"active_requests\":9,"),
                        worker("b", "\"engine_block_size\":32,"),
                        worker("c", "\"tokenizer\":\"differs\","),
                        worker("d", "\"draining\":true,"),
                        worker("g", "\"other_models\":\"x, y\","),
                        "{\"worker\":\"e\\u001b\",\"health\":\"ejected\",\"last_error\":\"3 x"
                                + " 500\"}",
                        "{\"worker\":\"f\",\"available\":true,\"health\":\"up\",\"events\":{\"problem\":\"no"
                            + " publisher\"},\"index_state\":\"stale\"}",
                        "7")) {
            final String out = run("status", stub.url()).out();
            assertTrue(out.startsWith("kvasir 9.9 at " + stub.url() + ": ready, up "), out);
            assertTrue(out.contains("\n! model m: event plane: no nats\n"), out);
            assertTrue(out.contains("events of 1 workers that no event-worker= names"), out);
            assertTrue(out.contains("\n! index-bytes: 90 of 100 in use (90 %)\n"), out);
            assertFalse(out.contains("event-ring"), out);
            assertTrue(out.contains("\n! snapshots (own): 1 failed; see its log\n"), out);
            assertFalse(out.contains("! snapshots (shared)"), out); // its last one was saved
            assertTrue(out.contains("\n! prefill snapshots (own): 2 failed; see its log\n"), out);
            assertTrue(
                    out.contains("\n! 3 events or bookings of prefill workers could not be"), out);
            assertTrue(
                    out.contains("snapshots (own): 3 taken, 1 failed, the newest 1 min old"), out);
            assertTrue(out.contains("replicas: 2 others heard of, 7 requests of theirs"), out);
            assertTrue(out.contains("8 workers, 6 not as they should be"), out);
            assertTrue(out.contains("blocks of 32 tokens: set block-size to 32"), out);
            assertTrue(out.contains("computes other tokens: is tokenizer the model's own?"), out);
            assertTrue(out.contains("serves x, y: set model to a name that it serves"), out);
            assertTrue(out.contains("ejected: 3 x 500"), out);
            assertTrue(out.contains("e?/0"), out);
            assertTrue(out.contains("events: no publisher"), out);
            assertTrue(out.indexOf("\na/0") > out.indexOf("\nf/0"), out);
            assertTrue(out.indexOf("\nd/0") > out.indexOf("\na/0"), out);
        }
    }

    @Test
    void aLimitIsNearlyReachedWhateverRoomOtherModelsAndPoolsHave() throws Exception {
        final String page =
                """
                kvasir_resource_used{resource="active-requests",model="m"} 100
                kvasir_resource_used{resource="active-requests",model="n"} 0
                kvasir_resource_limit{resource="active-requests",model="m"} 100
                kvasir_resource_limit{resource="active-requests",model="n"} 100
                kvasir_prefill_pool_resource_used{resource="index-blocks",model="m"} 0
                kvasir_prefill_pool_resource_used{resource="index-blocks",model="n"} 40
                kvasir_prefill_pool_resource_limit{resource="index-blocks",model="m"} 50
                kvasir_prefill_pool_resource_limit{resource="index-blocks",model="n"} 50
                kvasir_resource_used{resource="index-blocks",model="n"} 40
                kvasir_resource_limit{resource="index-blocks",model="n"} 51
                kvasir_resource_used{resource="without-limit",model="n"} 40
                """;
        final List<String> expected =
                List.of(
                        "model m: active-requests: 100 of 100 in use (100 %)",
                        "model n: prefill index-blocks: 40 of 50 in use (80 %)");
        try (StubServer stub = stub(worker("a", "")).page("/metrics", 200, page)) {
            for (String[] words : new String[][] {{"status"}, {"top", "--once"}}) {
                final String out =
                        run(words[0], stub.url(), words.length > 1 ? words[1] : "--rows=5").out();
                assertEquals(
                        expected,
                        out.lines()
                                .filter(line -> line.contains(" in use ("))
                                .map(line -> line.substring("! ".length()))
                                .toList(),
                        out);
            }
        }
    }

    @Test
    void whatOthersLoadAWorkerWithAndWhetherItIsFullIsShown() throws Exception {
        try (StubServer stub =
                stub(
                        worker("a", "\"engine_load\":{\"others_requests\":31},"),
                        worker(
                                "b",
                                "\"engine_load\":null,\"busy\":\"full\",\"busy_reason\":\"status"
                                        + " 429\","))) {
            final String out = run("status", stub.url()).out();
            assertTrue(out.contains("others'"), out);
            assertTrue(out.contains("  31  "), out);
            assertTrue(out.contains("full: status 429"), out);
            assertTrue(out.contains("2 workers, 1 not as they should be"), out);
            final JsonNode json = Json.parse(run("status", stub.url(), "--json").out());
            assertEquals(31, json.at("/workers/1/others_requests").asInt());
            assertEquals("full", json.at("/workers/0/busy").asText());
            assertTrue(json.at("/workers/0/others_requests").isNull());
        }
    }

    private static String queues(int requests, int tokens, int oldestMs) {
        return "\"queues\":{\"main\":{\"requests\":"
                + requests
                + ",\"tokens\":"
                + tokens
                + ",\"oldest_ms\":"
                + oldestMs
                + ",\"limits\":{\"queue-max-requests\":10,\"queue-max-tokens\":1000,"
                + "\"queue-max-wait-ms\":30000},\"refused\":{\"queue_full\":3,\"deadline\":0,"
                + "\"cancelled\":1}}}";
    }

    private static String queuePage(String queues) {
        return "{\"model\":\"m\",\"mode\":\"kv\",\"block_size\":16,\"workers\":["
                + worker("a", "")
                + "],"
                + queues
                + "}";
    }

    @Test
    void aQueueIsShownAndComesFirstWhenItIsNearlyFullOrSlow() throws Exception {
        try (StubServer stub = stub()) {
            stub.page("/debug/workers", 200, queuePage(queues(7, 799, 14_999)));
            final String line =
                    "\nmodel m: queue: 7 of 10 requests wait, 799 of 1000 tokens, the oldest for"
                            + " 15.0 s of 30.0 s; refused so far: 3 queue_full, 1 cancelled\n";
            for (String[] command : new String[][] {{"status"}, {"top", "--once"}}) {
                final String well =
                        run(command[0], stub.url(), command.length > 1 ? command[1] : "--rows=5")
                                .out();
                assertTrue(well.contains(line), well);
                assertFalse(well.contains("! model m: queue"), well);
            }
            stub.page("/debug/workers", 200, queuePage(queues(8, 800, 15_000)));
            for (String command : List.of("status", "top")) {
                final String ill =
                        command.equals("top")
                                ? run(command, stub.url(), "--once").out()
                                : run(command, stub.url()).out();
                final String first =
                        "! model m: queue: 8 requests wait, queue-max-requests=10 (80 %)\n"
                            + "! model m: queue: 800 tokens wait, queue-max-tokens=1000 (80 %)\n"
                            + "! model m: queue: the oldest request waits for 15.0 s,"
                            + " queue-max-wait-ms=30000\n";
                assertTrue(ill.contains(first), ill);
                assertEquals(ill.indexOf("\n! ") + 1, ill.indexOf(first), "first: " + ill);
            }
            final JsonNode json = Json.parse(run("status", stub.url(), "--json").out());
            assertEquals(8, json.at("/routers/queues/main/requests").asInt());
            assertTrue(json.at("/findings/0").asText().contains("queue-max-requests=10"));
            stub.page("/debug/workers", 200, queuePage("\"queues\":{\"main\":7,\"x\":null}"));
            assertEquals(0, run("status", stub.url()).exitCode());
            stub.page("/debug/workers", 200, queuePage("\"queues\":[1]"));
            assertEquals(0, run("status", stub.url()).exitCode());
        }
    }

    @Test
    @SuppressWarnings("try") // the engine ends before the test does
    void theQueueOfARunningGatewayIsShown() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().build());
                GatewayServer gateway =
                        GatewayServer.start(
                                GatewayConfig.builder()
                                        .set(GatewaySettings.MODEL, SimModel.NAME)
                                        .set(GatewaySettings.PORT, 0)
                                        .set(GatewaySettings.ADMIN_PORT, 0L)
                                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                        .set(RouterSettings.QUEUE_MAX_REQUESTS, 17)
                                        .worker(WorkerConfig.parse(engine.url() + ",name=aa"))
                                        .build())) {
            final String out = run("status", gateway.adminUrl()).out();
            assertTrue(
                    out.contains(
                            "\nqueue: 0 of 17 requests wait, 0 of 16777216 tokens, the oldest for"
                                    + " 0 ms of 30.0 s; refused so far: none\n"),
                    out);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"se\ncret", "se cret", "se\u007fcret", "se\u0416cret"})
    void aTokenThatNoHeaderCanCarryIsNamedByItsOptionAndNotShown(String token, @TempDir Path dir)
            throws Exception {
        final Path file = Files.writeString(dir.resolve("token"), token.replace('\n', '\t'));
        for (String option : List.of("--token=" + token, "--token-file=" + file)) {
            final CommandRun run = run("status", "http://127.0.0.1:1", option);
            assertEquals(2, run.exitCode(), run.err());
            assertTrue(
                    run.err().startsWith("kvasir status: " + option.split("=", -1)[0]), run.err());
            assertTrue(run.err().contains(": the token has a blank, a line end"), run.err());
            assertFalse(run.err().contains("cret"), run.err());
        }
    }

    @Test
    void topHasAveragesFirstAndThenRates() throws Exception {
        try (StubServer stub = stub(worker("w\\\"1", ""))) {
            final CommandRun run = run("top", stub.url(), "--watch=0.01", "--count=3");
            assertEquals(0, run.exitCode(), run.err());
            final String out = run.out();
            assertEquals(3, out.split("kvasir 9.9 at", -1).length - 1, out);
            assertEquals(1, out.split("since its start: ", -1).length - 1, out);
            assertTrue(out.contains(": 0.0 requests/s (0.0 refused or failed), 0.0 dec"), out);
            final JsonNode once =
                    Json.parse(run("top", stub.url(), "--once", "--json").out()).path("rates");
            assertTrue(once.path("since_start").asBoolean());
            final double perRequest = once.path("seconds").asDouble() / 50;
            assertEquals(1 / perRequest, once.path("requests_per_s").asDouble(), 1e-9);
            assertEquals(0.2 / perRequest, once.path("refused_per_s").asDouble(), 1e-9);
            assertTrue(once.path("hit_rate").isNull());
        }
    }

    @Test
    void topShowsTheRatesOfAWorkerOnceWhateverRanksItHas() throws Exception {
        final String page =
                METRICS
                        + """
                        kvasir_upstream_attempts_total{outcome="ok",worker="w"} 40
                        kvasir_stated_prompt_tokens_total{worker="w"} 100
                        kvasir_engine_cached_tokens_total{worker="w"} 40
                        """;
        final String second = worker("w", "").replace("\"dp_rank\":0", "\"dp_rank\":1");
        try (StubServer stub = stub(worker("w", ""), second, worker("x", ""))) {
            stub.page("/metrics", 200, page);
            final String out = run("top", stub.url(), "--once").out();
            assertEquals(
                    List.of(
                            "w/0 main in use up exact 0 0 0 0.0 40.0 %",
                            "w/1 main in use up exact 0 0 0",
                            "x/0 main in use up exact 0 0 0 0.0 -"),
                    out.lines()
                            .filter(line -> line.matches("[wx]/\\d .*"))
                            .map(line -> line.replaceAll(" +", " "))
                            .toList(),
                    out);
            final JsonNode workers =
                    Json.parse(run("top", stub.url(), "--once", "--json").out()).path("workers");
            assertTrue(workers.at("/0/sent_per_s").asDouble() > 0, workers.toString());
            assertEquals(0.4, workers.at("/0/hit_rate").asDouble(), 1e-9);
            assertTrue(workers.at("/1/sent_per_s").isNull(), workers.toString());
            assertTrue(workers.at("/1/hit_rate").isNull(), workers.toString());
            assertEquals(0, workers.at("/2/sent_per_s").asDouble(-1));
            assertTrue(workers.at("/2/hit_rate").isNull(), workers.toString());
            assertFalse(run("status", stub.url(), "--json").out().contains("sent_per_s"));
        }
    }

    @Test
    void tenThousandWorkersAreSortedCutAndCounted() throws Exception {
        final String[] many = new String[10_000];
        for (int i = 0; i < many.length; i++) {
            many[i] = worker("w" + i, "\"active_requests\":" + i + ",");
        }
        many[77] = "{\"worker\":\"bad\",\"health\":\"down\"}";
        try (StubServer stub = stub(many)) {
            for (String command : List.of("status", "top")) {
                final String out =
                        command.equals("top")
                                ? run(command, stub.url(), "--once", "--rows=3").out()
                                : run(command, stub.url(), "--rows=3").out();
                assertTrue(
                        out.contains("10000 workers, 1 not as they should be; 9997 left out"), out);
                assertTrue(out.indexOf("\nbad/0") < out.indexOf("\nw9999/0"), out);
                assertTrue(out.contains("\nw9998/0"), out);
                assertFalse(out.contains("w9997/0"), out);
                assertTrue(out.lines().count() < 25, out);
            }
        }
    }

    @Test
    void podsAndRanksWithLongNamesAreDifferentRows() throws Exception {
        final String pod = "vllm-llama-3-70b-instruct-deployment-7f9c8d6b5d-";
        try (StubServer stub =
                stub(
                        worker(pod + "x2k4q", ""),
                        worker(pod + "x2k4q", "").replace("\"dp_rank\":0", "\"dp_rank\":1"),
                        worker(pod + "p8j7z", ""))) {
            for (String command : List.of("status --rows=9", "top --once")) {
                final String[] words = command.split(" ", -1);
                final String out = run(words[0], stub.url(), words[1]).out();
                for (String row : List.of("-x2k4q/0 ", "-x2k4q/1 ", "-p8j7z/0 ")) {
                    assertEquals(1, out.split(row, -1).length - 1, out);
                }
            }
        }
    }

    @Test
    void hostilePagesAreOneLine() throws Exception {
        try (StubServer stub = stub()) {
            assertTrue(run("status", stub.url()).out().contains("! it has no workers\n"));
            for (String hostile :
                    List.of("", "[]", "{", "{\"workers\":[", "{\"workers\":[{]}", "<html>")) {
                stub.page("/debug/workers", 200, hostile);
                final CommandRun run = run("status", stub.url());
                assertEquals(3, run.exitCode(), hostile + run.out());
                assertEquals(1, run.err().lines().count(), run.err());
            }
            stub.page(
                    "/debug/workers",
                    200,
                    "{\"workers\":[],\"mode\":\"x\",\"models\":3,\"block_size\":\"x\"}");
            stub.page("/metrics", 200, "kvasir_requests_total{a=\nkvasir_build_info{version=\"x");
            stub.page("/ready", 503, "{\"status\":\"loading\"}");
            final CommandRun run = run("top", stub.url(), "--once");
            assertEquals(1, run.exitCode(), run.err());
            assertTrue(run.out().startsWith("kvasir ? at "), run.out());
        }
        for (String wrong : List.of("--rows=0", "--count=2", "--watch=-1", "--url=x")) {
            assertEquals(2, run("status", "http://127.0.0.1:1", wrong).exitCode(), wrong);
        }
        assertEquals(3, run("top", "http://127.0.0.1:1").exitCode());
    }

    @ParameterizedTest
    @CsvSource({
        "top --once --count=2, --once and --count 2: one of them",
        "top --once --watch=3, --once and --watch 3: one of them",
        "top --watch=0 --count=2, --count 2 needs a --watch of more than 0",
        "status --count=2, --count 2 needs --watch"
    })
    void howOftenIsSaidInOneWay(String line, String words) {
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(2, run.exitCode());
        assertEquals(words, run.err().lines().findFirst().orElseThrow().split(": ", 2)[1]);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '~',
            value = {
                "/ready | {'ready':7} | it has no 'status'",
                "/ready | {'status':7} | its 'status' is no text",
                "/debug/workers | {'mode':'kv'} | it has no 'workers'",
                "/debug/workers | {'mode':'kv','workers':'x'} | its 'workers' is no list",
                "/debug/workers | {'workers':[]} | it has no 'mode'",
                "/debug/workers | {'workers':[],'mode':5} | its 'mode' is no text"
            })
    void pagesOfAnotherServerAreNoStateOfAGateway(String path, String page, String wrong)
            throws Exception {
        try (StubServer stub = stub()) {
            stub.page(path, 200, page.replace('\'', '"'));
            for (String command : List.of("status", "top --once", "status --json")) {
                final List<String> words = new ArrayList<>(List.of(command.split(" ", -1)));
                words.add("--url=" + stub.url());
                final CommandRun run = CommandRun.of(words.toArray(String[]::new));
                assertEquals(3, run.exitCode(), run.out());
                assertEquals("", run.out());
                assertEquals(
                        ("kvasir %s: %s is not the answer of a Kvasir gateway: %s; is --url the"
                                        + " admin port of a gateway?")
                                .formatted(
                                        words.getFirst(),
                                        stub.url() + path,
                                        wrong.replace('\'', '"')),
                        run.err().strip());
            }
        }
    }
}
