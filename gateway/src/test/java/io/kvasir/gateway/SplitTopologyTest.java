package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.disagg.TransferCosts;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.net.http.HttpResponse;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** Which decode worker follows a prefill worker, by how far apart they are. */
@Order(1) // takes long: begins first, beside the others
class SplitTopologyTest {
    private static final int REQUESTS = 12;
    private static final String PARAMS =
            "{\"do_remote_prefill\":true,\"remote_engine_id\":\"e\",\"remote_block_ids\":[[1]]}";

    private final FakeEngine prefill =
            new FakeEngine(
                    call ->
                            call.json(
                                    200,
                                    "{\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}],"
                                            + "\"kv_transfer_params\":"
                                            + PARAMS
                                            + "}"));
    private final FakeEngine farPrefill = answering();
    private final FakeEngine near = answering();
    private final FakeEngine far = answering();
    private GatewayServer gateway;

    private static FakeEngine answering() {
        return new FakeEngine(call -> call.json(200, "{\"choices\":[{\"text\":\"ab\"}]}"));
    }

    @AfterEach
    void stop() throws Exception {
        gateway.close();
        prefill.close();
        farPrefill.close();
        near.close();
        far.close();
    }

    private void start(GatewayConfig.Builder config, String... transferCosts) throws Exception {
        config.worker(WorkerConfig.parse(prefill.url() + ",name=p,role=prefill,labels=rack:a"))
                .worker(WorkerConfig.parse(far.url() + ",name=far,role=decode,labels=rack:b"))
                .worker(WorkerConfig.parse(near.url() + ",name=near,role=decode,labels=rack:a"));
        open(config, transferCosts);
    }

    /** A pair in each rack, of workers that meet: none of them answers alone. */
    private void startPairs(GatewayConfig.Builder config, String... transferCosts)
            throws Exception {
        final String prefills = ",role=prefill,bootstrap=10.0.0.9:8998,labels=rack:";
        final String decodes = ",role=decode,handoff=sglang,labels=rack:";
        config.worker(WorkerConfig.parse(prefill.url() + ",name=p" + prefills + "a"))
                .worker(WorkerConfig.parse(farPrefill.url() + ",name=q" + prefills + "b"))
                .worker(WorkerConfig.parse(near.url() + ",name=near" + decodes + "a"))
                .worker(WorkerConfig.parse(far.url() + ",name=far" + decodes + "b"));
        open(config, transferCosts);
    }

    private void open(GatewayConfig.Builder config, String... transferCosts) throws Exception {
        if (transferCosts.length > 0) {
            config.set(
                    GatewaySettings.TRANSFER_COSTS,
                    Stream.of(transferCosts).map(TransferCosts.Entry::parse).toList());
        }
        gateway = GatewayServer.start(config.build());
        Gateways.awaitContact(gateway);
    }

    private void ask() throws Exception {
        for (int i = 0; i < REQUESTS; i++) {
            final String tokens = Stream.iterate(i, t -> t + 1).limit(64).toList().toString();
            assertEquals(
                    200,
                    Gateways.post(
                                    gateway,
                                    "/v1/completions",
                                    "{\"model\":\"m\",\"prompt\":" + tokens + "}")
                            .statusCode());
        }
    }

    private JsonNode lastDecision(String leg) throws Exception {
        final JsonNode all =
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                        .get("decisions");
        for (JsonNode decision : all) { // newest first
            if (leg.equals(decision.path("leg").asText())) {
                return decision;
            }
        }
        throw new AssertionError(all.toPrettyString());
    }

    @Test
    void aDecodeWorkerThatIsNearIsChosenWhileTheWayCountsMoreThanLoad() throws Exception {
        start(Gateways.config(), "rack:0", "*:100");
        ask();
        assertEquals(REQUESTS, near.calls.size());
        assertEquals(0, far.calls.size());
        for (JsonNode candidate : lastDecision("decode").get("candidates")) {
            final boolean isNear = candidate.get("worker").asText().equals("near");
            assertEquals(isNear ? 0 : 400, candidate.get("added_blocks").asDouble(), "of 4 blocks");
        }
    }

