package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Collectors;

/**
 * When the gateway takes the prompts of whole answers to be computed, beside the first token of the
 * real vLLM server that computes them, by its events and by the time that streams took. Prints how
 * far both are off.
 */
@Tag("real-engine")
class RealPromptEndTest {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int REQUESTS = 100;
    private static final int STREAMS = 40;

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static VllmServer server;
    private static Path folder;

    private final Random random = new Random(Seeds.next("RealPromptEndTest"));

    @BeforeAll
    static void start() throws Exception {
        folder = VllmServer.installed();
        server = new VllmServer(folder, logs.resolve("server.log"));
        server.start();
        server.awaitHealthy();
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
        }
    }

    private static GatewayServer gateway(String flag, IndexState awaited) throws Exception {
        final GatewayServer gateway =
                GatewayServer.start(
                        GatewayConfig.builder()
                                .set(GatewaySettings.PORT, 0)
                                .set(GatewaySettings.ADMIN_PORT, 0L)
                                .set(GatewaySettings.MODEL, VllmServer.MODEL)
                                .set(RouterSettings.BLOCK_SIZE, VllmServer.BLOCK_SIZE)
                                .worker(WorkerConfig.parse(flag))
                                .build());
        Eventually.holds(
                gateway::workersPage,
                () ->
                        gateway.router().workers().getFirst().state() == awaited
                                && gateway.router().workers().getFirst().available());
        return gateway;
    }

    private String body(int tokens, int output, boolean stream) {
        return "{\"model\":\""
                + VllmServer.MODEL
                + "\",\"ignore_eos\":true,\"max_tokens\":"
                + output
                + ",\"stream\":"
                + stream
                + ",\"prompt\":"
                + random.ints(tokens, 5, 250)
                        .mapToObj(Integer::toString)
                        .collect(Collectors.joining(",", "[", "]"))
                + "}";
    }

    private static void ask(GatewayServer gateway, String body) throws Exception {
        final HttpResponse<String> answer =
                EngineServer.HTTP.send(
                        HttpRequest.newBuilder(URI.create(gateway.url() + "/v1/completions"))
                                .header("content-type", "application/json")
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
    }

    /** Sum of what it says of its times to first token. */
    private static double engineSeconds() throws Exception {
        return server.metric("vllm:time_to_first_token_seconds_sum");
    }

    private static JsonNode lastDecision(GatewayServer gateway) throws Exception {
        final URI page = URI.create(gateway.adminUrl() + "/debug/decisions?limit=1");
        return JSON.readTree(
                        EngineServer.HTTP
                                .send(
                                        HttpRequest.newBuilder(page).build(),
                                        HttpResponse.BodyHandlers.ofString())
                                .body())
                .at("/decisions/0");
    }

    /** Asks one after the other, and prints what the engine took and how far the gateway is off. */
    private void measure(GatewayServer gateway, String end) throws Exception {
        final double[] engineMs = new double[REQUESTS];
        final double[] offMs = new double[REQUESTS];
        int found = 0;
        for (int i = 0; i < REQUESTS; i++) {
            final double before = engineSeconds();
            ask(gateway, body(40 + random.nextInt(500), 40, false));
            final double ms = (engineSeconds() - before) * 1e3;
            final JsonNode decision = lastDecision(gateway);
            if (decision.path("prompt_end").asText().equals(end)) {
                engineMs[found] = ms;
                offMs[found++] = decision.path("prompt_end_ms").asDouble() - ms;
            }
        }
        assertTrue(found >= REQUESTS * 9 / 10, found + " of " + REQUESTS + " by " + end);
        System.out.printf(
                Locale.ROOT,
                "%d of %d by %s: first token after %s; found later by %s%n",
                found,
                REQUESTS,
                end,
                summary(engineMs, found),
                summary(offMs, found));
    }

    private static String summary(double[] ms, int count) {
        final double[] sorted = Arrays.copyOf(ms, count);
        Arrays.sort(sorted);
        return String.format(
                Locale.ROOT,
                "%.1f ms (p5 %.1f, p95 %.1f)",
                sorted[count / 2],
                sorted[count / 20],
                sorted[count - 1 - count / 20]);
    }

    @Test
    void byEvents() throws Exception {
        try (GatewayServer gateway = gateway(server.flag("w"), IndexState.EXACT)) {
            measure(gateway, "stored");
        }
    }

    @Test
    void byTheTimeOfStreams() throws Exception {
        try (GatewayServer gateway = gateway(server.uri() + ",name=w", IndexState.DEGRADED)) {
            ask(gateway, body(40, 1, false)); // nothing is learned before there is need
            for (int i = 0; i < STREAMS; i++) {
                ask(gateway, body(40 + random.nextInt(500), 2, true));
            }
            measure(gateway, "expected");
        }
    }
}
