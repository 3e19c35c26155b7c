package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What requests ask of labels and taints of workers, by header and body. */
class ConstraintsHttpTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine x = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine y = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine spot = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(List<String> trusted) throws Exception {
        gateway =
                Gateways.started(
                        Gateways.config(
                                        WorkerConfig.parse(x.url() + ",name=x,labels=zone:x"),
                                        WorkerConfig.parse(
                                                y.url() + ",name=y,labels=zone:y;rack:1"),
                                        WorkerConfig.parse(
                                                spot.url() + ",name=s,labels=zone:y,taints=spot"))
                                .set(GatewaySettings.TRUSTED_NETWORKS, trusted));
    }

    private void start() throws Exception {
        start(List.of("127.0.0.1"));
    }

    @AfterEach
    void stop() {
        gateway.close();
        x.close();
        y.close();
        spot.close();
    }

    private HttpResponse<String> ask(String nvext, String... headers) throws Exception {
        return Gateways.post(
                gateway,
                "/v1/completions",
                "{\"model\":\"m\",\"prompt\":[1,2,3]"
                        + (nvext == null ? "" : ",\"nvext\":" + nvext)
                        + "}",
                headers);
    }

    /** A booking ends some time after its answer, and is load until then. */
    private void awaitIdle() throws InterruptedException {
        Eventually.holds(
                "no request is booked",
                () -> {
                    try {
                        return GatewayHttpTest.json(Gateways.workers(gateway, "GET", "", ""))
                                .findValues("active_requests")
                                .stream()
                                .allMatch(requests -> requests.asInt() == 0);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    private static HttpResponse<String> served(HttpResponse<String> answer) {
        assertEquals(200, answer.statusCode(), answer.body());
        return answer;
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "x-kvasir-require | zone=x | x",
                "x-kvasir-require | zone=y, rack=1 | y",
                "x-kvasir-require | dynamo.topology/zone=x | x",
                "x-kvasir-require | spot | s",
                "x-kvasir-prefer | zone=x | x",
                "x-kvasir-prefer | zone=y;w=0.5, zone=x;w=3 | x",
                "x-kvasir-prefer | zone=x;w=-1 | y",
                "x-kvasir-prefer | zone=y ; w=0.5 ,, zone=x; w=3 | x"
            })
    void aHeaderSaysWhichWorkerServes(String header, String value, String worker) throws Exception {
        start();
        for (int i = 0; i < 10; i++) {
            awaitIdle();
            assertEquals(
                    worker,
                    served(ask(null, header, value))
                            .headers()
                            .firstValue("x-kvasir-worker")
                            .orElseThrow());
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"routing_constraints\":{\"required_taints\":[\"dynamo.topology/zone=x\"]}} | x",
                "{\"a\":[1,{\"b\":2}],\"routing_constraints\":{\"required_taints\":[\"spot\"]}} |"
                        + " s",
                "{\"routing_constraints\":{\"preferred_taints\":{\"zone=x\":2.5}}} | x",
                "{\"routing_constraints\":{\"required_taints\":[\"zone=y\"],\"preferred_taints\":{\"spot\":3}}}"
                    + " | s"
            })
    void theBodySaysWhichWorkerServesAndGoesOnAsItIs(String nvext, String worker) throws Exception {
        start();
        for (int i = 0; i < 10; i++) {
            awaitIdle();
            served(ask(nvext));
        }
        final List<FakeEngine.Call> calls =
                switch (worker) {
                    case "x" -> x.calls;
                    case "s" -> spot.calls;
                    default -> y.calls;
                };
        assertEquals(10, calls.size());
        assertTrue(calls.getFirst().text().contains(nvext));
    }

    @Test
    void workersOfAFileHaveAdaptersLabelsAndTaintsToo(@TempDir Path dir) throws Exception {
        final Path file = dir.resolve("workers.yaml");
        Files.writeString(
                file,
                "- {url: '"
                        + x.url()
                        + "', name: x, labels: 'zone:x'}\n- {url: '"
                        + spot.url()
                        + "', name: s, labels: 'zone:y', lora: 'sql;fr', lora-ids: 'sql:1', taints:"
                        + " spot}\n");
        gateway =
                Gateways.started(
                        Gateways.config()
                                .set(GatewaySettings.WORKERS_FILE, file)
                                .set(RouterSettings.LORA_MODE, LoraMode.REQUIRED)
                                .set(GatewaySettings.TRUSTED_NETWORKS, List.of("127.0.0.1")));
        served(ask(null));
        served(ask(null, "x-kvasir-require", "spot"));
        assertEquals(1, x.calls.size());
        assertEquals(1, spot.calls.size());
        final String adapter = "{\"model\":\"sql\",\"prompt\":[1]}";
        assertEquals(503, Gateways.post(gateway, "/v1/completions", adapter).statusCode());
        served(Gateways.post(gateway, "/v1/completions", adapter, "x-kvasir-tolerate", "spot"));
        assertEquals(2, spot.calls.size());
    }

    @Test
    void aTaintedWorkerServesThoseThatTolerateIt() throws Exception {
        start();
        for (int i = 0; i < 20; i++) {
            served(ask(null));
        }
        assertEquals(0, spot.calls.size());
        Gateways.workers(gateway, "POST", "/x/drain", "");
        Gateways.workers(gateway, "POST", "/y/drain", "");
        assertEquals(503, ask(null).statusCode());
        served(ask(null, "x-kvasir-tolerate", "spot"));
        served(ask("{\"routing_constraints\":{\"tolerated_taints\":[\"spot\"]}}"));
        assertEquals(2, spot.calls.size());
    }

    @Test
    void aRequestThatNoWorkerIsForIsRefusedWithWhatItAskedAndHowManyThatLeftOut() throws Exception {
        start();
        final HttpResponse<String> refused = ask(null, "x-kvasir-require", "zone=q");
        assertEquals(503, refused.statusCode());
        final JsonNode error = GatewayHttpTest.json(refused).path("error");
        assertEquals(
                "none of 3 workers is for this request: 3 lack one of the required labels [zone=q],"
                        + " 1 have a taint that it does not tolerate",
                error.path("message").asText());
        assertTrue(refused.body().contains("none_suitable"), refused.body());
    }

    @Test
    void aForcedWorkerThatTheRequestIsNotForIsRefused() throws Exception {
        start();
        assertEquals(
                503, ask(null, "x-kvasir-require", "zone=x", "x-kvasir-worker", "y").statusCode());
        assertEquals(
                503, ask(null, "x-kvasir-mode", "direct", "x-kvasir-worker", "s").statusCode());
        served(ask(null, "x-kvasir-require", "zone=y", "x-kvasir-worker", "y"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "x-kvasir-require | zone=",
                "x-kvasir-require | a=b=c",
                "x-kvasir-require | zone=x y",
                "x-kvasir-tolerate | ü",
                "x-kvasir-prefer | zone=x;w=",
                "x-kvasir-prefer | zone=x;w=NaN",
                "x-kvasir-prefer | zone=x;w=Infinity",
                "x-kvasir-prefer | zone=x;q=1",
                "x-kvasir-prefer | zone =x",
                "x-kvasir-prefer | ;w=2",
                "x-kvasir-require | zone =x",
                "x-kvasir-require | =x, zone=y",
                "x-kvasir-require | ;",
                "x-kvasir-tolerate | =",
                "x-kvasir-tolerate | zone =x"
            })
    void aHeaderThatCannotBeReadIsRefusedByName(String header, String value) throws Exception {
        start();
        final HttpResponse<String> refused = ask(null, header, value);
        assertEquals(400, refused.statusCode(), refused.body());
        assertTrue(refused.body().contains(header), refused.body());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "7",
                "[]",
                "{\"required_taints\":\"zone=x\"}",
                "{\"required_taints\":[7]}",
                "{\"required_taints\":[\"\"]}",
                "{\"preferred_taints\":[\"zone=x\"]}",
                "{\"preferred_taints\":{\"zone=x\":\"much\"}}",
                "{\"tolerated_taints\":{}}"
            })
    void hintsThatCannotBeReadAreRefused(String hints) throws Exception {
        start();
        final HttpResponse<String> refused = ask("{\"routing_constraints\":" + hints + "}");
        assertEquals(400, refused.statusCode(), refused.body());
        assertTrue(refused.body().contains("nvext.routing_constraints"), refused.body());
    }

    @Test
    void tooManyLabelsAreRefused() throws Exception {
        start();
        final StringBuilder many = new StringBuilder("l0");
        for (int i = 1; i <= 64; i++) {
            many.append(",l").append(i);
        }
        final HttpResponse<String> refused = ask(null, "x-kvasir-require", many.toString());
        assertEquals(400, refused.statusCode());
        assertTrue(refused.body().contains("65 labels are more than 64"), refused.body());
    }

    @Test
    void whatIsNoObjectOrEmptyAsksNothing() throws Exception {
        start();
        for (String nvext :
                List.of("null", "7", "[]", "{}", "{\"routing_constraints\":null}", "\"x\"")) {
            served(ask(nvext));
        }
        served(ask("{\"routing_constraints\":{}}", "x-kvasir-require", ""));
    }

    @Test
    void aCallerThatIsNotTrustedAsksNothing() throws Exception {
        start(List.of());
        served(ask("{\"routing_constraints\":{\"required_taints\":[\"nowhere\"]}}"));
        served(ask("{\"routing_constraints\":7}", "x-kvasir-require", "nowhere"));
    }
}