    @Test
    void distanceCountsNothingUnlessItIsSet() throws Exception {
        start(Gateways.config());
        for (int round = 0; far.calls.isEmpty() || near.calls.isEmpty(); round++) {
            assertTrue(round < 50, "one of two equal workers was never drawn");
            ask();
        }
    }

    @Test
    void workersThatTakeTurnsDoSoAlsoWhereTheFlowAsksAboutThem() throws Exception {
        start(Gateways.config().set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN), "*:1");
        ask();
        assertEquals(REQUESTS / 2, near.calls.size());
        assertEquals(REQUESTS / 2, far.calls.size());
    }

    @Test
    void noDecodeWorkerFetchesOverADistanceThatIsNotAllowed() throws Exception {
        start(Gateways.config(), "rack:0", "*:never");
        ask();
        assertEquals(REQUESTS, near.calls.size());
        assertEquals(0, far.calls.size());
    }

    @Test
    void aPromptThatNoDecodeWorkerMayFetchIsComputedByOneWorker() throws Exception {
        start(Gateways.config(), "hall:0", "*:never");
        ask();
        assertEquals(0, prefill.calls.size());
        assertEquals(REQUESTS, near.calls.size() + far.calls.size());
        assertTrue(
                Gateways.admin(gateway, "/metrics")
                        .body()
                        .contains(
                                "kvasir_whole_requests_total{reason=\"no_pair\"} "
                                        + (double) REQUESTS));
    }

    @ParameterizedTest
    @EnumSource(FallbackPolicy.class)
    void aPrefillWorkerIsChosenFromWhichADecodeWorkerMayFetch(FallbackPolicy fallback)
            throws Exception {
        startPairs(
                Gateways.config()
                        .set(GatewaySettings.SPLIT_FALLBACK, fallback)
                        .set(GatewaySettings.PREFILL_ATTEMPTS, 1),
                "rack:0",
                "*:never");
        Gateways.workers(gateway, "POST", "/near/drain", "");
        ask();
        assertEquals(REQUESTS, far.calls.size());
        assertEquals(0, prefill.calls.size());
        assertEquals(
                0, MetricsPage.of(gateway).sum("kvasir_leg_failures_total"), "nothing has failed");
    }

    @Test
    void aPrefillWorkerThatIsAskedForIsReplacedByNoOther() throws Exception {
        startPairs(Gateways.config(), "rack:0", "*:never");
        Gateways.workers(gateway, "POST", "/near/drain", "");
        final String body = "{\"model\":\"m\",\"prompt\":[1,2,3]}";
        final HttpResponse<String> pinned =
                Gateways.post(gateway, "/v1/completions", body, "x-kvasir-prefill-worker", "p");
        assertEquals(503, pinned.statusCode(), pinned.body());
        assertEquals(0, prefill.calls.size() + farPrefill.calls.size());
    }

    @Test
    void eachPrefillWorkerIsTriedOnceWhereNoDecodeWorkerMayFetch() throws Exception {
        startPairs(Gateways.config(), "hall:0", "*:never");
        final String body = "{\"model\":\"m\",\"prompt\":[1,2,3]}";
        assertEquals(503, Gateways.post(gateway, "/v1/completions", body).statusCode());
        final JsonNode tried =
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                        .get("decisions");
        assertEquals(
                Set.of("p", "q"),
                Set.of(
                        tried.get(0).get("worker").textValue(),
                        tried.get(1).get("worker").textValue()));
        assertEquals(2, tried.size());
    }

    @Test
    void theDistanceOfTheChosenPairIsInTheDecision() throws Exception {
        start(
                Gateways.config()
                        .set(GatewaySettings.SPLIT_MODE, SplitMode.LIMITS)
                        .set(GatewaySettings.SPLIT_MIN_TOKENS, 0),
                "hall:0",
                "rack:0.1",
                "*:100"); // more than bookings that are about to end can make up for
        ask();
        assertEquals(1, lastDecision("prefill").get("split").get("transfer_distance").intValue());
        assertEquals(List.of(), List.copyOf(far.calls));
    }
}
