package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.ReplacedFile;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Workers that come and go while the gateway runs. */
class LiveWorkersTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String WHOLE = "{\"prompt\":[1]}";
    private static final String STREAM = "{\"prompt\":[1],\"stream\":true}";

    private final FakeEngine first = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    private void start(GatewayConfig.Builder config) throws Exception {
        gateway = Gateways.started(config);
    }

    @AfterEach
    void stop() {
        gateway.close();
        first.close();
        second.close();
    }

    private HttpResponse<String> admin(String method, String path, String body) throws Exception {
        return Gateways.workers(gateway, method, path, body);
    }

    private static String json(FakeEngine engine, String name) {
        return "{\"url\":\"" + engine.url() + "\",\"name\":\"" + name + "\"}";
    }

    private JsonNode worker(String name) throws Exception {
        final HttpResponse<String> answer = admin("GET", "/" + name, "");
        return answer.statusCode() == 200 ? GatewayHttpTest.json(answer) : null;
    }

    private void awaitInUse(String name) throws Exception {
        Eventually.holds(
                name + " is in use",
                () -> {
                    try {
                        return worker(name).path("in_use").asBoolean();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                });
    }

    private HttpResponse<String> complete() throws Exception {
        return Gateways.post(gateway, "/v1/completions", WHOLE);
    }

    @Test
    void workersAreAddedListedAndRemoved() throws Exception {
        start(Gateways.config(first.worker("one")));
        assertEquals(201, admin("POST", "", json(second, "two")).statusCode());
        awaitInUse("two");
        final JsonNode list = GatewayHttpTest.json(admin("GET", "", "")).path("workers");
        assertEquals("one", list.at("/0/name").asText());
        assertEquals("static", list.at("/0/source").asText());
        assertEquals("two", list.at("/1/name").asText());
        assertEquals(second.url(), list.at("/1/url").asText());
        assertEquals("admin", list.at("/1/source").asText());
        assertEquals(200, admin("DELETE", "/one", "").statusCode());
        for (int i = 0; i < 3; i++) {
            assertEquals(200, complete().statusCode());
        }
        assertEquals(0, first.calls.size());
        assertEquals(3, second.calls.size());
        assertEquals(404, admin("DELETE", "/one", "").statusCode());
        assertEquals(404, admin("GET", "/one", "").statusCode());
        assertEquals(404, admin("POST", "/one/drain", "").statusCode());
    }

    @Test
    void aWorkerIsNotUsedBeforeItAnswers() throws Exception {
        final CountDownLatch loaded = new CountDownLatch(1);
        second.health =
                call -> {
                    loaded.await();
                    call.json(200, "{}");
                };
        start(Gateways.config(first.worker("one")));
        assertEquals(201, admin("POST", "", json(second, "two")).statusCode());
        for (int i = 0; i < 4; i++) {
            assertEquals(200, complete().statusCode());
        }
        assertEquals(0, second.calls.size());
        assertFalse(worker("two").path("in_use").asBoolean());
        loaded.countDown();
        awaitInUse("two");
    }

    @Test
    void aWorkerOfAGatewayWithoutOneMakesItReady() throws Exception {
        start(Gateways.config());
        assertEquals(503, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(503, complete().statusCode());
        assertEquals(201, admin("POST", "", json(first, "one")).statusCode());
        awaitInUse("one");
        assertEquals(200, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(200, complete().statusCode());
    }

    @Test
    void aDrainedWorkerEndsWhatItHasAndGetsNothingNew() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        first.script =
                call -> {
                    go.await();
                    call.json(200, ANSWER);
                };
        start(Gateways.config(first.worker("one")));
        final Future<HttpResponse<String>> running = inBackground();
        Eventually.holds("it runs", () -> first.calls.size() == 1);
        admin("POST", "", json(second, "two"));
        awaitInUse("two");
        final JsonNode drained = GatewayHttpTest.json(admin("POST", "/one/drain", ""));
        assertTrue(drained.path("draining").asBoolean());
        assertEquals(1, drained.path("active_requests").asInt());
        for (int i = 0; i < 4; i++) {
            assertEquals(200, complete().statusCode());
        }
        assertEquals(1, first.calls.size());
        go.countDown();
        assertEquals(200, running.get().statusCode());
        Eventually.holds(
                "nothing runs there",
                () -> gateway.router().workers().getFirst().activeRequests() == 0);
        assertEquals(200, admin("DELETE", "/one", "").statusCode());
        assertNull(worker("one"));
    }

    @Test
    void aDrainCanBeTakenBack() throws Exception {
        start(Gateways.config(first.worker("one")));
        assertEquals(200, admin("POST", "/one/drain", "").statusCode());
        assertEquals(503, complete().statusCode());
        assertEquals(503, Gateways.get(gateway, "/ready").statusCode());
        assertEquals(200, admin("POST", "/one/resume", "").statusCode());
        assertEquals(200, complete().statusCode());
    }

    @Test
    void aRequestOnARemovedWorkerFinishes() throws Exception {
        final CountDownLatch go = new CountDownLatch(1);
        first.script =
                call -> {
                    call.beginEvents();
                    call.chunk("data: 1\n\n");
                    go.await();
                    call.chunk("data: [DONE]\n\n");
                    call.endChunks();
                };
        start(Gateways.config(first.worker("one")));
        final Future<HttpResponse<String>> running = inBackground();
        Eventually.holds("it runs", () -> first.calls.size() == 1);
        assertEquals(200, admin("DELETE", "/one", "").statusCode());
        assertEquals(0, gateway.router().workers().size());
        go.countDown();
        final HttpResponse<String> answer = running.get();
        assertEquals(200, answer.statusCode());
        assertTrue(answer.body().endsWith("data: [DONE]\n\n"), answer.body());
        assertEquals(0, gateway.router().activeLeases());
        Eventually.holds("no series of it is left", () -> !metrics().contains("\"one\""));
    }

    @Test
    void theSameNameWithAnotherUrlIsAnotherGeneration() throws Exception {
        start(Gateways.config(first.worker("one")));
        final long before = worker("one").path("generation").asLong();
        assertEquals(200, admin("POST", "", json(first, "one")).statusCode());
        assertEquals(before, worker("one").path("generation").asLong());
        assertEquals(201, admin("POST", "", json(second, "one")).statusCode());
        assertTrue(worker("one").path("generation").asLong() > before);
        awaitInUse("one");
        assertEquals(200, complete().statusCode());
        assertEquals(0, first.calls.size());
        assertEquals(1, second.calls.size());
    }

    @Test
    void whatCannotBeUsedIsRefusedAndNamed() throws Exception {
        start(Gateways.config(first.worker("one")));
        final String[][] refused = {
            {"", "JSON"},
            {"[]", "JSON object"},
            {"{}", "no url"},
            {"{\"url\":\"ftp://h:1\"}", "must be http"},
            {"{\"url\":\"http://h:1\",\"nme\":\"a\"}", "unknown key 'nme'"},
            {"{\"url\":\"http://h:1\",\"name\":[\"a\"]}", "single value"},
            {"{\"url\":\"http://h:1\",\"name\":\"a\\nb\"}", "name"},
            {"{\"url\":\"http://h:1\",\"name\":\"a/b\"}", "name"},
            {"{\"url\":\"http://h:1\",\"dp\":8}", "max-workers"},
            {"{\"url\":\"http://h:1\",\"dp\":0}", "dp=0"},
            {"{\"url\":\"http://h:1\",\"model\":\"other\"}", "other"},
            {"{\"url\":\"http://h:1\",\"role\":\"cook\"}", "role=cook"},
            {"{\"url\":\"http://h:1\",\"handoff\":\"mail\"}", "handoff=mail"},
            {"{\"url\":\"http://h:1\",\"url\":\"http://h:2\"}", "Duplicate field 'url'"},
            {"\u0000\u0000x{", "body"},
            {"{\"url\":\"http://h:1\"} trailing", "Unrecognized token 'trailing'"},
            {"{\"url\":\"http://h:1\",\"name\":\"\\ud800\"}", "half of a surrogate pair"},
            {"{\"url\":\"http://h:1\"}{}", "more than one value"},
        };
        for (String[] each : refused) {
            final HttpResponse<String> answer = admin("POST", "", each[0]);
            assertEquals(400, answer.statusCode(), each[0]);
            assertTrue(answer.body().contains(each[1]), answer.body());
        }
        final HttpResponse<String> twice = admin("POST", "/one/lora-ids", "{\"a\":1,\"a\":2}");
        assertEquals(400, twice.statusCode());
        assertTrue(twice.body().contains("Duplicate field 'a'"), twice.body());
        assertEquals(405, admin("PUT", "", "").statusCode());
        assertEquals(405, admin("GET", "/one/drain", "").statusCode());
        assertEquals(1, gateway.router().workers().size());
    }

    @Test
    void theFileOfWorkersIsFollowedAndABrokenOneIsCounted(@TempDir Path dir) throws Exception {
        final Path file = Files.writeString(dir.resolve("w"), "- " + first.url() + ",name=one\n");
        start(
                Gateways.config()
                        .set(GatewaySettings.WORKERS_FILE, file)
                        .set(GatewaySettings.WORKERS_FILE_INTERVAL, Duration.ofMillis(5)));
        assertEquals("file", worker("one").path("source").asText());
        assertEquals(
                "file",
                GatewayHttpTest.json(Gateways.get(gateway, "/debug/workers"))
                        .at("/workers/0/source")
                        .asText());
        ReplacedFile.write(file, "- " + second.url() + ",name=two\n");
        awaitWorkers("two");
        ReplacedFile.write(file, "- " + second.url() + ",nome=two\n");
        Eventually.holds(
                "it is counted",
                () -> metrics().contains("kvasir_discovery_failures_total{source=\"file\"} 1.0"));
        assertEquals(200, complete().statusCode());
        ReplacedFile.write(
                file, "- " + second.url() + ",name=two\n- " + first.url() + ",name=one\n");
        gateway.reload();
        awaitInUse("one");
    }

    private void awaitWorkers(String... names) throws InterruptedException {
        Eventually.holds(
                List.of(names) + " are there",
                () ->
                        gateway.router().workers().stream()
                                .map(w -> w.name())
                                .toList()
                                .equals(List.of(names)));
    }

    @Test
    void noRequestFailsWhileAllWorkersAreReplacedAgainAndAgain(@TempDir Path dir) throws Exception {
        replaceWorkers(dir, 12);
    }

    @Tag("integration") // a race: the more rounds, the more is seen
    @Test
    void noRequestFailsHoweverOftenAllWorkersAreReplaced(@TempDir Path dir) throws Exception {
        replaceWorkers(dir, 60);
    }

    private void replaceWorkers(Path dir, int rounds) throws Exception {
        final Path file = Files.writeString(dir.resolve("w"), "- " + first.url() + ",name=w0\n");
        start(
                Gateways.config()
                        .set(GatewaySettings.WORKERS_FILE, file)
                        .set(GatewaySettings.WORKERS_FILE_INTERVAL, Duration.ofDays(1)));
        final AtomicBoolean go = new AtomicBoolean(true);
        final ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
        try (var clients = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                all.add(
                        clients.submit(
                                () -> {
                                    while (go.get()) {
                                        final HttpResponse<String> answer = complete();
                                        if (answer.statusCode() != 200) {
                                            failures.add(answer.body());
                                        }
                                    }
                                    return null;
                                }));
            }
            try {
                for (int i = 1; i <= rounds; i++) {
                    final FakeEngine engine = i % 2 == 0 ? first : second;
                    ReplacedFile.write(file, "- " + engine.url() + ",name=w" + i + "\n");
                    gateway.reload();
                    awaitWorkers("w" + i);
                }
                for (int i = 0; i < rounds; i++) {
                    final String name = "x" + i;
                    admin("POST", "", json(first, name));
                    awaitInUse(name);
                    admin("POST", "/" + name + "/drain", "");
                    admin("DELETE", "/" + name, "");
                }
            } finally {
                go.set(false);
            }
            for (Future<?> each : all) {
                each.get();
            }
        }
        assertEquals(List.of(), List.copyOf(failures));
        assertTrue(first.calls.size() > 0 && second.calls.size() > 0);
        assertEquals(0, gateway.router().activeLeases());
    }

    /** Three workers, a hundred streams at once, changes by the admin port and the file. */
    @Test
    void noStreamBreaksWhileWorkersAreAddedDrainedReplacedAndRemoved(@TempDir Path dir)
            throws Exception {
        final Path file = dir.resolve("w");
        final ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
        final AtomicBoolean go = new AtomicBoolean(true);
        try (FakeEngine third = new FakeEngine(null);
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<FakeEngine> engines = List.of(first, second, third);
            engines.forEach(engine -> engine.script = FakeEngine.chatStream(8, 15));
            Files.writeString(file, "- " + first.url() + ",name=of-file-0\n");
            start(
                    Gateways.config(second.worker("kept"))
                            .set(GatewaySettings.WORKERS_FILE, file)
                            .set(GatewaySettings.WORKERS_FILE_INTERVAL, Duration.ofDays(1)));
            try {
                for (int i = 0; i < 100; i++) {
                    clients.execute(() -> streamWhile(go, failures));
                }
                Eventually.holds(
                        "all stream",
                        () -> engines.stream().mapToInt(e -> e.calls.size()).sum() >= 200);
                for (int i = 1; i <= 12; i++) {
                    changeWorkers(file, engines.get(i % 3), i);
                }
            } finally {
                go.set(false); // or the clients are waited for without end
            }
            clients.shutdown();
            assertTrue(clients.awaitTermination(60, TimeUnit.SECONDS));
            assertEquals(List.of(), List.copyOf(failures));
            for (FakeEngine engine : engines) {
                assertFalse(engine.calls.isEmpty(), "each is used");
            }
        }
        assertEquals(0, gateway.router().activeLeases());
    }

    private void changeWorkers(Path file, FakeEngine engine, int round) throws Exception {
        ReplacedFile.write(file, "- " + engine.url() + ",name=of-file-" + round + "\n");
        gateway.reload();
        final String name = "by-admin-" + round % 2;
        admin("POST", "", json(engine, name)); // every other time in place of another one
        awaitInUse(name);
        awaitInUse("of-file-" + round);
        final int before = engine.calls.size();
        Eventually.holds("requests go to it", () -> engine.calls.size() > before);
        admin("POST", "/kept/drain", "");
        admin("POST", "/" + name + "/drain", "");
        admin("POST", "/kept/resume", "");
        if (round % 3 == 0) {
            admin("DELETE", "/" + name, "");
        }
    }

    private void streamWhile(AtomicBoolean go, Queue<String> failures) {
        while (go.get()) {
            try {
                final HttpResponse<String> answer =
                        Gateways.post(gateway, "/v1/completions", STREAM);
                if (answer.statusCode() != 200 || !answer.body().endsWith("data: [DONE]\n\n")) {
                    failures.add(answer.statusCode() + " " + answer.body());
                }
            } catch (Exception e) {
                failures.add(e.toString());
            }
        }
    }

    private String metrics() {
        try {
            return Gateways.get(gateway, "/metrics").body();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private Future<HttpResponse<String>> inBackground() {
        return CompletableFuture.supplyAsync(
                () -> {
                    try {
                        return complete();
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                },
                Executors.newVirtualThreadPerTaskExecutor());
    }
}
