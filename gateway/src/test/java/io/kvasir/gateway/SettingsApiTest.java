package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** {@code /settings} of the admin port, and a configuration file that is read again. */
@Order(1) // takes long: begins first, beside the others
class SettingsApiTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    @TempDir private Path dir;

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) throws InterruptedException {
        gateway = Gateways.started(config);
    }

    private void start() throws InterruptedException {
        start(Gateways.config(engine.worker("one")));
    }

    /** Two models; the second has a temperature of its own. */
    private void startTwo() throws InterruptedException {
        start(
                Gateways.config(
                                engine.worker("one"),
                                WorkerConfig.parse(engine.url() + ",name=two,model=n"),
                                WorkerConfig.parse(engine.url() + ",name=p,role=prefill"))
                        .set(
                                GatewaySettings.MODELS,
                                List.of(ModelConfig.parse("name=n,temperature=0.25"))));
    }

    @Test
    void whatIsAModelsOwnHasItsSourceAndNoListOfModels() throws Exception {
        start(
                Gateways.config(engine.worker("one"))
                        .flag(GatewaySettings.MODELS, List.of("name=n,temperature=0.25")));
        final JsonNode own = page().path("models").path(1).path("settings");
        assertEquals(1, own.size(), own.toString());
        final JsonNode temperature = row(own, RouterSettings.TEMPERATURE);
        assertEquals("flag", temperature.path("source").asText());
        assertEquals("--serve-model", temperature.path("origin").asText());
    }

    @AfterEach
    void stop() {
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private HttpResponse<String> patch(String body, String... headers) throws Exception {
        return Gateways.send(
                Gateways.adminRequest(gateway, "/settings", headers)
                        .method("PATCH", HttpRequest.BodyPublishers.ofString(body)));
    }

    private JsonNode patched(String body) throws Exception {
        final HttpResponse<String> answer = patch(body);
        assertEquals(200, answer.statusCode(), answer.body());
        return Json.MAPPER.readTree(answer.body());
    }

    private JsonNode page() throws Exception {
        final HttpResponse<String> answer = Gateways.admin(gateway, "/settings");
        assertEquals(200, answer.statusCode(), answer.body());
        return Json.MAPPER.readTree(answer.body());
    }

    private static JsonNode row(JsonNode rows, Setting<?> setting) {
        for (JsonNode row : rows) {
            if (row.path("name").asText().equals(setting.name())) {
                return row;
            }
        }
        return Json.MAPPER.missingNode();
    }

    private JsonNode row(Setting<?> setting) throws Exception {
        return row(page().path("settings"), setting);
    }

    private double changes(String by, String outcome) {
        return MetricsPage.of(gateway)
                .sum("kvasir_settings_changes_total", "by", by, "outcome", outcome);
    }

    @Test
    void allRowsAreShownAndSecretsAreNot() throws Exception {
        start(
                Gateways.config(engine.worker("one"))
                        .set(GatewaySettings.TRUSTED_TOKENS, List.of(new Secret("hush-1")))
                        .set(GatewaySettings.WORKER_KEY, new Secret("hush-2"))
                        .set(GatewaySettings.NATS_URL, "nats://u:hush-3@h:1"));
        final HttpResponse<String> answer = Gateways.admin(gateway, "/settings");
        assertFalse(answer.body().contains("hush"), answer.body());
        final JsonNode page = Json.MAPPER.readTree(answer.body());
        assertEquals(GatewaySettings.TABLE.rows().size(), page.path("settings").size());
        for (Setting<?> setting : GatewaySettings.TABLE.rows()) {
            final JsonNode row = row(page.path("settings"), setting);
            assertEquals(setting.isLive(), row.path("live").asBoolean(), setting.name());
        }
        assertEquals("code", row(GatewaySettings.PORT).path("source").asText());
        assertEquals("default", row(RouterSettings.MODE).path("source").asText());
        assertEquals("kv", row(RouterSettings.MODE).path("value").asText());
        assertEquals(1, page.path("version").asInt());
    }

    @Test
    void aChangedCreditIsOnThePageOfMetrics() throws Exception {
        start(); // a worker without events: degraded
        assertEquals(
                0.5, MetricsPage.of(gateway).sum("kvasir_worker_index_credit", "worker", "one"));
        patched("{\"settings\":{\"degraded-credit\":0.25,\"prediction-check\":\"off\"}}");
        assertEquals(
                0.25, MetricsPage.of(gateway).sum("kvasir_worker_index_credit", "worker", "one"));
        assertEquals("off", row(RouterSettings.PREDICTION_CHECK).path("value").asText());
        patched("{\"settings\":{\"degraded-credit\":null}}");
        assertEquals(
                0.5, MetricsPage.of(gateway).sum("kvasir_worker_index_credit", "worker", "one"));
    }

    @Test
    void aChangeIsInTheDecisionsThatFollowAndCanBeWithdrawn() throws Exception {
        start();
        final JsonNode changed =
                patched("{\"settings\":{\"temperature\":0.5,\"mode\":\"random\"},\"version\":1}");
        assertEquals(2, changed.path("version").asInt());
        assertEquals(2, changed.path("changed").size(), changed.toString());
        assertEquals("operator", row(RouterSettings.MODE).path("source").asText());
        assertEquals("PATCH /settings", row(RouterSettings.MODE).path("origin").asText());
        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
        final JsonNode decision =
                Json.MAPPER
                        .readTree(Gateways.admin(gateway, "/debug/decisions").body())
                        .path("decisions")
                        .path(0);
        assertEquals("random", decision.path("mode").asText());
        assertEquals(0.5, decision.path("temperature").asDouble());
        assertEquals(2, decision.path("settings_version").asInt());
        assertEquals(2, MetricsPage.of(gateway).sum("kvasir_settings_version"));
        assertEquals(1, changes("operator", "applied"));
        assertEquals(3, patched("{\"settings\":{\"mode\":null}}").path("version").asInt());
        assertEquals(RoutingMode.KV, gateway.router().mode());
        assertEquals("default", row(RouterSettings.MODE).path("source").asText());
    }

    @Test
    void aDryRunAndWhatIsNoChangeChangeNothing() throws Exception {
        start();
        final JsonNode dry = patched("{\"settings\":{\"temperature\":2},\"dry_run\":true}");
        assertEquals("2", dry.path("changed").path(0).path("to").asText(), dry.toString());
        assertEquals(1, dry.path("version").asInt());
        assertEquals(1, patched("{\"settings\":{\"temperature\":0}}").path("version").asInt());
        assertEquals(0, gateway.router().settings().get(RouterSettings.TEMPERATURE));
    }

    @Test
    void anotherVersionThanTheExpectedOneIsAConflict() throws Exception {
        start();
        patched("{\"settings\":{\"temperature\":2}}");
        final HttpResponse<String> late = patch("{\"settings\":{\"temperature\":3},\"version\":1}");
        assertEquals(409, late.statusCode());
        assertTrue(late.body().contains("at version 2, not at 1"), late.body());
        assertEquals(2, gateway.router().settings().get(RouterSettings.TEMPERATURE));
        assertEquals(1, changes("operator", "refused"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[]|a JSON object",
                "{|not valid JSON",
                "{'settings':{'temperature':1,'temperature':2}}|Duplicate field 'temperature'",
                "{'settings':{'temperature':1}}{}|more than one value",
                "{}|one setting at least",
                "{'settings':{}}|one setting at least",
                "{'settings':{'temperature':1},'modle':'m'}|unknown member 'modle'",
                "{'settings':{'temprature':1}}|the nearest is 'temperature'",
                "{'settings':{'temperature':-1}}|temperature=-1 is out of range",
                "{'settings':{'temperature':[1,2]}}|takes one value",
                "{'settings':{'temperature':{}}}|must be a single value",
                "{'settings':{'block-size':32}}|block-size cannot be changed while",
                "{'settings':{'temperature':1},'model':'x'}|no model is named 'x'",
                "{'settings':{'temperature':1},'version':'x'}|must be a whole number",
                "{'settings':{'temperature':1},'version':1.5}|must be a whole number",
                "{'settings':{'temperature':1},'dry_run':1}|must be true or false",
                "{'settings':{'temperature':-1,'block-size':1,'mod':'kv'}}|block-size cannot",
                "{'settings':{'temperature':-1,'block-size':1,'mod':'kv'}}|temperature=-1",
                "{'settings':{'temperature':-1,'block-size':1,'mod':'kv'}}|unknown setting 'mod'",
                "{'settings':{'single-flight':'wait','prefill-overlap-weight':0}}|the prefill pool",
                "{'settings':{'access-log':'/no/such/dir/x'}}|cannot write the access log"
            })
    void whatCannotBeIsRefusedByNameAndNothingChanges(String body, String why) throws Exception {
        start();
        final HttpResponse<String> answer = patch(body.replace('\'', '"'));
        assertEquals(400, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains(why), answer.body());
        assertEquals(1, page().path("version").asInt());
    }

    @Test
    void aBodyBeyondTheLimitNamesNoSettingThatWouldNotHelp() throws Exception {
        start();
        final HttpResponse<String> answer = patch(" ".repeat(65_537));
        assertEquals(413, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("limit of 65536; shorten it\""), answer.body());
    }

    @Test
    void anIndexThatWasLeftOutIsNotThere() throws Exception {
        start(Gateways.config(engine.worker("one")).set(RouterSettings.OVERLAP_WEIGHT, 0.0));
        final HttpResponse<String> answer =
                patch("{\"settings\":{\"temperature\":1,\"overlap-weight\":1}}");
        assertEquals(400, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("prefix-index=on"), answer.body());
        assertEquals(0, gateway.router().settings().get(RouterSettings.TEMPERATURE));
    }

    @Test
    void whatTheIndexNeedsHasAnEffectWhileItStays() throws Exception {
        start(Gateways.config(WorkerConfig.parse(engine.url() + ",events=tcp://127.0.0.1:1")));
        assertEquals(
                List.of(),
                warnings("{\"settings\":{\"overlap-weight\":0}}"),
                "the index is followed on");
        assertEquals(
                1,
                warnings("{\"settings\":{\"retry-backoff-ms\":9,\"retries\":0}}").size(),
                "what is decided by the values of now");
    }

    @Test
    void whatTheIndexNeedsHasNoneWhereThereIsNoIndexSinceTheStart() throws Exception {
        start(
                Gateways.config(WorkerConfig.parse(engine.url() + ",events=tcp://127.0.0.1:1"))
                        .set(RouterSettings.OVERLAP_WEIGHT, 0.0));
        assertEquals(
                List.of(
                        "max-blocks, max-held-blocks have no effect without an index, which"
                                + " prefix-index and overlap-weight leave out",
                        "the events of workers are not followed: prefix-index=auto,"
                                + " overlap-weight=0"),
                warnings("{\"settings\":{\"temperature\":1}}"));
    }

    private List<String> warnings(String change) throws Exception {
        final List<String> all = new ArrayList<>();
        patched(change).path("warnings").forEach(each -> all.add(each.asText()));
        return all;
    }

    @Test
    void modelsHaveTheGatewaysValueUnlessTheyHaveTheirOwn() throws Exception {
        startTwo();
        final JsonNode both = patched("{\"settings\":{\"temperature\":2,\"overlap-weight\":3}}");
        assertEquals(3, both.path("changed").size(), both.toString());
        assertEquals(2, gateway.router("m").settings().get(RouterSettings.TEMPERATURE));
        assertEquals(0.25, gateway.router("n").settings().get(RouterSettings.TEMPERATURE));
        assertEquals(3, gateway.router("n").settings().get(RouterSettings.OVERLAP_WEIGHT));
        patched("{\"settings\":{\"temperature\":4},\"model\":\"n\"}");
        assertEquals(2, gateway.router("m").settings().get(RouterSettings.TEMPERATURE));
        assertEquals(4, gateway.router("n").settings().get(RouterSettings.TEMPERATURE));
        assertEquals(3, gateway.router("m").settingsVersion(), "one version for all routers");
        final JsonNode own = page().path("models").path(1);
        assertEquals(
                "4", row(own.path("settings"), RouterSettings.TEMPERATURE).path("value").asText());
        final HttpResponse<String> gateways =
                patch("{\"settings\":{\"retries\":1},\"model\":\"n\"}");
        assertTrue(gateways.body().contains("is the gateway's"), gateways.body());
        gateway.mode(RoutingMode.RANDOM);
        assertEquals(RoutingMode.RANDOM, gateway.router("n").mode());
    }

    private String ownOrigin(String model, Setting<?> setting) throws Exception {
        for (JsonNode each : page().path("models")) {
            if (each.path("model").asText().equals(model)) {
                final JsonNode row = row(each.path("settings"), setting);
                return row.path("source").asText() + " " + row.path("origin").asText();
            }
        }
        return "none";
    }

    @ParameterizedTest
    @ValueSource(strings = {"4", "2", "0.25"}) // another one, the gateway's, its own of before
    void whatOperatorsSetForAModelIsFromThem(String value) throws Exception {
        final Path yaml =
                Files.writeString(
                        dir.resolve("models.yaml"),
                        "temperature: 2\nserve-model:\n- name: n\n  temperature: 0.25\n");
        start(Gateways.config(engine.worker("one")).file(yaml));
        final String file = "file " + yaml + ":4";
        assertEquals(file, ownOrigin("n", RouterSettings.TEMPERATURE));
        patched("{\"settings\":{\"temperature\":" + value + "},\"model\":\"n\"}");
        assertEquals("operator PATCH /settings", ownOrigin("n", RouterSettings.TEMPERATURE));
        gateway.reload(() -> read(yaml));
        assertEquals("operator PATCH /settings", ownOrigin("n", RouterSettings.TEMPERATURE));
        patched("{\"settings\":{\"temperature\":null},\"model\":\"n\"}");
        assertEquals(file, ownOrigin("n", RouterSettings.TEMPERATURE));
    }

    @Test
    void thePrefillPoolTakesItsOwnRows() throws Exception {
        startTwo();
        final String before = page().path("models").path(0).path("prefill_digest").asText();
        patched("{\"settings\":{\"prefill-overlap-weight\":7}}");
        final JsonNode model = page().path("models").path(0);
        assertFalse(before.equals(model.path("prefill_digest").asText()), model.toString());
        assertEquals(1, gateway.router("m").settings().get(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(2, gateway.router("m").settingsVersion());
    }

    @Test
    void theTokenIsNeeded() throws Exception {
        start(Gateways.config().set(GatewaySettings.ADMIN_TOKEN, new Secret("t")));
        final String body = "{\"settings\":{\"temperature\":2}}";
        assertEquals(401, patch(body).statusCode());
        assertEquals(401, Gateways.admin(gateway, "/settings").statusCode());
        assertEquals(200, patch(body, "Authorization", "Bearer t").statusCode());
    }

    private GatewayConfig read(Path yaml) throws IOException {
        return Gateways.config(engine.worker("one")).file(yaml).build();
    }

    private void reload(String yaml) throws IOException {
        final Path file = dir.resolve("gateway.yaml");
        Files.writeString(file, yaml);
        gateway.reload(() -> read(file));
    }

    @Test
    void aFileThatIsReadAgainAppliesWhatIsLiveAndNamesTheRest() throws Exception {
        start();
        reload("temperature: 3\ntemplate-max-depth: 99\nmode: random\n");
        assertEquals(3, gateway.router().settings().get(RouterSettings.TEMPERATURE));
        final JsonNode page = page();
        assertEquals(2, page.path("version").asInt());
        final JsonNode late = page.path("waiting_for_start");
        assertEquals(1, late.size(), late.toString());
        assertEquals("template-max-depth", late.path(0).path("name").asText());
        assertEquals("99", late.path(0).path("value").asText());
        assertTrue(row(RouterSettings.MODE).path("origin").asText().endsWith("gateway.yaml:3"));
        assertEquals(1, changes("file", "applied"));
        reload("mode: random\n");
        assertEquals(0, gateway.router().settings().get(RouterSettings.TEMPERATURE));
        assertEquals(0, page().path("waiting_for_start").size());
    }

    @ParameterizedTest
    @CsvSource({"temperature: -1", "no-such-key: 1", "'temperature: 2\nnats-url: [}'"})
    void aBrokenFileChangesNothingAndIsCounted(String yaml) throws Exception {
        start();
        reload(yaml);
        assertEquals(1, page().path("version").asInt());
        assertEquals(1, changes("file", "refused"));
        reload("temperature: 2");
        assertEquals(2, page().path("version").asInt());
    }

    @Test
    void whatAnOperatorHasChangedStaysOverTheFileUntilItIsWithdrawn() throws Exception {
        start();
        patched("{\"settings\":{\"temperature\":5}}");
        reload("temperature: 3\n");
        assertEquals(5, gateway.router().settings().get(RouterSettings.TEMPERATURE));
        patched("{\"settings\":{\"temperature\":null}}");
        assertEquals(3, gateway.router().settings().get(RouterSettings.TEMPERATURE));
    }

    @Test
    void oneConfigurationServesSeveralGateways() throws Exception {
        final GatewayConfig.Builder shared = Gateways.config(engine.worker("one"));
        start(shared);
        patched("{\"settings\":{\"temperature\":5}}");
        try (GatewayServer other = Gateways.started(shared)) {
            assertEquals(0, other.router().settings().get(RouterSettings.TEMPERATURE));
        }
    }
}
