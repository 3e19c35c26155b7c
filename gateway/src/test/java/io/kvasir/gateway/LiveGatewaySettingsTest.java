package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeCollector;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;

/** Settings of the gateway's own that an operator changes while it runs, over HTTP. */
@Order(0) // takes longest: begins before all others
class LiveGatewaySettingsTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String HOUR = "3600000";

    @TempDir private static Path dir;

    /** What a gateway does that shows the value of a setting. */
    private interface Observation {
        Object of(Bench bench) throws Exception;
    }

    /**
     * @param from what is set at start: name=value, blanks between
     * @param to what the row is changed to
     * @param before what is seen with the value of the start; null where it would take too long
     * @param after what is seen with the other one
     */
    private record Probe(
            String from, String to, Object before, Object after, Observation observation) {}

    private static final Map<Setting<?>, Probe> PROBES = new HashMap<>();

    static {
        requests();
        bodies();
        retries();
        timeouts();
        health();
        breaker();
        splits();
        records();
    }

    private static void requests() {
        probe(
                GatewaySettings.SESSION_HEADER,
                "session-affinity-ttl-secs=600",
                "x-other",
                0,
                1,
                b -> {
                    b.post("{\"prompt\":[1]}", "x-other", "s");
                    return b.gateway.router().sessions();
                });
        probe(
                GatewaySettings.INCLUDE_USAGE,
                "",
                "false",
                true,
                false,
                b -> {
                    b.one.script = FakeEngine.chatStream(1, 0);
                    b.two.script = b.one.script;
                    b.stream();
                    return b.calls().getFirst().text().contains("include_usage");
                });
        probe(
                GatewaySettings.LOG_LEVEL,
                "",
                "debug",
                null,
                "debug",
                b -> {
                    Eventually.holds("the level", () -> b.seen.get() != null);
                    return GatewaySettings.LOG_LEVEL.print(
                            b.seen.get().get(GatewaySettings.LOG_LEVEL));
                });
    }

    private static void bodies() {
        final String long100 = "{\"prompt\":[1],\"user\":\"" + "u".repeat(200_000) + "\"}";
        probe(
                GatewaySettings.MAX_BODY_BYTES,
                "",
                "100",
                200,
                413,
                b -> b.post(long100).statusCode());
        probe(
                GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT,
                "max-body-bytes-in-flight=100000000",
                "65536",
                200,
                413,
                b -> b.post(long100).statusCode());
        probe(
                GatewaySettings.GZIP_MIN_BYTES,
                "",
                "0",
                true,
                false,
                b -> {
                    final String text = "{\"choices\":[],\"text\":\"" + "a".repeat(10_000) + "\"}";
                    b.one.script = call -> call.json(200, text);
                    b.two.script = b.one.script;
                    return b.isCoded("{\"prompt\":[1]}");
                });
        probe(
                GatewaySettings.GZIP_STREAMS,
                "",
                "true",
                false,
                true,
                b -> {
                    b.one.script = FakeEngine.chatStream(1, 0);
                    b.two.script = b.one.script;
                    return b.isCoded("{\"prompt\":[1],\"stream\":true}");
                });
        probe(
                GatewaySettings.BODY_TIMEOUT,
                "body-timeout-ms=" + HOUR,
                "200",
                null,
                true,
                b -> {
                    try (RawClient client = b.beginning(10, "12345")) {
                        return client.readUntil(" 408 ").contains(" 408 ");
                    }
                });
        probe(
                GatewaySettings.BODY_MIN_RATE,
                "body-timeout-ms=300 body-min-rate=1",
                "0",
                null,
                true,
                b -> {
                    try (RawClient client = b.beginning(10_000, "1".repeat(5_000))) {
                        return client.readUntil(" 408 ").contains(" 408 ");
                    }
                });
    }

    private static void retries() {
        final Observation attempts =
                b -> {
                    b.one.script = call -> call.json(500, "{}");
                    b.two.script = b.one.script;
                    b.post("{\"prompt\":[1]}");
                    return b.calls().size();
                };
        probe(GatewaySettings.RETRIES, "retry-backoff-ms=0", "0", 2, 1, attempts);
        final Observation retried =
                b -> {
                    final AtomicInteger asked = new AtomicInteger();
                    b.one.script =
                            call -> call.json(asked.incrementAndGet() == 1 ? 500 : 200, ANSWER);
                    b.two.script = b.one.script;
                    return b.post("{\"prompt\":[1]}").statusCode();
                };
        probe(
                GatewaySettings.RETRY_BACKOFF,
                "retry-backoff-ms=" + HOUR + " retry-backoff-max-ms=" + HOUR,
                "0",
                null,
                200,
                retried);
        probe(
                GatewaySettings.RETRY_BACKOFF_MAX,
                "retry-backoff-ms=" + HOUR + " retry-backoff-max-ms=" + HOUR,
                "0",
                null,
                200,
                retried);
        probe(
                GatewaySettings.RETRY_AFTER_TIMEOUT,
                "answer-timeout-ms=200",
                "true",
                1,
                2,
                b -> {
                    b.hang();
                    b.post("{\"prompt\":[1]}");
                    return b.calls().size();
                });
    }

    private static void timeouts() {
        probe(
                GatewaySettings.CONNECT_TIMEOUT,
                "",
                "100",
                null,
                false,
                b -> {
                    try (FullPort port = new FullPort()) {
                        b.workers("POST", "", "{\"url\":\"" + port.url() + "\",\"name\":\"full\"}");
                        Eventually.holds(
                                "a probe fails",
                                () -> !List.of("", "null").contains(b.lastError("full")));
                        b.workers("DELETE", "/full", "");
                    }
                    return false;
                });
        probe(
                GatewaySettings.FIRST_BYTE_TIMEOUT,
                "retries=0",
                "200",
                null,
                504,
                b -> {
                    b.hang();
                    return b.stream().statusCode();
                });
        probe(
                GatewaySettings.ANSWER_TIMEOUT,
                "retries=0",
                "200",
                null,
                504,
                b -> {
                    b.hang();
                    return b.post("{\"prompt\":[1]}").statusCode();
                });
        probe(
                GatewaySettings.STREAM_IDLE_TIMEOUT,
                "retries=0",
                "200",
                null,
                true,
                b -> {
                    b.one.script =
                            call -> {
                                call.beginEvents();
                                call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                                call.awaitClientGone(60);
                            };
                    b.two.script = b.one.script;
                    return b.stream().body().contains("upstream_timeout");
                });
        probe(
                GatewaySettings.LAME_DUCK,
                "lame-duck-ms=" + HOUR,
                "0",
                null,
                true,
                b -> {
                    final Thread draining = b.inBackground(b.gateway::drain);
                    draining.join(TimeUnit.MINUTES.toMillis(1));
                    return !draining.isAlive();
                });
        probe(
                GatewaySettings.DRAIN_TIMEOUT,
                "drain-timeout-ms=" + HOUR,
                "0",
                null,
                true,
                b -> {
                    b.hang();
                    b.postAsync("{\"prompt\":[1]}");
                    Eventually.holds("a request under way", () -> b.calls().size() == 1);
                    final Thread closing = b.inBackground(b.gateway::close);
                    closing.join(TimeUnit.MINUTES.toMillis(1));
                    return !closing.isAlive();
                });
    }

    private static void health() {
        probe(
                GatewaySettings.HEALTH_INTERVAL,
                "health-interval-ms=" + HOUR,
                "10",
                null,
                true,
                b -> {
                    final AtomicInteger probes = new AtomicInteger();
                    b.one.health =
                            call -> {
                                probes.incrementAndGet();
                                call.json(200, "{}");
                            };
                    Eventually.holds("probes", () -> probes.get() > 2);
                    return true;
                });
        probe(
                GatewaySettings.HEALTH_TIMEOUT,
                "health-faults=1",
                "100",
                null,
                true,
                b -> {
                    b.one.health = call -> call.awaitClientGone(60);
                    b.awaitHealth("one", "down");
                    return true;
                });
        probe(
                GatewaySettings.HEALTH_FAULTS,
                "health-faults=1000",
                "1",
                null,
                true,
                b -> {
                    b.one.health = call -> call.json(500, "{}");
                    b.awaitHealth("one", "down");
                    return true;
                });
        probe(
                GatewaySettings.HEALTH_SUCCESSES,
                "health-faults=1 health-successes=1000",
                "1",
                null,
                true,
                b -> {
                    b.one.health = call -> call.json(500, "{}");
                    b.awaitHealth("one", "down");
                    b.one.health = call -> call.json(200, "{}");
                    b.awaitHealth("one", "trial", "up");
                    return true;
                });
    }

    private static void breaker() {
        probe(
                GatewaySettings.BREAKER_FAULTS,
                "breaker-faults=1000",
                "1",
                "up",
                "ejected",
                b -> {
                    b.failOne(1);
                    return b.health("one");
                });
        probe(
                GatewaySettings.BREAKER_FAULT_PERCENT,
                "breaker-faults=1 breaker-fault-percent=100",
                "1",
                "up",
                "ejected",
                b -> {
                    b.succeedOne(1);
                    b.failOne(1);
                    return b.health("one");
                });
        probe(
                GatewaySettings.BREAKER_WINDOW,
                "breaker-faults=2 breaker-window-ms=1",
                HOUR,
                null,
                "ejected",
                b -> {
                    b.failOne(2);
                    return b.health("one");
                });
        probe(
                GatewaySettings.BREAKER_HOLD,
                "breaker-faults=1 breaker-hold-ms=" + HOUR,
                "0",
                null,
                true,
                b -> {
                    b.failOne(1);
                    b.awaitHealth("one", "trial");
                    return true;
                });
        probe(
                GatewaySettings.BREAKER_SUCCESSES,
                "breaker-faults=1 breaker-hold-ms=0 breaker-successes=1000",
                "1",
                null,
                true,
                b -> {
                    b.failOne(1);
                    b.awaitHealth("one", "trial");
                    b.succeedOne(1);
                    b.awaitHealth("one", "up");
                    return true;
                });
        probe(
                GatewaySettings.PANIC_PERCENT,
                "breaker-faults=1 breaker-hold-ms=" + HOUR + " panic-percent=100",
                "0",
                true,
                false,
                b -> {
                    b.failOne(1);
                    b.awaitHealth("one", "ejected");
                    return b.worker("one").path("available").asBoolean();
                });
    }

    private static void splits() {
        final Observation prefills =
                b -> {
                    b.post("{\"prompt\":[" + "1,".repeat(63) + "1]}");
                    return b.prefill.calls.size();
                };
        probe(GatewaySettings.SPLIT_MODE, "", "never", 1, 0, prefills);
        probe(
                GatewaySettings.SPLIT_MIN_TOKENS,
                "split-mode=limits split-min-tokens=0",
                "1000",
                1,
                0,
                prefills);
        probe(
                GatewaySettings.SPLIT_MIN_RATIO,
                "split-mode=limits split-min-tokens=0 approximate=true",
                "0.9",
                2,
                1,
                b -> {
                    prefills.of(b);
                    Eventually.holds(
                            "the prompt is taken to be held",
                            () -> b.gateway.router().routedPrefixes().visits() == 1);
                    return prefills.of(b);
                });
        probe(
                GatewaySettings.SPLIT_MAX_QUEUE,
                "split-mode=limits split-min-tokens=0",
                "1",
                2,
                1,
                b -> {
                    b.prefill.script = call -> call.awaitClientGone(60);
                    b.postAsync("{\"prompt\":[1,2,3,4]}");
                    Eventually.holds("a prefill", () -> b.prefill.calls.size() == 1);
                    b.postAsync("{\"prompt\":[5,6,7,8]}");
                    Eventually.holds(
                            "another request",
                            () -> b.prefill.calls.size() + b.calls().size() == 2);
                    return b.prefill.calls.size();
                });
        probe(
                GatewaySettings.SPLIT_HARM_WEIGHT,
                "split-mode=cost split-harm-weight=30",
                "0",
                true,
                false,
                b -> {
                    b.hang();
                    b.postAsync("{\"prompt\":[" + "7,".repeat(63) + "7]}");
                    Eventually.holds("a request", () -> b.calls().size() == 1);
                    b.postAsync("{\"prompt\":[" + "8,".repeat(63) + "8]}");
                    Eventually.holds("another one", () -> b.calls().size() == 2);
                    return b.decision("").path("candidates").path(0).path("added_blocks").asDouble()
                            > 0;
                });
        probe(
                GatewaySettings.SPLIT_FALLBACK,
                "retries=0",
                "fail",
                200,
                502,
                b -> {
                    b.prefill.script = call -> call.json(500, "{}");
                    return b.post("{\"prompt\":[1]}").statusCode();
                });
        probe(
                GatewaySettings.PREFILL_ATTEMPTS,
                "split-fallback=other-prefill prefill-attempts=1",
                "3",
                1,
                3,
                b -> {
                    b.prefill.script = call -> call.json(500, "{}");
                    return prefills.of(b);
                });
        probe(
                GatewaySettings.PREFILL_TIMEOUT,
                "prefill-timeout-ms=" + HOUR,
                "200",
                null,
                200,
                b -> {
                    b.prefill.script = call -> call.awaitClientGone(60);
                    return b.post("{\"prompt\":[1]}").statusCode();
                });
        probe(
                GatewaySettings.PREFILL_MODE,
                "",
                "random",
                "kv",
                "random",
                b -> {
                    prefills.of(b);
                    return b.decision("prefill").path("mode").asText();
                });
        probe(
                GatewaySettings.PREFILL_OVERLAP_WEIGHT,
                "",
                "3",
                1.0,
                3.0,
                b -> {
                    prefills.of(b);
                    return b.decision("prefill").path("overlap_weight").asDouble();
                });
    }

    private static void records() {
        probe(
                GatewaySettings.SHADOW_OVERLAP_WEIGHT,
                "",
                "0",
                0.0,
                1.0,
                b -> {
                    MetricsPage.of(b.gateway);
                    b.post("{\"prompt\":[1]}");
                    return MetricsPage.of(b.gateway).sum("kvasir_shadow_decisions_total");
                });
        probe(
                GatewaySettings.ACCESS_LOG,
                "",
                "FILE",
                null,
                true,
                b -> {
                    b.post("{\"prompt\":[1]}");
                    Eventually.holds("a line", () -> !b.accessLog().isEmpty());
                    return true;
                });
        probe(
                GatewaySettings.ACCESS_LOG_FORMAT,
                "access-log=FILE",
                "json",
                false,
                true,
                b -> {
                    b.post("{\"prompt\":[1]}");
                    Eventually.holds("a line", () -> b.accessLog().contains("completions"));
                    return b.accessLog().lines().toList().getLast().startsWith("{");
                });
        probe(
                GatewaySettings.TRACE_SAMPLE_RATIO,
                "otlp-endpoint=COLLECTOR trace-sample-ratio=0",
                "1",
                null,
                true,
                b -> {
                    b.post("{\"prompt\":[1]}");
                    b.collector.await(1);
                    return true;
                });
    }

    private static void probe(
            Setting<?> row,
            String from,
            String to,
            Object before,
            Object after,
            Observation observation) {
        PROBES.put(row, new Probe(from, to, before, after, observation));
    }

    /** A port whose queue of connections is full: a further one waits. */
    private static final class FullPort implements AutoCloseable {
        private static final int MOST = 64;

        private final List<Socket> clients = new ArrayList<>();
        private final ServerSocket server;

        FullPort() throws IOException {
            server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            for (int i = 0; i < MOST; i++) {
                final Socket client = new Socket();
                clients.add(client);
                try {
                    client.connect(
                            new InetSocketAddress(
                                    InetAddress.getLoopbackAddress(), server.getLocalPort()),
                            200);
                } catch (SocketTimeoutException e) {
                    return;
                }
            }
        }

        String url() {
            return "http://127.0.0.1:" + server.getLocalPort();
        }

        @Override
        public void close() throws IOException {
            for (Socket client : clients) {
                client.close();
            }
            server.close();
        }
    }

    /** What may throw. */
    private interface Action {
        void run() throws Exception;
    }

    /** A gateway before two engines, and a prefill engine where prefills are looked at. */
    private static final class Bench implements AutoCloseable {
        final FakeEngine one = new FakeEngine(call -> call.json(200, ANSWER));
        final FakeEngine two = new FakeEngine(call -> call.json(200, ANSWER));
        final FakeEngine prefill =
                new FakeEngine(
                        call ->
                                call.json(
                                        200,
                                        "{\"choices\":[],\"kv_transfer_params\":{\"do_remote_prefill\":true,"
                                            + "\"remote_block_ids\":[1],\"remote_engine_id\":\"e\","
                                            + "\"remote_host\":\"h\",\"remote_port\":1}}"));
        final FakeCollector collector = new FakeCollector();
        final AtomicReference<GatewayConfig> seen = new AtomicReference<>();
        final Path accessLog;
        final GatewayServer gateway;
        private final List<CompletableFuture<HttpResponse<String>>> running = new ArrayList<>();
        private int prompts;

        Bench(String settings, boolean splits) throws Exception {
            accessLog = Files.createTempFile(dir, "access", ".log");
            final GatewayConfig.Builder builder =
                    splits
                            ? Gateways.config(
                                    WorkerConfig.parse(one.url() + ",name=one,role=decode"),
                                    WorkerConfig.parse(prefill.url() + ",name=p,role=prefill"))
                            : Gateways.config(one.worker("one"), two.worker("two"));
            Gateways.set(builder, value(settings));
            gateway = Gateways.started(builder);
            gateway.onSettings(seen::set);
        }

        String value(String text) {
            return text.replace("FILE", accessLog.toString()).replace("COLLECTOR", collector.url());
        }

        HttpResponse<String> patch(String body) throws Exception {
            return Gateways.send(
                    Gateways.adminRequest(gateway, "/settings")
                            .method("PATCH", HttpRequest.BodyPublishers.ofString(body)));
        }

        void workers(String method, String path, String body) throws Exception {
            Gateways.workers(gateway, method, path, body);
        }

        HttpResponse<String> post(String body, String... headers) throws Exception {
            return Gateways.post(gateway, "/v1/completions", body, headers);
        }

        HttpResponse<String> stream() throws Exception {
            return post("{\"prompt\":[1],\"stream\":true}");
        }

        void postAsync(String body) {
            running.add(Gateways.postAsync(gateway, "/v1/completions", body));
        }

        boolean isCoded(String body) throws Exception {
            return Gateways.HTTP
                    .send(
                            HttpRequest.newBuilder(Gateways.uri(gateway, "/v1/completions"))
                                    .header("Content-Type", "application/json")
                                    .header("Accept-Encoding", "gzip")
                                    .POST(HttpRequest.BodyPublishers.ofString(body))
                                    .build(),
                            HttpResponse.BodyHandlers.ofByteArray())
                    .headers()
                    .firstValue("content-encoding")
                    .isPresent();
        }

        /** A client that has sent a part of its body. */
        RawClient beginning(int length, String part) throws IOException {
            return new RawClient(gateway.port())
                    .send(
                            "POST /v1/completions HTTP/1.1\r\nHost: h\r\n"
                                    + "Content-Type: application/json\r\nContent-Length: "
                                    + length
                                    + "\r\n\r\n"
                                    + part);
        }

        void hang() {
            one.script = call -> call.awaitClientGone(60);
            two.script = one.script;
        }

        /** Of both engines that answer. */
        List<FakeEngine.Call> calls() {
            return Stream.concat(one.calls.stream(), two.calls.stream()).toList();
        }

        /** Has the first engine fail different requests, which the second one answers. */
        void failOne(int times) throws Exception {
            askOne(500, times);
        }

        void succeedOne(int times) throws Exception {
            askOne(200, times);
        }

        private void askOne(int status, int times) throws Exception {
            final int before = one.calls.size();
            one.script = call -> call.json(status, ANSWER);
            while (one.calls.size() < before + times) {
                assertEquals(
                        200,
                        post("{\"prompt\":[" + prompts++ + "]}", "x-kvasir-mode", "round-robin")
                                .statusCode());
            }
        }

        JsonNode worker(String name) {
            try {
                final JsonNode page =
                        Json.MAPPER.readTree(Gateways.admin(gateway, "/health").body());
                for (JsonNode worker : page.path("workers")) {
                    if (worker.path("worker").asText().equals(name)) {
                        return worker;
                    }
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
            return Json.MAPPER.createObjectNode();
        }

        String health(String name) {
            return worker(name).path("health").asText();
        }

        String lastError(String name) {
            return worker(name).path("last_error").asText();
        }

        void awaitHealth(String name, String... states) throws InterruptedException {
            Eventually.holds(
                    name + " is " + List.of(states), () -> List.of(states).contains(health(name)));
        }

        /** The newest of a leg, empty for a whole request. */
        JsonNode decision(String leg) throws Exception {
            final JsonNode page =
                    Json.MAPPER.readTree(Gateways.admin(gateway, "/debug/decisions").body());
            for (JsonNode decision : page.path("decisions")) {
                final JsonNode of = decision.path("leg");
                if ((of.isNull() ? "" : of.asText()).equals(leg)) {
                    return decision;
                }
            }
            throw new AssertionError("no decision of leg " + leg + ": " + page);
        }

        String accessLog() {
            try {
                return Files.readString(accessLog);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        Thread inBackground(Action action) {
            return Thread.ofPlatform()
                    .daemon()
                    .start(
                            () -> {
                                try {
                                    action.run();
                                } catch (Exception e) {
                                    throw new IllegalStateException(e);
                                }
                            });
        }

        @Override
        public void close() {
            running.forEach(request -> request.cancel(true));
            gateway.close();
            one.close();
            two.close();
            prefill.close();
            collector.close();
        }
    }

    static Stream<Setting<?>> liveRows() {
        return GatewaySettings.TABLE.rows().stream()
                .filter(Setting::isLive)
                .filter(row -> !RouterSettings.TABLE.has(row.name()));
    }

    @ParameterizedTest
    @MethodSource("liveRows")
    void aLiveRowTakesEffectWithoutAStart(Setting<?> row) throws Exception {
        final Probe probe = PROBES.get(row);
        assertTrue(probe != null, row + " is live; a probe must show that a change takes effect");
        final boolean splits = row.name().startsWith("prefill-") || row.name().startsWith("split-");
        if (probe.before != null) {
            try (Bench usual = new Bench(probe.from, splits)) {
                assertEquals(probe.before, probe.observation.of(usual), "before");
            }
        }
        try (Bench bench = new Bench(probe.from, splits)) {
            final HttpResponse<String> changed =
                    bench.patch(
                            "{\"settings\":{\"" + row + "\":\"" + bench.value(probe.to) + "\"}}");
            assertEquals(200, changed.statusCode(), changed.body());
            assertEquals(
                    2,
                    Json.MAPPER.readTree(changed.body()).path("version").asInt(),
                    changed.body());
            assertEquals(probe.after, probe.observation.of(bench), "changed");
        }
    }

    @Test
    void aNamedPipeIsNoAccessLogAndADryRunCreatesNoFile() throws Exception {
        final Path pipe = dir.resolve("pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        try (Bench bench = new Bench("", false)) {
            for (boolean isDry : new boolean[] {true, false}) {
                final HttpResponse<String> refused = bench.patch(accessLog(pipe, isDry));
                assertEquals(400, refused.statusCode(), refused.body());
                assertTrue(refused.body().contains(pipe + " is no regular file"), refused.body());
                MetricsPage.of(bench.gateway);
            }
            final Path next = dir.resolve("next.log");
            final HttpResponse<String> tried = bench.patch(accessLog(next, true));
            assertEquals(200, tried.statusCode(), tried.body());
            assertFalse(Files.exists(next));
            for (Path taken : List.of(next, Path.of("/dev/null"))) {
                final HttpResponse<String> changed = bench.patch(accessLog(taken, false));
                assertEquals(200, changed.statusCode(), changed.body());
            }
            assertTrue(Files.exists(next));
        }
    }

    private static String accessLog(Path path, boolean isDry) {
        return "{\"settings\":{\"access-log\":\"" + path + "\"},\"dry_run\":" + isDry + "}";
    }
}
