package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Operators that change settings and workers at once while the file is read again and requests are
 * under way: the accepted changes have one order, each page shows the settings of one moment of it,
 * each operator's workers are what its calls made of them, and every request is answered.
 */
class AdminClientsModelTest {
    private static final int STEPS = Trials.of(20, 120);
    private static final int OPERATORS = 3;
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String SHARED = "shared";
    private static final List<String> MODELS = List.of("m", "n");
    private static final List<Setting<?>> ROWS =
            List.of(RouterSettings.TEMPERATURE, RouterSettings.OVERLAP_WEIGHT);
    private static final Setting<Integer> OF_FILE = GatewaySettings.RETRIES;

    /** Values by model and row. */
    private record Shown(long version, Map<String, Double> values) {}

    /** An accepted change: what it asked for, and what it says to have changed. */
    private record Change(
            long version,
            Map<String, Double> asked,
            Map<String, Double> from,
            Map<String, Double> to) {}

    private final FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
    private final long seed = Seeds.next("AdminClientsModelTest");
    private final Queue<Shown> pages = new ConcurrentLinkedQueue<>();
    private final Queue<Change> changes = new ConcurrentLinkedQueue<>();
    private final List<Integer> ofFile = new ArrayList<>(); // by the first operator
    private final AtomicInteger shared = new AtomicInteger();
    private GatewayServer gateway;

    private GatewayConfig.Builder config(int retries) {
        return Gateways.config(engine.worker("stays"))
                .set(RouterSettings.MAX_WORKERS, 64)
                .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n,temperature=0.25")))
                .set(OF_FILE, retries);
    }

    @Tag("trials")
    @Test
    void whatIsShownIsOneOrderOfWhatWasAccepted() throws Exception {
        gateway = Gateways.started(config(1));
        try (engine;
                GatewayServer closed = gateway) {
            final Shown before = page();
            try (ExecutorService operators = Executors.newVirtualThreadPerTaskExecutor()) {
                final List<Future<?>> all = new ArrayList<>();
                for (int i = 0; i < OPERATORS; i++) {
                    final Operator operator = new Operator(i);
                    all.add(operators.submit(operator::run));
                }
                for (Future<?> each : all) {
                    each.get();
                }
            }
            pages.add(page());
            assertOneOrder(before);
            assertEquals(shared.get(), workers().containsKey(SHARED) ? 1 : 0);
            Eventually.holds("no booking is left", () -> closed.activeLeases() == 0);
            Eventually.holds("the engine rests", () -> engine.inFlight.get() == 0);
        } catch (Exception | AssertionError e) {
            throw new AssertionError("seed " + seed, e);
        }
    }

    private void assertOneOrder(Shown before) {
        final Map<Long, Change> byVersion = new TreeMap<>();
        for (Change change : changes) {
            if (!change.to.isEmpty()) {
                assertEquals(null, byVersion.put(change.version, change), "two of one version");
            }
        }
        final Map<Long, Map<String, Double>> states = new TreeMap<>();
        states.put(before.version, before.values);
        Map<String, Double> state = before.values;
        int read = 0;
        for (long version = before.version + 1;
                byVersion.containsKey(version) || read < ofFile.size();
                version++) {
            state = new TreeMap<>(state);
            final Change change = byVersion.get(version);
            if (change == null) {
                final double value = ofFile.get(read++);
                for (String model : MODELS) {
                    state.put(model + ' ' + OF_FILE, value);
                }
            } else {
                for (Map.Entry<String, Double> each : change.from.entrySet()) {
                    assertEquals(each.getValue(), state.get(each.getKey()), change.toString());
                }
                state.putAll(change.to);
            }
            states.put(version, state);
        }
        for (Change change : changes) {
            final Map<String, Double> at = states.get(change.version);
            change.asked.forEach(
                    (row, value) -> assertEquals(value, at.get(row), change.toString()));
        }
        for (Shown page : pages) {
            assertEquals(states.get(page.version), page.values, "version " + page.version);
        }
    }

    private JsonNode ask(String method, String path, String body, int... statuses)
            throws Exception {
        final HttpResponse<String> answer =
                Gateways.send(
                        Gateways.adminRequest(gateway, path)
                                .method(method, HttpRequest.BodyPublishers.ofString(body)));
        for (int status : statuses) {
            if (answer.statusCode() == status) {
                return ((ObjectNode) Json.MAPPER.readTree(answer.body())).put("status", status);
            }
        }
        throw new AssertionError(
                method + ' ' + path + ' ' + body + ": " + answer.statusCode() + answer.body());
    }

    private Shown page() throws Exception {
        final JsonNode page = ask("GET", "/settings", "", 200);
        final Map<String, Double> values = new TreeMap<>();
        for (String model : MODELS) {
            put(values, model, page.path("settings"));
        }
        for (JsonNode model : page.path("models")) {
            put(values, model.path("model").asText(), model.path("settings"));
        }
        return new Shown(page.path("version").asLong(), values);
    }

    private static void put(Map<String, Double> values, String model, JsonNode rows) {
        for (JsonNode row : rows) {
            final String name = row.path("name").asText();
            if (name.equals(OF_FILE.name())
                    || ROWS.stream().anyMatch(each -> each.name().equals(name))) {
                values.put(model + ' ' + name, row.path("value").asDouble());
            }
        }
    }

