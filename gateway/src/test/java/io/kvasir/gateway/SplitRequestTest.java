package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.CountedRelease;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.pipeline.publish.EngineEventPublisher;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Requests that a prefill worker and a decode worker share, over real HTTP. */
@Order(0) // takes longest: begins before all others
class SplitRequestTest {
    private static final int BLOCK = 16;
    private static final String PARAMS =
            "{\"do_remote_prefill\":true,\"do_remote_decode\":false,\"remote_block_ids\":[[9,10]],"
                    + "\"remote_engine_id\":\"e-1\",\"remote_request_id\":\"cmpl-1-0-a\","
                    + "\"remote_host\":\"127.0.0.1\",\"remote_port\":1, \"x\":1.50}";
    private static final String PREFILLED =
            "{\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}],\"kv_transfer_params\":"
                    + PARAMS
                    + ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
    private static final String DECODED =
            "{\"choices\":[{\"text\":\"ab\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}";
    private static final String ASK =
            "{\"model\":\"m\", \"prompt\":[1,2,3],\"max_tokens\":7,\"temperature\":0.50}";
    private static final String STREAM =
            "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"stream\":true,"
                    + "\"stream_options\":{\"include_usage\":true}}";

    private final FakeEngine prefill = new FakeEngine(call -> call.json(200, PREFILLED));
    private final FakeEngine decode = new FakeEngine(call -> call.json(200, DECODED));
    private final List<AutoCloseable> more = new ArrayList<>();
    private GatewayServer gateway;

    private static WorkerConfigOf worker(FakeEngine engine, String name, String role) {
        return new WorkerConfigOf(engine.url() + ",name=" + name + ",role=" + role);
    }

    /** A worker's flag, which may be added to. */
    private record WorkerConfigOf(String flag) {
        WorkerConfigOf with(String more) {
            return new WorkerConfigOf(flag + "," + more);
        }
    }

    private void start(GatewayConfig.Builder config, WorkerConfigOf... workers) throws Exception {
        start(GatewayServer::start, config, workers);
    }

    private void start(
            Function<GatewayConfig, GatewayServer> how,
            GatewayConfig.Builder config,
            WorkerConfigOf... workers)
            throws Exception {
        for (WorkerConfigOf worker : workers) {
            config.worker(WorkerConfig.parse(worker.flag));
        }
        gateway = how.apply(config.build());
        Gateways.awaitContact(gateway);
    }

    private GatewayConfig.Builder config() {
        return Gateways.config().set(GatewaySettings.RETRIES, 2);
    }

    private void start() throws Exception {
        start(config(), worker(prefill, "p", "prefill"), worker(decode, "d", "decode"));
    }

    @AfterEach
    void stop() throws Exception {
        if (gateway != null) {
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            gateway.close();
        }
        prefill.close();
        decode.close();
        for (AutoCloseable each : more) {
            each.close();
        }
    }

    private HttpResponse<String> ask(String body, String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", body, headers);
    }

    private static String bodyWith(String body, String member) {
        return body.substring(0, body.length() - 1) + "," + member + "}";
    }

    private String metric(String name) throws Exception {
        return Gateways.admin(gateway, "/metrics")
                .body()
                .lines()
                .filter(line -> line.startsWith(name))
                .findFirst()
                .orElse("");
    }

    @Test
    void theDecodeWorkerGetsTheClientsBytesAndThePrefillWorkersParameters() throws Exception {
        start();
        final HttpResponse<String> answer = ask(ASK, "x-request-id", "r-1");
        assertEquals(200, answer.statusCode());
        assertEquals(DECODED, answer.body());
        assertEquals(1, prefill.calls.size());
        assertEquals(1, decode.calls.size());
        assertEquals(
                bodyWith(
                        ASK.replace("\"max_tokens\":7", "\"max_tokens\":1"),
                        "\"stream\":false,\"kv_transfer_params\":{\"do_remote_decode\":true,"
                                + "\"do_remote_prefill\":false,\"remote_engine_id\":null,"
                                + "\"remote_block_ids\":null,\"remote_host\":null,"
                                + "\"remote_port\":null}"),
                prefill.calls.getFirst().text());
        assertEquals(
                bodyWith(ASK, "\"kv_transfer_params\":" + PARAMS), decode.calls.getFirst().text());
        assertEquals("r-1", prefill.calls.getFirst().headers.get("x-request-id"));
        assertEquals("r-1", decode.calls.getFirst().headers.get("x-request-id"));
        assertEquals("d", answer.headers().firstValue("x-kvasir-worker").orElseThrow());
        assertEquals("p", answer.headers().firstValue("x-kvasir-prefill-worker").orElseThrow());
        assertTrue(metric("kvasir_split_requests_total{handoff=\"vllm\"}").endsWith(" 1.0"));
        assertHandedOver(3, 1);
    }

    /** W3C Trace Context: what engines trace of either leg belongs to the client's trace. */
    @Test
    void bothLegsAreOfTheClientsTrace() throws Exception {
        start();
        final String parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        ask(ASK, "traceparent", parent, "tracestate", "vendor=1", "baggage", "tenant=a");
        for (FakeEngine engine : List.of(prefill, decode)) {
            final Map<String, String> headers = engine.calls.getFirst().headers;
            assertEquals(parent, headers.get("traceparent"));
            assertEquals("vendor=1", headers.get("tracestate"));
            assertEquals("tenant=a", headers.get("baggage"));
        }
    }

