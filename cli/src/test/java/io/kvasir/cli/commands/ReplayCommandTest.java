package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.demo.Cluster;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.prompt.chat.SimModel;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalFile;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** A small trace through gateway and simulated engines, over real sockets. */
@Order(0) // takes longest: begins before all others
class ReplayCommandTest {
    private static final int REQUESTS = 60;
    private static final int CONVERSATIONS = 12;

    @TempDir private Path dir;
    private Path trace;

    /** Twelve conversations that take turns; each turn repeats its past and adds one hash id. */
    @BeforeEach
    void writeTrace() throws IOException {
        final List<String> lines = new ArrayList<>();
        for (int i = 0; i < REQUESTS; i++) {
            final int conversation = i % CONVERSATIONS;
            final StringBuilder ids = new StringBuilder();
            final int turn = i / CONVERSATIONS;
            for (int j = 0; j <= turn; j++) {
                ids.append(j == 0 ? "" : ", ").append(1_000 * conversation + j);
            }
            lines.add(
                    "{\"timestamp\": %d, \"input_length\": %d, \"output_length\": 4, \"hash_ids\": [%s]}"
                            .formatted(i * 400L, 512 * turn + 300 + conversation, ids));
        }
        trace = Files.write(dir.resolve("trace.jsonl"), lines);
    }

    @Test
    void everyModeIsMeasuredAndItsForecastsAreExplained() throws IOException {
        final CommandRun run = replay("--modes=kv,random", "--json");
        assertEquals(0, run.exitCode(), run.err());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(2, json.get("modes").size());
        for (JsonNode mode : json.get("modes")) {
            assertEquals(REQUESTS, mode.get("requests").asInt(), mode.toString());
            assertEquals(0, mode.get("errors").asInt(), mode.toString());
            assertTrue(mode.get("ttft_p95_ms").asDouble() >= mode.get("ttft_p50_ms").asDouble());
            assertTrue(mode.get("ttft_p50_ms").asDouble() > 0);
            assertTrue(mode.get("load_spread").asDouble() >= 1);
            final JsonNode prediction = mode.get("prediction");
            assertEquals(REQUESTS, prediction.get("compared").asInt());
            assertEquals(0, prediction.get("unexplained").asInt(), prediction.toString());
            assertEquals(
                    REQUESTS,
                    prediction.get("exact").asInt()
                            + prediction.get("explained_by_events").asInt());
        }
        assertEquals("kv", json.at("/modes/0/mode").asText());
        assertTrue(json.at("/modes/0/hit_rate").asDouble() > 0);
    }

