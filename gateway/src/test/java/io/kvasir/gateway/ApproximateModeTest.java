package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.ServerSocket;
import java.net.SocketTimeoutException;
import java.net.http.HttpResponse;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Engines that announce nothing, and a gateway that goes by what it sent them. */
class ApproximateModeTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":64}}";
    private static final String PROMPT =
            "{\"prompt\":["
                    + IntStream.range(0, 64)
                            .mapToObj(Integer::toString)
                            .collect(Collectors.joining(","))
                    + "]}";

    @Test
    void thePromptReturnsToItsWorkerAndTheDecisionSaysThatThisIsAPrediction() throws Exception {
        try (FakeEngine one = new FakeEngine(call -> call.json(200, ANSWER));
                FakeEngine two = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(one.worker("one"), two.worker("two"))
                                        .set(RouterSettings.APPROXIMATE, true)
                                        .build())) {
            Gateways.awaitContact(gateway);
            final HttpResponse<String> first = Gateways.post(gateway, "/v1/completions", PROMPT);
            assertEquals(0, overlap(first));
            for (int i = 0; i < 10; i++) {
                Eventually.holds(
                        "applied", () -> gateway.router().bookingPipeline().backlog() == 0);
                final HttpResponse<String> next = Gateways.post(gateway, "/v1/completions", PROMPT);
                assertEquals(worker(first), worker(next));
                assertEquals(4, overlap(next));
            }
            Eventually.holds("applied", () -> gateway.router().routedPrefixes().visits() == 11);
            final JsonNode decision =
                    Json.MAPPER
                            .readTree(Gateways.get(gateway, "/debug/decisions").body())
                            .at("/decisions/0/candidates/0");
            assertEquals("predicted", decision.path("index_state").asText());
            final String page = Gateways.get(gateway, "/metrics").body();
            assertTrue(page.contains("kvasir_routed_blocks 4.0"), page);
            assertTrue(page.contains("kvasir_routed_prompts 11.0"), page);
            assertTrue(
                    page.contains("kvasir_routed_prompts_dropped_total{reason=\"expired\"} 0.0"),
                    page);
        }
    }

    private static FakeEngine.Script answer(int cached) {
        return call ->
                call.json(
                        200,
                        "{\"choices\":[],\"usage\":{\"prompt_tokens\":64,"
                                + "\"prompt_tokens_details\":{\"cached_tokens\":"
                                + cached
                                + "}}}");
    }

    @Test
    void anEngineThatSaysOtherwiseLosesCreditUntilItAgreesAndAnswersMeanwhile() throws Exception {
        try (FakeEngine engine = new FakeEngine(answer(0));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("one"))
                                        .set(RouterSettings.APPROXIMATE, true)
                                        .build())) {
            Gateways.awaitContact(gateway);
            Gateways.post(gateway, "/v1/completions", PROMPT);
            Eventually.holds("booked", () -> gateway.router().routedPrefixes().visits() == 1);
            ask(gateway, 8);
            JsonNode worker = worker(gateway);
            assertEquals("predicted", worker.path("index_state").asText());
            assertEquals("forecasts", worker.path("index_cause").asText());
            assertEquals(0.5, worker.path("index_credit").asDouble());
            assertTrue(
                    worker.path("index_problem").asText().contains("fewer in 8"),
                    worker.toString());
            final String page = Gateways.get(gateway, "/metrics").body();
            assertTrue(
                    page.contains(
                            "kvasir_worker_index_cause{cause=\"forecasts\",dp_rank=\"0\",worker="
                                    + "\"one\"} 1.0"),
                    page);
            engine.script = answer(48);
            ask(gateway, 15);
            worker = worker(gateway);
            assertEquals("no-events", worker.path("index_cause").asText());
            assertEquals(1, worker.path("index_credit").asDouble());
            assertTrue(worker.path("index_problem").isNull(), worker.toString());
        }
    }

    private static void ask(GatewayServer gateway, int times) throws Exception {
        final Worker worker = gateway.router().workers().getFirst();
        for (int i = 0; i < times; i++) {
            Eventually.holds("released", () -> worker.activeRequests() == 0);
            assertEquals(200, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
        }
    }

    private static JsonNode worker(GatewayServer gateway) throws Exception {
        return Json.MAPPER
                .readTree(Gateways.get(gateway, "/debug/workers").body())
                .at("/workers/0");
    }

    @Test
    void eventsThatAreSwitchedOffAreLeftAlone() throws Exception {
        try (ServerSocket events = new ServerSocket(0);
                FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                WorkerConfig.parse(
                                                        engine.url()
                                                                + ",name=one,events="
                                                                + "tcp://127.0.0.1:"
                                                                + events.getLocalPort()))
                                        .set(GatewaySettings.KV_EVENTS, false)
                                        .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.NATS)
                                        .build())) {
            Gateways.awaitContact(gateway);
            assertEquals(0, overlap(Gateways.post(gateway, "/v1/completions", PROMPT)));
            Eventually.holds("booked", () -> gateway.router().routedPrefixes().visits() == 1);
            assertEquals(4, overlap(Gateways.post(gateway, "/v1/completions", PROMPT)));
            assertEquals(IndexState.PREDICTED, gateway.router().workers().getFirst().state());
            events.setSoTimeout(1);
            assertThrows(SocketTimeoutException.class, events::accept, "no connection is made");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"max_tokens\":1|4",
                "\"prompt_logprobs\":0|0",
                "\"prompt_logprobs\":false|0",
                "\"prompt_logprobs\":null,\"logprobs\":2|4",
                "\"echo\":true|4",
                "\"echo\":true,\"logprobs\":0|0",
                "\"echo\":true,\"logprobs\":false|0",
                "\"echo\":true,\"logprobs\":null|4",
                "\"echo\":false,\"logprobs\":1|4",
                "\"use_beam_search\":true|4"
            })
    void aPromptThatIsComputedAnewIsNotBookedAsCached(String members, int blocks) throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(engine.worker("one"))
                                        .set(RouterSettings.APPROXIMATE, true)
                                        .build())) {
            Gateways.awaitContact(gateway);
            assertEquals(0, overlap(Gateways.post(gateway, "/v1/completions", PROMPT)));
            Eventually.holds("booked", () -> gateway.router().routedPrefixes().visits() == 1);
            final String again = PROMPT.replaceFirst("\\{", "{" + members + ",");
            assertEquals(blocks, overlap(Gateways.post(gateway, "/v1/completions", again)));
        }
    }

    @Test
    void aWorkerThatWasDownIsPredictedToHoldNothing() throws Exception {
        final FakeEngine before =
                new FakeEngine(call -> call.json(200, ANSWER), FreePorts.run(1)); // bound again
        try (GatewayServer gateway =
                GatewayServer.start(
                        Gateways.config(before.worker("one"))
                                .set(RouterSettings.APPROXIMATE, true)
                                .build())) {
            Gateways.awaitContact(gateway);
            final KvRouter router = gateway.router();
            final Worker worker = router.workers().get(0);
            Gateways.post(gateway, "/v1/completions", PROMPT);
            Eventually.holds("applied", () -> router.routedPrefixes().blocks() == 4);
            assertEquals(4, overlap(Gateways.post(gateway, "/v1/completions", PROMPT)));
            before.close();
            Eventually.holds("down", () -> !worker.available());
            Eventually.holds("forgotten", () -> router.routedPrefixes().blocks() == 0);

            worker.available(true); // as a decision saw it that is booked only now
            router.reserve(
                            router.newRequest().tokens(IntStream.range(0, 64).toArray(), 64),
                            new Decision())
                    .close();
            worker.available(false);
            Eventually.holds("booked", () -> router.routedPrefixes().blocks() == 4);
            try (FakeEngine again = new FakeEngine(call -> call.json(200, ANSWER), before.port())) {
                Eventually.holds("back", worker::available);
                Eventually.holds("applied", () -> router.bookingPipeline().backlog() == 0);
                assertEquals(0, overlap(Gateways.post(gateway, "/v1/completions", PROMPT)));
                assertEquals(1, again.calls.size());
                Eventually.holds("remembered", () -> router.routedPrefixes().blocks() == 4);
            }
        } finally {
            before.close();
        }
    }

    private static String worker(HttpResponse<String> answer) {
        return GatewayHttpTest.header(answer, "x-kvasir-worker");
    }

    private static int overlap(HttpResponse<String> answer) {
        return Integer.parseInt(GatewayHttpTest.header(answer, "x-kvasir-overlap-blocks"));
    }
}