    @Test
    void aStreamIsPrefilledWholeAndDecodedAsAStream() throws Exception {
        decode.script = FakeEngine.chatStream(3, 0);
        start();
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().contains("t2"), answer.body());
        assertTrue(answer.body().endsWith("data: [DONE]\n\n"), answer.body());
        final JsonNode asked = Json.MAPPER.readTree(prefill.calls.getFirst().body);
        assertFalse(asked.get("stream").booleanValue());
        assertFalse(asked.has("stream_options"));
        assertEquals(1, asked.get("max_tokens").intValue());
        assertEquals(
                bodyWith(STREAM, "\"kv_transfer_params\":" + PARAMS),
                decode.calls.getFirst().text());
    }

    /** A decode engine counts what it has fetched as cached, which was computed all the same. */
    @Test
    void cachedTokensAreThoseOfThePrefillWorker() throws Exception {
        final String plain = "\"prompt_tokens\":3";
        final String two = plain + ",\"prompt_tokens_details\":{\"cached_tokens\":2}";
        final String three = plain + ",\"prompt_tokens_details\":{\"cached_tokens\":3}";
        final String end = "data: [DONE]\n\n";
        prefill.script = call -> call.json(200, PREFILLED.replace(plain, two));
        decode.script = call -> call.json(200, DECODED.replace(plain, three));
        start();
        assertEquals(DECODED.replace(plain, two), ask(ASK).body());
        decode.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.usageEvent(3, 2, 3));
                    call.chunk(end);
                    call.endChunks();
                };
        assertEquals(
                FakeEngine.usageEvent(3, 2, 2) + end,
                Gateways.post(gateway, "/v1/chat/completions", STREAM).body());
        prefill.script = call -> call.json(500, "{}");
        assertEquals(
                FakeEngine.usageEvent(3, 2, 3) + end,
                Gateways.post(gateway, "/v1/chat/completions", STREAM).body(),
                "one worker did all of it");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"model\":\"m\",\"prompt\":[[1,2],[3]]}",
                "{\"model\":\"m\",\"prompt_embeds\":[\"A\",\"B\"]}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"prompt_embeds\":\"A\"}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"n\":2}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"n\":2.0}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"n\":\"2\"}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"best_of\":\" 2\"}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"prompt_logprobs\":1}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"echo\":true}",
                "{\"model\":\"m\",\"prompt\":[1,2],\"use_beam_search\":true}"
            })
    void whatOneAnswerCannotHandOverIsDoneByOneWorker(String body) throws Exception {
        start();
        assertEquals(200, ask(body).statusCode());
        assertEquals(0, prefill.calls.size());
        assertEquals(body, decode.calls.getFirst().text());
    }

    @ParameterizedTest
    @CsvSource({
        "down, connect",
        "500, status",
        "429, busy",
        "cut, closed",
        "no params, no_blocks",
        "no json, malformed",
        "params twice, malformed",
        "stall, timeout"
    })
    void aDecodeWorkerDoesAllWhereThePrefillFails(String how, String kind) throws Exception {
        failPrefills(how);
        final int timeoutMs = how.equals("stall") ? 300 : 60_000;
        start(
                config().set(GatewaySettings.PREFILL_TIMEOUT, Duration.ofMillis(timeoutMs)),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        if (how.equals("down")) {
            prefill.close();
        }
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(DECODED, answer.body());
        assertEquals(ASK, decode.calls.getFirst().text());
        if (!how.equals("down")) { // else the probes may have found it before the request did
            assertTrue(
                    metric(
                                    "kvasir_leg_failures_total{fallback=\"decode-only\",kind=\""
                                            + kind
                                            + "\",leg=\"prefill\"}")
                            .endsWith(" 1.0"),
                    how);
        }
        if (!how.equals("down") && !how.equals("stall")) { // which may still end by itself
            assertEquals(kind, outcomeOfPrefill(), how);
            assertTrue(
                    metric("kvasir_upstream_attempts_total{outcome=\"" + kind + "\",worker=\"p\"}")
                            .endsWith(" 1.0"),
                    how);
        }
    }

    private String outcomeOfPrefill() throws Exception {
        for (JsonNode decision :
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                        .get("decisions")) {
            if (decision.get("worker").textValue().equals("p")) {
                return decision.get("outcome").textValue();
            }
        }
        return "none";
    }

    private void failPrefills(String how) {
        prefill.script =
                switch (how) {
                    case "500" -> call -> call.json(500, "{}");
                    case "429" -> call -> call.json(429, "{}");
                    case "cut" -> FakeEngine.Call::cut;
                    case "no params" ->
                            call -> call.json(200, "{\"choices\":[],\"kv_transfer_params\":null}");
                    case "params twice" ->
                            call ->
                                    call.json(
                                            200,
                                            "{\"kv_transfer_params\":{},\"kv_transfer_params\":{}}");
                    case "no json" -> call -> call.json(200, "nothing");
                    case "stall" -> call -> call.awaitClientGone(60);
                    default -> call -> call.json(200, PREFILLED);
                };
    }

    @Test
    void aRequestThatIsWrongIsAnsweredByADecodeWorkerWhateverTheFallback() throws Exception {
        prefill.script = call -> call.json(400, "{\"error\":\"p\"}");
        decode.script = call -> call.json(400, "{\"error\":\"d\"}");
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(400, answer.statusCode());
        assertEquals("{\"error\":\"d\"}", answer.body());
    }

    @Test
    void withoutAFallbackTheErrorNamesTheLeg() throws Exception {
        prefill.script = call -> call.awaitClientGone(60);
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL)
                        .set(GatewaySettings.PREFILL_TIMEOUT, Duration.ofMillis(200)),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(504, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("prefill", error.at("/kvasir/leg").textValue());
        assertEquals("timeout", error.at("/kvasir/kind").textValue());
        assertEquals(0, decode.calls.size());
    }

    @ParameterizedTest
    @CsvSource({"500, 502, status", "503, 503, busy", "400, 502, status", "half, 502, closed"})
    void withoutAFallbackTheErrorNamesTheLegAlsoWhereTheDecodeFails(
            String how, int status, String kind) throws Exception {
        decode.script =
                how.equals("half")
                        ? call -> call.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                        : call -> call.json(Integer.parseInt(how), "{}");
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(status, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("decode_" + kind, error.get("code").textValue());
        assertEquals("decode", error.at("/kvasir/leg").textValue());
        assertEquals(kind, error.at("/kvasir/kind").textValue());
        assertEquals("d", error.at("/kvasir/worker").textValue());
    }

    @Test
    void withoutAFallbackTheErrorNamesTheLegThatNoWorkerIsFoundFor() throws Exception {
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL)
                        .set(RouterSettings.SELECTION_POLICY, "refusing-at-first"),
                worker(prefill, "q", "prefill"),
                worker(decode, "p", "decode"));
        Provided.refusals.set(1); // of p
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(503, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("decode_no_worker", error.get("code").textValue());
        assertEquals("decode", error.at("/kvasir/leg").textValue());
    }

    @Test
    void anotherPrefillWorkerComputesThePromptWhereThatIsTheFallback() throws Exception {
        final FakeEngine other = new FakeEngine(call -> call.json(200, PREFILLED));
        more.add(other);
        prefill.script = call -> call.json(500, "{}");
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.OTHER_PREFILL),
                worker(prefill, "p", "prefill"),
                worker(other, "q", "prefill"),
                worker(decode, "d", "decode"));
        final HttpResponse<String> answer = ask(ASK, "x-kvasir-prefill-worker", "p");
        assertEquals(502, answer.statusCode(), "a pin allows no other one: " + answer.body());
        assertEquals(2, prefill.calls.size());
        prefill.calls.clear();
        while (prefill.calls.isEmpty()) { // which one is first is drawn
            final HttpResponse<String> next = ask(ASK);
            assertEquals(200, next.statusCode(), next.body());
        }
        assertTrue(decode.calls.getLast().text().contains("\"kv_transfer_params\""));
    }

    /** What a test's class path has, see META-INF/services. */
    public static final class Provided implements SelectionPolicyProvider {
        private static final AtomicInteger refusals = new AtomicInteger();

        /** For the loader. */
        public Provided() {}

        private static Eligibility.Verdict judge(Candidate candidate) {
            return candidate.worker().name().equals("p")
                            && refusals.getAndUpdate(left -> Math.max(0, left - 1)) > 0
                    ? Eligibility.Verdict.INELIGIBLE
                    : Eligibility.Verdict.ELIGIBLE;
        }

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of(
                    new SelectionPolicy(
                            "refusing-at-first", Provided::judge, CostModel.LINEAR, Picker.LOWEST));
        }
    }

    /** The first attempt finds no worker, the second one does. */
    private void startWithOneRefusal() throws Exception {
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.OTHER_PREFILL)
                        .set(GatewaySettings.PREFILL_ATTEMPTS, 2)
                        .set(RouterSettings.SELECTION_POLICY, "refusing-at-first"),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        Provided.refusals.set(1);
    }

    /** A timeout gives the first one up; its answer comes while the second one is at work. */
    @Test
    void aLatePrefillIsJudgedByItsOwnProtocolAndNotByThatOfTheNextAttempt() throws Exception {
        final FakeEngine context = new FakeEngine(call -> call.json(200, CONTEXT));
        final FakeEngine generation = new FakeEngine(call -> call.json(200, DECODED));
        more.addAll(List.of(context, generation));
        prefill.script =
                call -> {
                    Eventually.holds("another one is asked", () -> !context.calls.isEmpty());
                    call.json(200, PREFILLED);
                };
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.OTHER_PREFILL)
                        .set(GatewaySettings.PREFILL_TIMEOUT, Duration.ofSeconds(1))
                        .set(RouterSettings.SELECTION_POLICY, "refusing-at-first"),
                worker(prefill, "q", "prefill"),
                worker(context, "p", "prefill").with("handoff=trtllm"),
                worker(decode, "d", "decode"),
                worker(generation, "e", "decode").with("handoff=trtllm"));
        Provided.refusals.set(1); // of p: q is the first
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(1, prefill.calls.size());
        assertEquals(1, generation.calls.size());
        Eventually.holds("it is counted", () -> toBeFreed() + stranded() > 0);
        assertEquals(0, stranded());
    }

    /** Prefills whose blocks the gateway frees by name, or would. */
    private double toBeFreed() {
        final MetricsPage page = MetricsPage.of(gateway);
        return page.sum("kvasir_prefills_held")
                + page.sum("kvasir_prefills_released_total")
                + page.sum("kvasir_prefills_left_total");
    }

    private double stranded() {
        return MetricsPage.of(gateway).sum("kvasir_prefills_stranded_total");
    }

    private int prefillLeases() {
        return workers().get("prefill_active_leases").intValue();
    }

    private JsonNode workers() {
        try {
            return Json.MAPPER.readTree(Gateways.admin(gateway, "/debug/workers").body());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void anAttemptThatFindsNoPrefillWorkerIsFollowedByOneThatDoes() throws Exception {
        startWithOneRefusal();
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals("p", answer.headers().firstValue("x-kvasir-prefill-worker").orElseThrow());
        assertEquals(1, prefill.calls.size());
        assertTrue(decode.calls.getFirst().text().contains("\"kv_transfer_params\":" + PARAMS));
        assertEquals(
                1, MetricsPage.of(gateway).sum("kvasir_leg_failures_total", "kind", "no_worker"));
        Eventually.holds("its booking has ended", () -> prefillLeases() == 0);
    }

    @Test
    void anAttemptAfterOneThatFoundNoPrefillWorkerIsGivenUpWithItsClient() throws Exception {
        prefill.script = call -> call.awaitClientGone(60);
        startWithOneRefusal();
        final CompletableFuture<?> asked = Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds("the prefill runs", () -> prefill.inFlight.get() == 1);
        assertEquals(1, prefillLeases());
        asked.cancel(true);
        assertTrue(prefill.calls.getFirst().awaitClientGone(60));
        Eventually.holds("its booking has ended", () -> prefillLeases() == 0);
    }

    @ParameterizedTest
    @CsvSource({
        "always, 4, 1, ''",
        "never, 100, 0, never",
        "limits, 63, 0, min-tokens",
        "limits, 64, 1, ''",
        "cost, 63, 0, min-tokens",
        "cost, 64, 1, ''"
    })
    void theModeSaysWhichRequestsAreSplit(String mode, int tokens, int prefills, String reason)
            throws Exception {
        start(
                config().set(
                                GatewaySettings.SPLIT_MODE,
                                SplitMode.valueOf(mode.toUpperCase(Locale.ROOT)))
                        .set(GatewaySettings.SPLIT_MIN_TOKENS, 64),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        final String prompt = IntStream.range(0, tokens).boxed().toList().toString();
        final String body = "{\"model\":\"m\",\"prompt\":" + prompt + "}";
        assertEquals(200, ask(body, "x-request-id", "r").statusCode());
        assertEquals(prefills, prefill.calls.size());
        if (!reason.isEmpty()) {
            assertTrue(
                    metric("kvasir_whole_requests_total{reason=\"" + reason + "\"}")
                            .endsWith(" 1.0"));
        }
        JsonNode split = MissingNode.getInstance();
        for (JsonNode decision :
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions?id=r").body())
                        .get("decisions")) {
            split = decision.has("split") ? decision.get("split") : split;
        }
        if (mode.equals("limits") || mode.equals("cost")) {
            assertEquals(prefills == 1, split.get("split").booleanValue());
            assertEquals(tokens, split.get("local_uncached_tokens").intValue());
            assertTrue(split.get("local_seconds").isNull());
        } else {
            assertTrue(split.isMissingNode());
        }
    }

    /** Without a further attempt it fails, but the worker is not to blame. */
    @ParameterizedTest
    @CsvSource({"1, 200, 2", "0, 502, 1"})
    void aPrefillThatMeetsAConnectionWhichTheWorkerHasClosedIsSentAgain(
            int retries, int status, int prefills) throws Exception {
        prefill.health = call -> call.keepAlive("{}");
        prefill.script =
                call -> {
                    if (call.first) {
                        call.json(200, PREFILLED);
                    } else {
                        call.cut();
                    }
                };
        start(
                config().set(GatewaySettings.RETRIES, retries)
                        .set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL)
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        Eventually.holds(
                "the probe has read the metrics",
                () -> prefillWorker().path("engine_blocks").isInt());
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(status, answer.statusCode(), answer.body());
        assertEquals(prefills, prefill.calls.size());
        assertTrue(prefillWorker().path("last_error").isNull(), prefillWorker().toString());
        assertEquals(1, staleConnections());
    }

    /** The second answer names blocks that are held already, which the release throws at. */
    @Test
    void aDefectThatAPrefillsAnswerMeetsIsAFailureOfThePrefill() throws Exception {
        start(
                config -> GatewayServer.startWith(config, new CountedRelease()),
                config(),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        assertEquals(200, ask(ASK).statusCode());
        assertEquals(200, ask(ASK).statusCode());
        assertEquals(
                1, MetricsPage.of(gateway).sum("kvasir_leg_failures_total", "kind", "internal"));
        assertEquals(0, prefillLeases());
    }

    /** Its worker has nothing of it: it is neither waited for nor sent, and no blocks are left. */
    @Test
    void aPrefillThatWaitsToBeSentAgainEndsWithItsClient() throws Exception {
        prefill.health = call -> call.keepAlive("{}");
        prefill.script =
                call -> {
                    if (call.first) {
                        call.json(200, PREFILLED);
                    } else {
                        call.cut();
                    }
                };
        start(
                config().set(GatewaySettings.RETRY_BACKOFF, Duration.ofMinutes(1))
                        .set(GatewaySettings.RETRY_BACKOFF_MAX, Duration.ofMinutes(1))
                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        Eventually.holds(
                "the probe has read the metrics",
                () -> prefillWorker().path("engine_blocks").isInt());
        final CompletableFuture<?> asked = Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds("it waits", () -> staleConnections() == 1);
        asked.cancel(true);
        Eventually.holds("its booking has ended", () -> prefillLeases() == 0);
        assertEquals(0, stranded());
        assertEquals(1, prefill.calls.size());
    }

    private double staleConnections() {
        return MetricsPage.of(gateway)
                .sum(
                        "kvasir_upstream_attempts_total",
                        "worker",
                        "p",
                        "outcome",
                        "stale_connection");
    }

    private JsonNode prefillWorker() {
        return workerOf("p");
    }

    private JsonNode workerOf(String name) {
        for (JsonNode worker : workers().get("workers")) {
            if (worker.get("worker").textValue().equals(name)) {
                return worker;
            }
        }
        throw new AssertionError(workers().toPrettyString());
    }

    /** What looks like a connection that was closed before may be a worker that died just now. */
    @Test
    void parametersThatWentOverAUsedConnectionWhichEndsAreNotUsedAgain() throws Exception {
        decode.health = call -> call.keepAlive("{}");
        decode.script =
                call -> {
                    if (call.first) {
                        call.json(200, DECODED);
                    } else {
                        call.cut();
                    }
                };
        start(
                config().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMinutes(1)),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        Eventually.holds(
                "the probe has read the metrics",
                () -> workerOf("d").path("engine_blocks").isInt());
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(2, decode.calls.size());
        assertTrue(decode.calls.get(0).text().contains("kv_transfer_params"));
        assertEquals(ASK, decode.calls.get(1).text());
        assertTrue(workerOf("d").path("last_error").isNull(), "no fault that is known");
    }

    /** It may have all of them, although the gateway does not know that they are sent. */
    @Test
    void parametersOnTheWayToAWorkerThatResetsTheConnectionAreNotUsedAgain() throws Exception {
        final FakeEngine good = new FakeEngine(call -> call.json(200, DECODED));
        more.add(good);
        decode.bodiesToCut.set(1);
        start(
                config(),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"),
                worker(good, "e", "decode"));
        final String asked = bodyWith(ASK, "\"user\":\"" + "u".repeat(8 << 20) + "\"");
        String last;
        do {
            good.calls.clear();
            assertEquals(200, ask(asked).statusCode());
            last = good.calls.getLast().text();
        } while (decode.bodiesToCut.get() > 0);
        assertFalse(last.contains("kv_transfer_params"));
    }

    @Test
    void parametersAreNeverUsedTwice() throws Exception {
        decode.script = call -> call.json(decode.calls.size() == 1 ? 500 : 200, DECODED);
        start();
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(2, decode.calls.size());
        assertTrue(decode.calls.get(0).text().contains("kv_transfer_params"));
        assertEquals(ASK, decode.calls.get(1).text());
        assertTrue(
                metric(
                                "kvasir_leg_failures_total{fallback=\"decode-only\","
                                        + "kind=\"status\",leg=\"decode\"}")
                        .endsWith(" 1.0"));
    }

    @Test
    void aPrefillWorkerThatFailsRequestsIsLeftOut() throws Exception {
        final FakeEngine good = new FakeEngine(call -> call.json(200, PREFILLED));
        more.add(good);
        prefill.script = call -> call.json(500, "{}");
        start(
                config(),
                worker(prefill, "p", "prefill"),
                worker(good, "q", "prefill"),
                worker(decode, "d", "decode"));
        for (int i = 0; !Gateways.admin(gateway, "/health").body().contains("ejected"); i++) {
            assertTrue(i < 1_000, Gateways.admin(gateway, "/health").body());
            final String other = ASK.replace("[1,2,3]", "[1,2," + i + "]");
            assertEquals(200, ask(other).statusCode());
        }
    }

    @Test
    void aDecodeWorkerThatCannotBeReachedLeavesTheParametersGood() throws Exception {
        final FakeEngine dead = new FakeEngine(call -> call.json(200, DECODED));
        more.add(dead);
        final GatewayConfig.Builder config =
                config().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofHours(1));
        start(
                config,
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"),
                worker(dead, "e", "decode"));
        dead.close();
        for (int i = 0; i < 8; i++) {
            final HttpResponse<String> answer = ask(ASK);
            assertEquals(200, answer.statusCode(), answer.body());
        }
        assertEquals(8, decode.calls.size());
        for (FakeEngine.Call call : decode.calls) {
            assertTrue(call.text().contains("\"kv_transfer_params\":" + PARAMS), call.text());
        }
        assertEquals(8, prefill.calls.size());
    }

    @Test
    void aStreamThatBreaksOffEndsWithAnEventThatSaysSo() throws Exception {
        decode.script =
                call -> {
                    call.beginEvents();
                    call.chunk(
                            FakeEngine.event(
                                    "{\"index\":0,\"delta\":{\"content\":\"t\"},\"finish_reason\":null}"));
                    call.cut();
                };
        start();
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().contains("\"kind\":\"closed\""), answer.body());
        assertTrue(answer.body().contains("\"leg\":\"decode\""), answer.body());
        assertEquals(1, decode.calls.size());
    }

    /** SGLang answers 200 at once and says in the stream that the prefill worker has died. */
    @Test
    void anErrorInPlaceOfTheFirstEventIsAFailureOfTheDecodeWorker() throws Exception {
        decode.script =
                call -> {
                    if (call.text().contains("kv_transfer_params")) {
                        call.errorEvent(500);
                    } else {
                        FakeEngine.chatStream(3, 0).answer(call);
                    }
                };
        start();
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().contains("t2"), answer.body());
        assertFalse(answer.body().contains("error"), answer.body());
        assertEquals(2, decode.calls.size());
        assertTrue(metric("kvasir_leg_failures_total").contains("status"));
    }

    @Test
    void aClientThatLeavesDuringThePrefillEndsBothLegs() throws Exception {
        prefill.script = call -> call.awaitClientGone(60);
        start();
        final CompletableFuture<?> asked = Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds("the prefill runs", () -> prefill.inFlight.get() == 1);
        asked.cancel(true);
        assertTrue(prefill.calls.getFirst().awaitClientGone(60));
        Eventually.holds("the prefill has ended", () -> prefill.inFlight.get() == 0);
        assertEquals(0, decode.calls.size());
    }

    @Test
    void aPrefillIsAbortedAtOnceWhereTheGatewayEnds() throws Exception {
        prefill.script = call -> call.awaitClientGone(60);
        start();
        final CompletableFuture<HttpResponse<String>> asked =
                Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds("the prefill runs", () -> prefill.inFlight.get() == 1);
        gateway.cutRunning();
        assertEquals(0, gateway.activeLeases());
        assertEquals(503, asked.get().statusCode());
        assertTrue(asked.get().body().contains("\"kind\":\"draining\""), asked.get().body());
        assertEquals(1, stranded());
    }

    @Test
    void clientsMayNotNameBlocks() throws Exception {
        start(
                config().set(GatewaySettings.TRUSTED_NETWORKS, List.of("10.0.0.0/8")),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        for (String member :
                List.of(
                        "\"kv_transfer_params\":" + PARAMS,
                        "\"kv_transfer\\u005fparams\":null",
                        "\"disaggregated_params\":{}",
                        "\"bootstrap_room\":1")) {
            final HttpResponse<String> answer = ask(bodyWith(ASK, member));
            assertEquals(400, answer.statusCode(), member);
        }
        assertEquals(0, prefill.calls.size() + decode.calls.size());
    }

    @Test
    void norWhereNoPrefillWorkerHasComeYet() throws Exception {
        start(
                config().set(GatewaySettings.TRUSTED_NETWORKS, List.of("10.0.0.0/8")),
                worker(decode, "d", "decode"));
        final String named = bodyWith(ASK, "\"kv_transfer_params\":" + PARAMS);
        assertEquals(400, ask(named).statusCode());
        assertEquals(0, decode.calls.size());
    }

    @Test
    void aTrustedCallerMayHaveSplitARequestItself() throws Exception {
        start();
        final String own = bodyWith(ASK, "\"kv_transfer_params\":" + PARAMS);
        assertEquals(200, ask(own).statusCode());
        assertEquals(0, prefill.calls.size());
        assertEquals(own, decode.calls.getFirst().text());
    }

    @Test
    void workersThatMeetGetTheSameBytesAtOnce() throws Exception {
        prefill.script =
                call -> { // answers once the other one has the request
                    Eventually.holds("the decode worker is asked", () -> !decode.calls.isEmpty());
                    call.json(200, PREFILLED);
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(DECODED, answer.body());
        final String sent = decode.calls.getFirst().text();
        assertEquals(sent, prefill.calls.getFirst().text());
        assertTrue(
                sent.startsWith(
                        bodyWith(ASK, "\"bootstrap_host\":\"10.0.0.9\",\"bootstrap_port\":8998,")
                                .replace("}", "")),
                sent);
        assertTrue(Json.MAPPER.readTree(sent).get("bootstrap_room").isIntegralNumber());
    }

    /** An engine may answer the prefill only once the blocks were fetched. */
    @Test
    void tokensAreHandedOverAlsoWhereThePrefillAnswersAfterTheDecode() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        prefill.script =
                call -> {
                    answered.await();
                    call.json(200, PREFILLED);
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        assertEquals(200, ask(ASK).statusCode());
        answered.countDown();
        assertHandedOver(3, 0);
    }

    @Test
    void theTimeOfAHandOffBeginsWithTheAnswerOfItsOwnPrefill() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        prefill.script =
                call -> {
                    if (prefill.calls.size() == 2) {
                        answered.await();
                    }
                    call.json(200, PREFILLED);
                };
        decode.script =
                call -> {
                    Eventually.holds(
                            "the first prefill has answered",
                            () ->
                                    MetricsPage.of(gateway).sum("kvasir_prefill_leg_seconds_count")
                                            == 1);
                    call.json(decode.calls.size() == 1 ? 500 : 200, DECODED);
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        assertEquals(200, ask(ASK).statusCode());
        answered.countDown();
        assertEquals(2, prefill.calls.size());
        assertHandedOver(3, 0);
    }

    /** The last token is always computed, and so the block it is in is fetched. */
    @ParameterizedTest
    @CsvSource({"0, 70, 70", "32, 70, 38", "64, 70, 6", "64, 64, 16"})
    void whatTheDecodeWorkerHoldsIsNotHandedOver(int held, int tokens, int fetched)
            throws Exception {
        final int[] prompt = IntStream.range(0, tokens).toArray();
        try (EngineEventPublisher events =
                new EngineEventPublisher("tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "", 0, BLOCK)) {
            start(
                    config(),
                    worker(prefill, "p", "prefill"),
                    worker(decode, "d", "decode")
                            .with("events=" + events.endpoint())
                            .with("replay=" + events.replayEndpoint()));
            if (held > 0) {
                events.publishStored(
                        Arrays.copyOf(prompt, held),
                        LongStream.range(0, held / BLOCK).map(i -> 100 + i).toArray(),
                        null,
                        null);
            }
            Eventually.holds(
                    "its blocks are in the index",
                    () -> gateway.router().index().blocks() == held / BLOCK);
            assertEquals(
                    200,
                    ask("{\"model\":\"m\",\"prompt\":" + Arrays.toString(prompt) + "}")
                            .statusCode());
            assertHandedOver(fetched, 1);
        }
    }

    private void assertHandedOver(int tokens, int timed) {
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(tokens, page.sum("kvasir_handoff_tokens_total", "worker", "d"));
        assertEquals(timed, page.sum("kvasir_handoff_seconds_count", "worker", "d"));
    }

    @Test
    void aBatchMeetsOncePerPrompt() throws Exception {
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        assertEquals(200, ask("{\"model\":\"m\",\"prompt\":[[1,2],[3],[4]]}").statusCode());
        final JsonNode sent = Json.MAPPER.readTree(decode.calls.getFirst().body);
        assertEquals(3, sent.get("bootstrap_room").size());
        assertEquals("10.0.0.9", sent.get("bootstrap_host").get(2).textValue());
    }

    /** A streamed prefill answers 200 at once, and says in the stream that it was aborted. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPrefillThatFailsEndsTheDecodeThatWaitsForIt(boolean stream) throws Exception {
        prefill.script =
                call -> {
                    Eventually.holds("the decode worker is asked", () -> !decode.calls.isEmpty());
                    if (stream) {
                        call.errorEvent(500);
                    } else {
                        call.json(500, "{}");
                    }
                };
        decode.script = call -> call.awaitClientGone(60);
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(stream ? bodyWith(ASK, "\"stream\":true") : ASK);
        assertEquals(502, answer.statusCode(), "no worker can do all of it: " + answer.body());
        assertTrue(answer.body().contains("\"prefill_status\""), answer.body());
        assertEquals(2, prefill.calls.size());
        assertTrue(decode.calls.getFirst().awaitClientGone(60));
    }

    @ParameterizedTest
    @ValueSource(strings = {"400", "429", "503", "500 event"})
    void aPrefillThatNeverHeldAnythingLeavesNothingStranded(String how) throws Exception {
        final int status = Integer.parseInt(how.substring(0, 3));
        prefill.script =
                call -> {
                    Eventually.holds("the decode worker is asked", () -> !decode.calls.isEmpty());
                    if (how.endsWith("event")) {
                        call.errorEvent(status);
                    } else {
                        call.json(status, "{}");
                    }
                };
        decode.script = call -> call.awaitClientGone(60);
        startMeeting();
        assertNotEquals(200, ask(bodyWith(ASK, "\"stream\":true")).statusCode());
        assertEquals(0, stranded());
    }

    @Test
    void aPrefillWhoseDecodeFailsIsStranded() throws Exception {
        final CountDownLatch answered = new CountDownLatch(1);
        decode.script =
                call -> {
                    answered.await();
                    call.json(500, "{}");
                };
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.FAIL),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final CompletableFuture<HttpResponse<String>> asked =
                Gateways.postAsync(gateway, "/v1/completions", ASK);
        Eventually.holds(
                "the prefill has answered",
                () -> MetricsPage.of(gateway).sum("kvasir_prefill_leg_seconds_count") == 1);
        answered.countDown();
        assertEquals(502, asked.join().statusCode());
        assertEquals(1, stranded());
    }

    @ParameterizedTest
    @CsvSource({"too long, protocol", "member twice, malformed", "status 201, status"})
    void blocksThatAnAnswerDoesNotNameAreStranded(String how, String kind) throws Exception {
        final String long16 = PREFILLED.replace("e-1", "e".repeat(17 << 20));
        prefill.script =
                switch (how) {
                    case "too long" -> call -> call.json(200, long16);
                    case "member twice" ->
                            call ->
                                    call.json(
                                            200,
                                            bodyWith(PREFILLED, "\"kv_transfer_params\":null"));
                    default -> call -> call.json(201, PREFILLED);
                };
        start();
        assertEquals(200, ask(ASK).statusCode());
        assertEquals(1, stranded());
        assertEquals(1, MetricsPage.of(gateway).sum("kvasir_leg_failures_total", "kind", kind));
    }

    @ParameterizedTest
    @ValueSource(ints = {201, 204, 302})
    void aPrefillThatNeitherAnswersNorRefusesHasFailed(int status) throws Exception {
        prefill.script = call -> call.raw("HTTP/1.1 " + status + " X\r\nConnection: close\r\n\r\n");
        decode.script = call -> call.awaitClientGone(60);
        startMeeting();
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(502, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("\"prefill_status\""), answer.body());
    }

    @Test
    void aStreamedPrefillThatRefusesIsTheAnswerWhereNoWorkerCanDoAllOfIt() throws Exception {
        prefill.script = call -> call.errorEvent(400);
        decode.script = call -> call.awaitClientGone(60);
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(bodyWith(ASK, "\"stream\":true"));
        assertEquals(400, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("made up", error.get("message").textValue());
        assertEquals(1, prefill.calls.size());
    }

    @Test
    void aStreamedPrefillThatEndsEarlyIsAFailure() throws Exception {
        prefill.script =
                call -> {
                    Eventually.holds("the decode worker is asked", () -> !decode.calls.isEmpty());
                    call.beginEvents();
                    if (prefill.calls.size() > 1) {
                        call.chunk("data: [DONE]\n\n");
                    }
                    call.endChunks();
                };
        decode.script =
                call -> {
                    if (decode.calls.size() == 1) {
                        call.awaitClientGone(60);
                    } else {
                        FakeEngine.chatStream(3, 0).answer(call);
                    }
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertTrue(answer.body().endsWith("data: [DONE]\n\n"), answer.body());
        assertEquals(
                1, MetricsPage.of(gateway).sum("kvasir_leg_failures_total", "kind", "protocol"));
        assertEquals(2, prefill.calls.size());
    }

    @Test
    void cachedTokensAreThoseThatAStreamedPrefillStates() throws Exception {
        final String end = "data: [DONE]\n\n";
        prefill.script =
                call -> {
                    call.beginEvents();
                    call.chunk(FakeEngine.usageEvent(3, 1, 2));
                    call.chunk(end);
                    call.endChunks();
                };
        decode.script =
                call -> {
                    Eventually.holds(
                            "the prefill has answered",
                            () ->
                                    MetricsPage.of(gateway).sum("kvasir_prefill_leg_seconds_count")
                                            == 1);
                    call.beginEvents();
                    call.chunk(FakeEngine.usageEvent(3, 2, 3));
                    call.chunk(end);
                    call.endChunks();
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        assertEquals(
                FakeEngine.usageEvent(3, 2, 2) + end,
                Gateways.post(gateway, "/v1/chat/completions", STREAM).body());
    }

    @Test
    void workersThatOnlyMeetMeetAgainWhereTheHandOffFails() throws Exception {
        // both have the first attempt before either fails it: else a first call is of the second
        // one
        prefill.script =
                call -> {
                    final int status = prefill.calls.size() == 1 ? 500 : 200;
                    Eventually.holds("the decode worker is asked", () -> !decode.calls.isEmpty());
                    call.json(status, PREFILLED);
                };
        decode.script =
                call -> {
                    final int status = decode.calls.size() == 1 ? 500 : 200;
                    Eventually.holds("the prefill worker is asked", () -> !prefill.calls.isEmpty());
                    call.json(status, DECODED);
                };
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(DECODED, answer.body());
        assertNotEquals(decode.calls.get(0).text(), decode.calls.get(1).text(), "rooms");
    }

    @Test
    void aWrongRequestIsRefusedAsThePrefillWorkerDoesWhereNoWorkerCanDoAllOfIt() throws Exception {
        prefill.script = call -> call.json(400, "{\"error\":{\"message\":\"too hot\"}}");
        decode.script = call -> call.awaitClientGone(60);
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(400, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("too hot", error.get("message").textValue());
        assertEquals("invalid_request_error", error.get("type").textValue());
        assertEquals(1, prefill.calls.size());
    }

    @Test
    void aRefusalOfWhatThePrefillWorkerGaveIsNotTheClients() throws Exception {
        decode.script =
                call -> call.json(call.text().contains("kv_transfer_params") ? 422 : 200, DECODED);
        start();
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(ASK, decode.calls.getLast().text());
    }

    private static final String CONTEXT =
            "{\"choices\":[{\"text\":\"a\",\"disaggregated_params\":{\"request_type\":"
                    + "\"context_only\",\"encoded_opaque_state\":\"STATE\"}}]}";

    /** No TensorRT-LLM worker answers alone: only new parameters tell whose fault a refusal is. */
    private void startContextAndGeneration(GatewayConfig.Builder config) throws Exception {
        prefill.script =
                call -> call.json(200, CONTEXT.replace("STATE", "s" + prefill.calls.size()));
        start(
                config,
                worker(prefill, "p", "prefill").with("handoff=trtllm"),
                worker(decode, "d", "decode").with("handoff=trtllm"));
    }

    private void startMeeting() throws Exception {
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '^',
            value = {
                "sglang | n | {\"prompt\":[1,2],\"n\":2}",
                "sglang | best_of | {\"prompt\":[1,2],\"n\":1,\"best_of\":3}",
                "sglang | echo | {\"prompt\":[1,2],\"echo\":true}",
                "sglang | bootstrap_room | {\"prompt\":[1,2],\"bootstrap_room\":7}",
                "sglang | temperature | {\"prompt\":[1,2],\"temperature\":NaN}",
                "trtllm | prompt | {\"prompt\":[[1,2],[3]]}",
                "trtllm | prompt_embeds | {\"prompt\":[1,2],\"prompt_embeds\":\"A\"}",
                "trtllm | max_tokens | {\"prompt\":[1,2],\"max_tokens\":1,\"max_tokens\":2}"
            })
    void whatNeitherAPairNorAnyOtherWorkerCanEverServeIsRefusedByName(
            String protocol, String member, String body) throws Exception {
        if (protocol.equals("sglang")) {
            startMeeting();
        } else {
            startContextAndGeneration(config());
        }
        final HttpResponse<String> answer = ask(body);
        assertEquals(400, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("invalid_request_error", error.get("type").textValue());
        assertEquals("needs_whole_worker", error.at("/kvasir/kind").textValue());
        assertFalse(error.at("/kvasir/retryable").booleanValue());
        assertEquals(member, error.get("param").textValue());
        assertTrue(error.get("message").textValue().contains("role=both"), answer.body());
        assertEquals(0, prefill.calls.size() + decode.calls.size());
        assertEquals(0, MetricsPage.of(gateway).sum("kvasir_leg_failures_total"));
    }

    @Test
    void whatAWorkerCouldServeThatCannotBeUsedNowMayBeTriedAgain() throws Exception {
        final FakeEngine both = new FakeEngine(call -> call.json(200, DECODED));
        more.add(both);
        start(
                config().set(GatewaySettings.HEALTH_INTERVAL, Duration.ofMillis(20)),
                worker(prefill, "p", "prefill").with("handoff=trtllm"),
                worker(decode, "d", "decode").with("handoff=trtllm"),
                worker(both, "b", "both"));
        both.close();
        for (String member : List.of("\"n\":2", "\"max_tokens\":8", "\"top_p\":NaN")) {
            Eventually.holds(
                    "503, until it is back",
                    () -> {
                        final HttpResponse<String> answer =
                                Gateways.postAsync(
                                                gateway, "/v1/completions", bodyWith(ASK, member))
                                        .join();
                        assertNotEquals(400, answer.statusCode(), answer.body());
                        return answer.statusCode() == 503
                                && answer.body().contains("\"retryable\":true");
                    });
        }
    }

    private static String ended(String reason) {
        return CONTEXT.replace("\"text\"", "\"finish_reason\":\"" + reason + "\",\"text\"");
    }

    /** Its first token was the last: the engine keeps no blocks, and there is nothing to decode. */
    @Test
    void aContextPhaseThatEndsTheAnswerIsAnsweredWith() throws Exception {
        startContextAndGeneration(config());
        final String used = ",\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
        prefill.script = call -> call.json(200, ended("stop").replaceFirst("}$", used));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(
                "{\"choices\":[{\"finish_reason\":\"stop\",\"text\":\"a\"}]" + used, answer.body());
        assertEquals("application/json", answer.headers().firstValue("content-type").orElseThrow());
        assertEquals("p", answer.headers().firstValue("x-kvasir-worker").orElseThrow());
        assertEquals(1, prefill.calls.size());
        assertEquals(0, decode.calls.size());
        final MetricsPage page = MetricsPage.of(gateway);
        assertEquals(1, page.sum("kvasir_requests_total", "status", "200"));
        assertEquals(0, page.sum("kvasir_leg_failures_total"));
        assertEquals(0, page.sum("kvasir_prefills_stranded_total"));
    }

    @Test
    void aContextPhaseThatEndsTheAnswerOfAStreamAndCannotBeReadIsMalformed() throws Exception {
        startContextAndGeneration(config());
        final String text = ended("stop").replaceFirst("\\{", "{\"id\":\"?\",");
        final byte[] unreadable = text.getBytes(StandardCharsets.UTF_8);
        unreadable[text.indexOf('?')] = (byte) 0xff; // no UTF-8
        prefill.script = call -> call.json(200, unreadable);
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertEquals(502, answer.statusCode(), answer.body());
        final MetricsPage page = MetricsPage.of(gateway);
        final String attempts = "kvasir_upstream_attempts_total";
        assertEquals(0, page.sum(attempts, "worker", "p", "outcome", "ok"));
        assertEquals(
                prefill.calls.size(), page.sum(attempts, "worker", "p", "outcome", "malformed"));
        assertEquals(
                prefill.calls.size(), page.sum("kvasir_leg_failures_total", "kind", "malformed"));
        assertEquals(0, decode.calls.size());
    }

    @Test
    void aContextPhaseThatEndsTheAnswerOfAStreamIsStreamed() throws Exception {
        startContextAndGeneration(config());
        final String head = "{\"id\":\"c\",\"object\":\"chat.completion";
        final String usage = "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}";
        final String message = "{\"role\":\"assistant\",\"content\":\"a\"}";
        prefill.script =
                call ->
                        call.json(
                                200,
                                head
                                        + "\",\"choices\":[{\"index\":0,\"message\":"
                                        + message
                                        + ",\"finish_reason\":\"stop\",\"disaggregated_params\":{}}],"
                                        + usage);
        final HttpResponse<String> answer = Gateways.post(gateway, "/v1/chat/completions", STREAM);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(
                "data: "
                        + head
                        + ".chunk\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",\"delta\":"
                        + message
                        + "}]}\n\ndata: "
                        + head
                        + ".chunk\",\"choices\":[],"
                        + usage
                        + "\n\ndata: [DONE]\n\n",
                answer.body());
        assertTrue(
                answer.headers()
                        .firstValue("content-type")
                        .orElseThrow()
                        .startsWith("text/event-stream"));
        assertEquals(0, decode.calls.size());
    }

    @ParameterizedTest
    @ValueSource(strings = {"length", "not_finished"})
    void aContextPhaseThatEndsByItsOwnLimitIsFollowedByTheOther(String reason) throws Exception {
        startContextAndGeneration(config());
        prefill.script = call -> call.json(200, ended(reason));
        assertEquals(DECODED, ask(ASK).body());
        assertTrue(decode.calls.getFirst().text().contains("\"generation_only\""));
    }

    @Test
    void parametersThatTheDecodeWorkerRefusesAreMadeAnewWhereNoWorkerCanDoAllOfIt()
            throws Exception {
        decode.script = call -> call.json(call.text().contains("\"s1\"") ? 400 : 200, DECODED);
        startContextAndGeneration(config());
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(DECODED, answer.body());
        assertEquals(2, prefill.calls.size());
        assertEquals(2, decode.calls.size());
        assertTrue(decode.calls.get(1).text().contains("\"s2\""), "parameters are used once");
    }

    @ParameterizedTest
    @CsvSource({"decode-only, 2", "other-prefill, 2", "fail, 1"})
    void aDecodeWorkerThatRefusesAllParametersIsNotTheClientsFault(String fallback, int prefills)
            throws Exception {
        decode.script = call -> call.json(400, "{\"error\":{\"message\":\"bad state\"}}");
        startContextAndGeneration(
                config().set(
                                GatewaySettings.SPLIT_FALLBACK,
                                FallbackPolicy.valueOf(
                                        fallback.replace('-', '_').toUpperCase(Locale.ROOT)))
                        .set(GatewaySettings.PREFILL_ATTEMPTS, 2));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(502, answer.statusCode(), answer.body());
        final JsonNode error = Json.MAPPER.readTree(answer.body()).get("error");
        assertEquals("server_error", error.get("type").textValue());
        assertEquals("status", error.at("/kvasir/kind").textValue());
        assertEquals(prefills, prefill.calls.size());
        assertEquals(prefills, decode.calls.size());
        assertTrue(
                metric("kvasir_leg_failures_total").contains("leg=\"decode\""),
                metric("kvasir_leg_failures_total"));
        assertTrue(Gateways.admin(gateway, "/health").body().contains("\"up\""), "nor its own");
    }

    @Test
    void whatADecodeWorkerRefusesOfARendezvousIsTheClients() throws Exception {
        prefill.script = call -> call.awaitClientGone(60);
        decode.script = call -> call.json(400, "{\"error\":\"d\"}");
        start(
                config(),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(400, answer.statusCode(), answer.body());
        assertEquals("{\"error\":\"d\"}", answer.body());
    }

    /** The prefill worker refuses or fails while the other one's error is passed on. */
    @ParameterizedTest
    @ValueSource(ints = {400, 500, 503})
    void anAnswerThatTheClientHasAPartOfIsTheAnswerHoweverThePrefillGoes(int status)
            throws Exception {
        final int mib = 1 << 20;
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch refused = new CountDownLatch(1);
        prefill.script =
                call -> {
                    begun.await();
                    call.json(status, "{\"error\":\"p\"}");
                };
        decode.script =
                call -> {
                    call.raw("HTTP/1.1 422 X\r\nContent-Length: " + 6 * mib + "\r\n\r\n");
                    call.raw("d".repeat(5 * mib)); // more than is held back
                    refused.await();
                    call.raw("d".repeat(mib));
                };
        start(
                config().set(GatewaySettings.SPLIT_FALLBACK, FallbackPolicy.OTHER_PREFILL),
                worker(prefill, "p", "prefill").with("bootstrap=10.0.0.9:8998"),
                worker(decode, "d", "decode").with("handoff=sglang"));
        try (RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", ASK, "Connection: close");
            assertTrue(client.readUntil("\r\n\r\n").startsWith("HTTP/1.1 422 "));
            begun.countDown();
            Eventually.holds(
                    "the prefill worker has refused",
                    () ->
                            MetricsPage.of(gateway)
                                            .sum("kvasir_leg_failures_total", "leg", "prefill")
                                    == 1);
            assertEquals(2, decisions(), "no further worker is booked");
            refused.countDown();
            assertEquals(6L * mib, client.readAll().chars().filter(c -> c == 'd').count());
        }
    }

    private int decisions() throws Exception {
        return Json.MAPPER
                .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                .get("decisions")
                .size();
    }

    /** One generates already: its blocks count less than elsewhere, its delay counts instead. */
    @Test
    void byCostAWorkerCountsForWhatThePromptDelaysThere() throws Exception {
        decode.script =
                call -> {
                    if (decode.calls.size() == 1) {
                        call.awaitClientGone(60);
                    }
                    call.json(200, DECODED);
                };
        start(
                config().set(GatewaySettings.SPLIT_MODE, SplitMode.COST)
                        .set(GatewaySettings.SPLIT_MIN_TOKENS, 1_000)
                        .set(GatewaySettings.SPLIT_HARM_WEIGHT, 2.0)
                        .set(RouterSettings.BLOCK_SIZE, 4),
                worker(prefill, "p", "prefill"),
                worker(decode, "d", "decode"));
        final CompletableFuture<?> first =
                Gateways.postAsync(gateway, "/v1/completions", tokens(0, 3 * 4));
        Eventually.holds("it is sent", () -> decode.inFlight.get() == 1);
        Eventually.holds(
                "its load is known",
                () -> gateway.router().workers().getFirst().prefillTokens() == 3 * 4);
        assertEquals(200, ask(tokens(7, 4 * 4), "x-request-id", "r").statusCode());
        JsonNode added = MissingNode.getInstance();
        for (JsonNode decision :
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions?id=r").body())
                        .get("decisions")) {
            if (decision.get("worker").textValue().equals("d")) {
                added = decision.get("candidates").get(0).get("added_blocks");
            }
        }
        assertEquals(2 * 1 * 4 - 0.7 * (3 + 4), added.doubleValue(), 1e-9);
        first.cancel(true);
        assertTrue(decode.calls.getFirst().awaitClientGone(60));
    }

    private static String tokens(int from, int count) {
        return "{\"model\":\"m\",\"prompt\":"
                + IntStream.range(from, from + count).boxed().toList()
                + "}";
    }

    @Test
    void aRequestThatOnlyDecodeWorkersRefuseIsRefused() throws Exception {
        decode.script = call -> call.json(400, "{\"error\":\"too long\"}");
        start();
        final HttpResponse<String> answer = ask(ASK);
        assertEquals(400, answer.statusCode());
        assertEquals("{\"error\":\"too long\"}", answer.body());
        assertEquals(2, decode.calls.size());
    }
}