    @Test
    void theTablesNameEveryModeAndTheUnitOfTime() {
        final CommandRun run = replay("--modes=round-robin", "--max-output=1");
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.out().lines().anyMatch(l -> l.startsWith("round-robin ")), run.out());
        assertTrue(run.out().contains("trace time (wall time x 40.0)"), run.out());
        assertTrue(run.out().contains("explained by events"), run.out());
    }

    @Test
    void aRunningGatewayIsAskedForEachModeByHeader() throws Exception {
        final Cluster.Plan plan =
                new Cluster.Plan(
                        "127.0.0.1",
                        0,
                        Cluster.Plan.same(2, () -> SimConfig.builder().speedUp(40).build()),
                        () ->
                                GatewayConfig.builder()
                                        .set(RouterSettings.DECISION_JOURNAL_DIR, dir));
        try (Cluster cluster = Cluster.start(plan, RoutingMode.RANDOM)) {
            final CommandRun run =
                    replay("--modes=round-robin", "--json", "--url=" + cluster.url());
            assertEquals(0, run.exitCode(), run.err());
            final JsonNode json = Json.MAPPER.readTree(run.out());
            assertEquals(cluster.url().toString(), json.get("target").asText());
            final JsonNode workers = json.at("/modes/0/workers");
            assertEquals(REQUESTS / 2, workers.at("/sim-0/requests").asInt(), workers.toString());
            assertEquals(REQUESTS / 2, workers.at("/sim-1/requests").asInt(), workers.toString());
            checkJournal();
        }
        checkJournal(); // also when the router has ended
    }

    @Test
    void theSpreadIsOverTheWorkersOfAllModesOfARunningGateway() throws Exception {
        final AtomicInteger turn = new AtomicInteger();
        final HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext(
                "/",
                exchange -> {
                    exchange.getRequestBody().readAllBytes();
                    final String mode = exchange.getRequestHeaders().getFirst("x-kvasir-mode");
                    final int worker = mode.equals("kv") ? 0 : turn.getAndIncrement() % 4;
                    exchange.getResponseHeaders().set("x-kvasir-worker", "w" + worker);
                    final byte[] body =
                            ("data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
                                 + "data:"
                                 + " {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1}}\n\n"
                                 + "data: [DONE]\n\n")
                                    .getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(200, body.length);
                    try (OutputStream out = exchange.getResponseBody()) {
                        out.write(body);
                    }
                });
        server.start();
        try {
            final CommandRun run =
                    replay(
                            "--modes=kv,round-robin",
                            "--json",
                            "--url=http://127.0.0.1:" + server.getAddress().getPort());
            assertEquals(0, run.exitCode(), run.err());
            final JsonNode json = Json.MAPPER.readTree(run.out());
            assertEquals(1, json.at("/modes/0/workers").size(), run.out());
            assertEquals(4, json.at("/modes/0/load_spread").asDouble(), run.out());
            assertEquals(1, json.at("/modes/1/load_spread").asDouble(), run.out());
        } finally {
            server.stop(0);
        }
    }

    /** The journal has each request that was routed, what came of it, and can be judged. */
    private void checkJournal() throws IOException {
        try (DecisionJournal journal = JournalFile.open(dir)) {
            final JournalRecord record = journal.newRecord();
            int answered = 0;
            final long startNs = System.nanoTime();
            while (answered < REQUESTS) { // a client has its answer before what came of it is kept
                assertTrue(System.nanoTime() - startNs < 60_000_000_000L, answered + " answered");
                answered = answered(journal, record);
            }
        }
        final CommandRun json = CommandRun.of("replay", "--journal=" + dir, "--json");
        assertEquals(0, json.exitCode(), json.err());
        final JsonNode policies = Json.MAPPER.readTree(json.out()).get("policies");
        assertEquals("recorded", policies.at("/0/policy").asText());
        assertEquals(0, policies.at("/0/changed").asInt());
        for (JsonNode policy : policies) {
            assertTrue(policy.get("decisions").asInt() >= REQUESTS, policy.toString());
            assertTrue(policy.get("ttft_ms").asDouble() > 0, policy.toString());
        }
        assertEquals(7, policies.size());
        final Path other = Files.writeString(dir.resolve("other.yaml"), "overlap-weight: 3\n");
        final CommandRun table = CommandRun.of("replay", "--journal=" + dir, "--config=" + other);
        assertEquals(0, table.exitCode(), table.err());
        assertTrue(table.out().contains("other.yaml"), table.out());
        assertTrue(table.out().contains("each judged by itself"), table.out());
        final Path served =
                Files.writeString(
                        dir.resolve("served.yaml"),
                        "model: m\noverlap-weight: 3\nworkers: [{url: http://h:1, model: m}]\n");
        final CommandRun same = CommandRun.of("replay", "--journal=" + dir, "--config=" + served);
        assertEquals(0, same.exitCode(), same.err());
    }

    private static int answered(DecisionJournal journal, JournalRecord record) {
        int answered = 0;
        for (long n = 0; n < journal.end(); n++) {
            assertTrue(journal.read(n, record));
            assertFalse(record.id().isEmpty());
            assertEquals("round-robin", record.mode());
            assertEquals(2, record.listed());
            assertTrue(record.worker(0).startsWith("sim-"), record.worker(0));
            answered += record.engineCachedTokens() >= 0 && record.firstTokenNs() > 0 ? 1 : 0;
        }
        return answered;
    }

    @Test
    void aJournalIsNamedWhereItCannotBeJudged() throws IOException {
        final CommandRun none = CommandRun.of("replay", "--journal=" + dir);
        assertEquals(3, none.exitCode());
        assertTrue(none.err().contains("--journal " + dir), none.err());
        JournalFile.create(dir, 4, 2, 16, 1).close();
        final CommandRun empty = CommandRun.of("replay", "--journal=" + dir);
        assertEquals(3, empty.exitCode());
        assertTrue(empty.err().contains("no decision is in it"), empty.err());
        final Path random = Files.writeString(dir.resolve("random.yaml"), "mode: random\n");
        final CommandRun mode = CommandRun.of("replay", "--journal=" + dir, "--config=" + random);
        assertEquals(3, mode.exitCode());
        assertTrue(mode.err().contains("mode random"), mode.err());
        for (String[] wrong :
                new String[][] {
                    {"replay"},
                    {"replay", "--trace=" + trace, "--config=" + random},
                    {"replay", "--trace=" + trace, "--journal=" + dir}
                }) {
            assertEquals(2, CommandRun.of(wrong).exitCode(), String.join(" ", wrong));
        }
    }

    @Test
    void aGatewayThatDoesNotTrustThisClientIsNotMeasured() throws Exception {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().speedUp(40).build());
                GatewayServer gateway =
                        GatewayServer.start(
                                GatewayConfig.builder()
                                        .set(GatewaySettings.HOST, "127.0.0.1")
                                        .set(GatewaySettings.PORT, 0)
                                        .set(GatewaySettings.ADMIN_PORT, 0L)
                                        .set(GatewaySettings.MODEL, SimModel.NAME)
                                        .worker(WorkerConfig.parse(engine.url().toString()))
                                        .build())) {
            final CommandRun run = replay("--url=http://127.0.0.1:" + gateway.port());
            assertEquals(3, run.exitCode(), run.out() + run.err());
            assertTrue(run.err().contains("--trusted-network"), run.err());
            assertEquals("", run.out());
        }
    }

    @ParameterizedTest
    @CsvSource({
        "--blocks=8, 3, raise --blocks",
        "--speed-up=0, 2, --speed-up 0",
        "--modes=kv;fast, 2, fast",
        "--requests=0, 2, --requests 0",
        "--vocabulary=1, 2, --vocabulary 1",
        "--trace=none.jsonl, 3, no such file",
    })
    void whatCannotRunIsRefusedWithValueAndOption(String option, int exitCode, String expected) {
        final CommandRun run = replay(option.replace(';', ','));
        assertEquals(exitCode, run.exitCode(), run.out() + run.err());
        assertTrue(run.err().contains(expected), run.err());
    }

    /** One answer takes long, so that what waits for it has time for all else that is due. */
    @Tag("integration") // a process, for seconds
    @Test
    void whatIsAskedToEndPlaysNoFurtherRequestAndNoFurtherMode() throws Exception {
        final List<String> lines = new ArrayList<>();
        for (int i = 0; i < 800; i++) {
            lines.add(
                    "{\"timestamp\": %d, \"input_length\": 32, \"output_length\": %d, \"hash_ids\": [1]}"
                            .formatted(i * 10L, i == 301 ? 200 : 2));
        }
        final Path longer = Files.write(dir.resolve("longer.jsonl"), lines);
        try (KvasirProcess process =
                new KvasirProcess(
                        "replay",
                        "--trace=" + longer,
                        "--workers=1",
                        "--speed-up=1",
                        "--inter-token-ms=100",
                        "--modes=kv,random")) {
            process.await(line -> line.startsWith("kv "));
            assertEquals(143, process.terminate());
            final List<String> output = process.output();
            assertTrue(output.stream().noneMatch(l -> l.startsWith("random")), output::toString);
            assertTrue(
                    output.stream().noneMatch(l -> l.matches("kv +(799|800)/800 .*")),
                    output::toString);
        }
    }

    private CommandRun replay(String... more) {
        final List<String> args = new ArrayList<>(List.of("replay", "--workers=3"));
        if (!more[0].startsWith("--trace")) {
            args.add("--trace=" + trace);
        }
        if (!more[0].startsWith("--speed-up")) {
            args.add("--speed-up=40");
        }
        args.addAll(List.of(more));
        return CommandRun.of(args.toArray(String[]::new));
    }
}
