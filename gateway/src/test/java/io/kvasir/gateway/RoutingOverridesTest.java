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
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.http.HttpResponse;
import java.util.List;

/** What a trusted caller says of how one request is routed, by header and in the body. */
@Order(1) // takes long: begins first, beside the others
class RoutingOverridesTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine one = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine two = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private GatewayConfig.Builder config() {
        return Gateways.config(one.worker("one"), WorkerConfig.parse(two.url() + ",name=two,dp=2"));
    }

    private void start(boolean trusts) throws InterruptedException {
        gateway =
                Gateways.started(
                        config().set(
                                        GatewaySettings.TRUSTED_NETWORKS,
                                        trusts ? List.of("127.0.0.1") : List.of()));
    }

    @AfterEach
    void stop() {
        gateway.close();
        one.close();
        two.close();
    }

    private HttpResponse<String> post(String body, String... headers) throws Exception {
        return Gateways.post(gateway, "/v1/completions", body, headers);
    }

    private JsonNode decision() throws Exception {
        return Json.MAPPER
                .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                .path("decisions")
                .path(0);
    }

    private static String quoted(String body) {
        return body.replace('\'', '"');
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "x-kvasir-mode|random|mode",
                "x-kvasir-overlap-weight|2.5|overlap_weight",
                "x-kvasir-overlap-credit|2.5|overlap_credit",
                "x-kvasir-shared-cache-multiplier|0.25|shared_cache_multiplier",
                "x-kvasir-temperature|0.5|temperature",
                "x-kvasir-worker|two/1|worker",
                "x-dynamo-worker-instance-id|two|worker"
            })
    void aHeaderOverrides(String header, String value, String member) throws Exception {
        start(true);
        assertEquals(200, post("{\"prompt\":[1]}", header, value).statusCode());
        assertEquals(value.split("/", -1)[0], decision().path(member).asText());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'router_config_override':{'mode':'random'}|mode|random",
                "'router_config_override':{'overlap_score_weight':2.5}|overlap_weight|2.5",
                "'router_config_override':{'prefill_load_scale':2.5}|overlap_weight|2.5",
                "'router_config_override':{'overlap_score_credit':2.5}|overlap_credit|2.5",
                "'router_config_override':{'overlap_credit':'0.0'}|overlap_credit|0.0",
                "'router_config_override':{'shared_cache_multiplier':1.0}"
                        + "|shared_cache_multiplier|1.0",
                "'router_config_override':{'overlap_score_credit':null}|overlap_credit|1.0",
                "'router_config_override':{'router_temperature':0.5}|temperature|0.5",
                "'router_config_override':{'worker':'two','dp_rank':1}|dp_rank|1",
                "'nvext':{'decode_worker_id':'two','dp_rank':1,'annotations':[]}|dp_rank|1",
                "'nvext':{'backend_instance_id':'one'}|worker|one",
                "'router_config_override':null|mode|kv"
            })
    void aMemberOfTheBodyOverrides(String member, String of, String value) throws Exception {
        start(true);
        final HttpResponse<String> answer = post(quoted("{" + member + ",'prompt':[1]}"));
        assertEquals(200, answer.statusCode(), answer.body());
        assertEquals(value, decision().path(of).asText());
    }

    @ParameterizedTest
    @CsvSource({"kv", "direct", "round-robin"})
    void aNameAloneMeansAnyOfItsRanks(String mode) throws Exception {
        start(true);
        two.script = call -> call.awaitClientGone(60);
        final String[] headers = {"x-kvasir-worker", "two", "x-kvasir-mode", mode};
        final var first =
                Gateways.postAsync(gateway, "/v1/completions", "{\"prompt\":[1]}", headers);
        final var second =
                Gateways.postAsync(gateway, "/v1/completions", "{\"prompt\":[2]}", headers);
        final List<Worker> workers = gateway.router().workers();
        Eventually.holds(
                "each rank has one",
                () ->
                        workers.stream()
                                .filter(worker -> worker.name().equals("two"))
                                .allMatch(worker -> worker.activeRequests() == 1));
        first.cancel(true);
        second.cancel(true);
    }

    @Test
    void headersWinOverTheBody() throws Exception {
        start(true);
        post(
                quoted("{'prompt':[1],'router_config_override':{'temperature':2}}"),
                "x-kvasir-temperature",
                "1");
        assertEquals(1, decision().path("temperature").asDouble());
    }

    @ParameterizedTest
    @CsvSource({"true", "false"})
    void theGatewaysOwnMemberReachesNoWorkerAndAllElseDoesByteForByte(boolean trusts)
            throws Exception {
        start(trusts);
        final String rest = "\"nvext\": {\"a\":1.50e0} ,\"prompt\":[1 ,2], \"x\":1e2}";
        assertEquals(
                200, post("{ \"router_config_override\":{\"mode\":\"kv\"}, " + rest).statusCode());
        final FakeEngine.Call call = (one.calls.isEmpty() ? two : one).calls.getFirst();
        assertEquals("{ " + rest, call.text());
    }

    @Test
    void ofOthersNothingCounts() throws Exception {
        start(false);
        assertEquals(
                200,
                post(
                                quoted(
                                        "{'prompt':[1],'router_config_override':{'mode':7,'x':1},"
                                                + "'nvext':{'backend_instance_id':'none'}}"),
                                "x-kvasir-mode",
                                "none")
                        .statusCode());
        assertEquals("kv", decision().path("mode").asText());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{'mode':'fast'}|'router_config_override.mode': ",
                "{'temperature':-1}|'router_config_override.temperature': '-1' must be a finite",
                "{'temperature':'NaN'}|'NaN' must be a finite number that is not negative",
                "{'overlap_weight':[1]}|must be a single value",
                "{'overlap_score_credits':1}|'router_config_override.overlap_score_credits' is not"
                        + " known",
                "{'overlap_score_credit':-0.5}|'router_config_override.overlap_score_credit':"
                        + " '-0.5' must be a finite number that is not negative",
                "{'overlap_score_credit':1e999}|must be a finite number",
                "{'shared_cache_multiplier':1.5}|'router_config_override.shared_cache_multiplier':"
                        + " '1.5' must be a number from 0 to 1, as shared-cache-multiplier",
                "{'shared_cache_multiplier':'NaN'}|'NaN' must be a finite number",
                "{'strict_priority':1}|nvext.agent_hints",
                "{'priority_jump':1}|x-kvasir-head-start-ms",
                "{'required_taints':['a']}|nvext.routing_constraints",
                "{'assume_kv_reuse':'no'}|'no' must be true or false",
                "{'worker':'three'}|no worker is named 'three'",
                "{'worker':'two','dp_rank':2}|worker 'two' has no rank 2",
                "{'worker':'two','dp_rank':-1}|'-1' is no rank",
                "{'dp_rank':1}|a rank needs the worker whose it is",
                "{'prefill_worker':'p'}|no prefill worker is named 'p'",
                "7|'router_config_override' must be an object"
            })
    void whatCannotBeIsRefusedWithNameAndValue(String override, String why) throws Exception {
        start(true);
        final HttpResponse<String> answer =
                post(quoted("{'prompt':[1],'router_config_override':" + override + "}"));
        assertEquals(400, answer.statusCode(), answer.body());
        assertTrue(
                Json.MAPPER
                        .readTree(answer.body())
                        .path("error")
                        .path("message")
                        .asText()
                        .contains(why),
                answer.body());
        assertEquals(0, one.calls.size() + two.calls.size());
    }

    @ParameterizedTest
    @CsvSource({
        "assume_kv_reuse, x-kvasir-assume-kv-reuse",
        "track_prefill_tokens, x-kvasir-track-prefill-tokens"
    })
    void aSwitchIsOfTheRequestAlone(String member, String header) throws Exception {
        start(true);
        one.script = call -> call.awaitClientGone(60);
        final String prompt = "[" + "3,".repeat(31) + "3]";
        final var first =
                Gateways.postAsync(
                        gateway,
                        "/v1/completions",
                        quoted(
                                "{'prompt':"
                                        + prompt
                                        + ",'router_config_override':{'worker':'one','"
                                        + member
                                        + "':false}}"));
        final var second =
                Gateways.postAsync(
                        gateway,
                        "/v1/completions",
                        "{\"prompt\":" + prompt + "}",
                        "x-kvasir-worker",
                        "one",
                        header,
                        "false");
        final Worker worker = gateway.router().workers().getFirst();
        Eventually.holds("both are booked", () -> worker.activeRequests() == 2);
        final boolean reuses = !member.equals("assume_kv_reuse");
        Eventually.holds("blocks", () -> worker.activeBlocks() == (reuses ? 2 : 4));
        assertEquals(reuses ? 0 : 64, worker.prefillTokens());
        first.cancel(true);
        second.cancel(true);
    }

    @Test
    void aPromptCountsAlsoWhereTheGatewayCountsNone() throws Exception {
        gateway = Gateways.started(config().set(RouterSettings.TRACK_PREFILL_TOKENS, false));
        one.script = call -> call.awaitClientGone(60);
        final String prompt = "[" + "3,".repeat(31) + "3]";
        final var counts =
                Gateways.postAsync(
                        gateway,
                        "/v1/completions",
                        quoted(
                                "{'prompt':"
                                        + prompt
                                        + ",'router_config_override':{'worker':'one',"
                                        + "'track_prefill_tokens':true}}"));
        final var usual =
                Gateways.postAsync(
                        gateway,
                        "/v1/completions",
                        "{\"prompt\":" + prompt + "}",
                        "x-kvasir-worker",
                        "one");
        final Worker worker = gateway.router().workers().getFirst();
        Eventually.holds("both are booked", () -> worker.activeRequests() == 2);
        assertEquals(32, worker.prefillTokens());
        counts.cancel(true);
        usual.cancel(true);
        Eventually.holds(
                "both have ended",
                () -> worker.activeRequests() == 0 && worker.prefillTokens() == 0);
    }
}
