package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.eclipse.jetty.util.URIUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/**
 * Workers that operators add, replace, drain, resume and remove by the admin port in any order,
 * with names that are strange in a path and bodies that are wrong, beside requests under way. After
 * each call the port shows what a map of names has, and a request reaches one of them.
 */
class AdminWorkersModelTest {
    private static final int STEPS = 40;
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final List<String> NAMES =
            List.of(
                    "a",
                    "b",
                    "a/b",
                    "a b",
                    "\u00e9",
                    "drain",
                    "a/drain",
                    "b/resume",
                    "a/lora-ids",
                    "a;b",
                    "a?b",
                    "a#b",
                    "%41",
                    "a\\b",
                    "/",
                    "a/",
                    "a//b",
                    "");

    private final FakeEngine[] engines = {engine(), engine()};
    private final GatewayServer gateway;
    private final Map<String, FakeEngine> workers = new TreeMap<>();
    private final Map<String, Boolean> draining = new TreeMap<>();
    private final long seed = Seeds.next("AdminWorkersModelTest");
    private final Random random = new Random(seed);

    AdminWorkersModelTest() throws InterruptedException {
        gateway = Gateways.started(Gateways.config());
    }

    private static FakeEngine engine() {
        return new FakeEngine(call -> call.json(200, ANSWER));
    }

    @AfterEach
    void close() {
        gateway.close();
        for (FakeEngine engine : engines) {
            engine.close();
        }
    }

    private String words() {
        return "seed " + seed;
    }

    private HttpResponse<String> admin(String method, String path, String body) throws Exception {
        return Gateways.workers(gateway, method, path, body);
    }

    private String name() {
        return random.nextInt(3) > 0
                ? NAMES.get(random.nextInt(3))
                : NAMES.get(random.nextInt(NAMES.size()));
    }

    private static String path(String name) {
        return "/" + URIUtil.encodePath(name).replace("?", "%3F").replace("\\", "%5C");
    }

    @Test
    void thePortShowsAndRequestsReachWhatAMapOfNamesHas() throws Exception {
        for (int step = 0; step < STEPS; step++) {
            final CompletableFuture<HttpResponse<String>> before =
                    Gateways.postAsync(gateway, "/v1/completions", "{\"prompt\":[1]}");
            switch (random.nextInt(8)) {
                case 0, 1, 2 -> add(name(), engines[random.nextInt(engines.length)]);
                case 3 -> remove(name());
                case 4, 5 -> drain(name(), true);
                case 6 -> drain(name(), false);
                default -> nonsense();
            }
            final int status = before.get().statusCode();
            assertTrue(status == 200 || status == 503, () -> words() + ": " + status);
            check("step " + step);
        }
        for (String name : List.copyOf(workers.keySet())) {
            remove(name);
        }
        check("end");
        Eventually.holds(this::words, () -> gateway.activeLeases() == 0);
    }

    private void add(String name, FakeEngine engine) throws Exception {
        final ObjectNode body = Json.MAPPER.createObjectNode();
        final HttpResponse<String> answer =
                admin("POST", "", body.put("name", name).put("url", engine.url()).toString());
        if (answer.statusCode() == 400) {
            assertTrue(NAMES.indexOf(name) > 1, () -> words() + ": " + name + answer.body());
            return;
        }
        assertEquals(
                workers.get(name) == engine ? 200 : 201,
                answer.statusCode(),
                () -> words() + ": " + name + answer.body());
        if (workers.put(name, engine) != engine) {
            draining.put(name, false);
        }
    }

    private void remove(String name) throws Exception {
        final HttpResponse<String> answer = admin("DELETE", path(name), "");
        if (workers.remove(name) != null) {
            assertEquals(
                    200, answer.statusCode(), () -> words() + ": " + name + ": " + answer.body());
        } else {
            assertRefused(name, answer);
        }
    }

    private void drain(String name, boolean begin) throws Exception {
        final HttpResponse<String> answer =
                admin("POST", path(name) + (begin ? "/drain" : "/resume"), "");
        if (workers.containsKey(name)) {
            assertEquals(
                    200, answer.statusCode(), () -> words() + ": " + name + ": " + answer.body());
            draining.put(name, begin);
        } else {
            assertRefused(name, answer);
        }
    }

    private void assertRefused(String what, HttpResponse<String> answer) {
        assertTrue(
                answer.statusCode() >= 400 && answer.statusCode() < 500,
                () -> words() + ": " + what + ": " + answer.statusCode() + answer.body());
    }

    private void nonsense() throws Exception {
        final String body =
                List.of(
                                "",
                                "[",
                                "{}",
                                "{\"name\":\"a\"}",
                                "{\"name\":\"a\",\"url\":7}",
                                "{\"name\":\"a\",\"url\":\"ftp://x\"}",
                                "{\"name\":\"a\",\"url\":\"http://127.0.0.1:1\",\"x\":1}",
                                "{\"name\":\"a\",\"url\":\"http://127.0.0.1:1\",\"model\":\"z\"}",
                                "{\"name\":\"\\ud800\",\"url\":\"http://127.0.0.1:1\"}",
                                "{\"name\":[\"a\"],\"url\":\"http://127.0.0.1:1\"}",
                                "{\"name\":\"a\",\"url\":\"http://127.0.0.1:1\",\"dp-size\":1e9}")
                        .get(random.nextInt(11));
        assertRefused(body, admin(random.nextBoolean() ? "POST" : "PUT", "", body));
    }

    private void check(String when) throws Exception {
        final Map<String, String> expected = new TreeMap<>();
        workers.forEach((name, e) -> expected.put(name, e.url() + " " + draining.get(name)));
        final Map<String, String> shown = new TreeMap<>();
        for (JsonNode worker : list()) {
            final String name = worker.path("name").asText();
            shown.put(
                    name, worker.path("url").asText() + " " + worker.path("draining").asBoolean());
            assertEquals(
                    worker.path("url"),
                    Json.MAPPER.readTree(admin("GET", path(name), "").body()).path("url"),
                    () -> words() + ", " + when + ": " + name);
        }
        assertEquals(expected, shown, () -> words() + ", " + when);
        final boolean hasOne =
                draining.entrySet().stream()
                        .anyMatch(each -> workers.containsKey(each.getKey()) && !each.getValue());
        if (!hasOne) {
            assertEquals(503, complete(), () -> words() + ", " + when);
            return;
        }
        Eventually.until(() -> words() + ", " + when, () -> complete() == 200);
    }

    private JsonNode list() throws Exception {
        return Json.MAPPER.readTree(admin("GET", "", "").body()).path("workers");
    }

    private int complete() throws Exception {
        return Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}").statusCode();
    }
}