    /** Whether each is drained, by name. */
    private Map<String, Boolean> workers() throws Exception {
        final Map<String, Boolean> workers = new TreeMap<>();
        for (JsonNode worker : ask("GET", "/admin/workers", "", 200).path("workers")) {
            workers.put(worker.path("name").asText(), worker.path("draining").asBoolean());
        }
        return workers;
    }

    /** One of them, with workers of its own and one that all have. */
    private final class Operator {
        private final int number;
        private final Random random;
        private final Map<String, Boolean> own = new TreeMap<>();
        private long version = 1; // that it has seen last

        Operator(int number) {
            this.number = number;
            random = new Random(seed + number);
            random.nextInt();
        }

        Void run() throws Exception {
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(number == 0 ? 10 : 8)) {
                    case 0, 1, 2 -> change();
                    case 3, 4 -> {
                        final Shown page = page();
                        assertTrue(page.version >= version, "back from " + version);
                        version = page.version;
                        pages.add(page);
                    }
                    case 5 -> ofAll();
                    case 6, 7 -> ofItsOwn();
                    default -> read();
                }
                assertEquals(
                        200,
                        Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}").statusCode());
            }
            return null;
        }

        private void change() throws Exception {
            final String model = MODELS.get(random.nextInt(MODELS.size()));
            final ObjectNode body = Json.MAPPER.createObjectNode().put("model", model);
            final Map<String, Double> asked = new TreeMap<>();
            final ObjectNode settings = body.putObject("settings");
            for (Setting<?> row : ROWS) {
                switch (random.nextInt(4)) {
                    case 0 -> {}
                    case 1 -> settings.putNull(row.name());
                    default -> {
                        final int value = random.nextInt(4);
                        settings.put(row.name(), value);
                        asked.put(model + ' ' + row, (double) value);
                    }
                }
            }
            if (settings.isEmpty()) {
                ask("PATCH", "/settings", body.toString(), 400);
                return;
            }
            final boolean expects = random.nextInt(3) == 0;
            if (expects) {
                body.put("version", version);
            }
            final boolean isDry = random.nextInt(6) == 0;
            final JsonNode answer =
                    ask("PATCH", "/settings", body.put("dry_run", isDry).toString(), 200, 409);
            if (answer.path("status").asInt() == 409) {
                assertTrue(expects);
                return;
            }
            final Map<String, Double> from = new TreeMap<>();
            final Map<String, Double> to = new TreeMap<>();
            for (JsonNode each : answer.path("changed")) {
                final String row = each.path("model").asText() + ' ' + each.path("name").asText();
                from.put(row, each.path("from").asDouble());
                to.put(row, each.path("to").asDouble());
            }
            final long now = answer.path("version").asLong();
            assertTrue(now >= version, "back from " + version);
            if (expects) {
                assertEquals(version + (isDry || to.isEmpty() ? 0 : 1), now);
            }
            version = now;
            if (!isDry) {
                changes.add(new Change(now, asked, from, to));
            }
        }

        /** What the file says, or that it cannot be read. */
        private void read() {
            if (random.nextInt(4) == 0) {
                gateway.reload(
                        () -> {
                            throw new IllegalStateException("of the test");
                        });
                return;
            }
            final int value = random.nextInt(6);
            if (value != (ofFile.isEmpty() ? 1 : ofFile.getLast())) {
                ofFile.add(value);
            }
            gateway.reload(() -> config(value).build());
        }

        private void ofItsOwn() throws Exception {
            final String name = "w" + number + random.nextInt(2);
            final boolean isKnown = own.containsKey(name);
            switch (random.nextInt(4)) {
                case 0 -> {
                    add(name, isKnown ? 200 : 201);
                    own.putIfAbsent(name, false);
                }
                case 1 -> {
                    ask("DELETE", "/admin/workers/" + name, "", isKnown ? 200 : 404);
                    own.remove(name);
                }
                default -> {
                    final boolean drains = random.nextBoolean();
                    ask(
                            "POST",
                            "/admin/workers/" + name + (drains ? "/drain" : "/resume"),
                            "",
                            isKnown ? 200 : 404);
                    own.replace(name, drains);
                }
            }
            final Map<String, Boolean> shown = workers();
            shown.keySet().removeIf(each -> !each.startsWith("w" + number));
            assertEquals(own, shown);
        }

        private JsonNode add(String name, int... statuses) throws Exception {
            final ObjectNode body = Json.MAPPER.createObjectNode();
            body.put("name", name).put("url", engine.url());
            return ask("POST", "/admin/workers", body.toString(), statuses);
        }

        /** As often as it is added anew, less what it is removed, it is there. */
        private void ofAll() throws Exception {
            if (random.nextBoolean()) {
                shared.addAndGet(add(SHARED, 200, 201).path("status").asInt() - 200);
            } else {
                final JsonNode answer = ask("DELETE", "/admin/workers/" + SHARED, "", 200, 404);
                shared.addAndGet(answer.path("status").asInt() == 200 ? -1 : 0);
            }
        }
    }
}
