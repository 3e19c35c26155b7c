package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FloodingWorker;
import io.kvasir.gateway.testing.FrameEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Keytool;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** How many interim answers (1xx) a worker may send before its final one, and what ends more. */
class InterimBoundTest {
    private static final String PATH = "/v1/completions";
    private static final String BODY = "{\"prompt\":[1]}";
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private GatewayServer gateway;

    @AfterEach
    void stop() {
        gateway.close();
    }

    private static String interim(int nameBytes) {
        return "HTTP/1.1 103 Early Hints\r\n" + "l".repeat(nameBytes) + ": a\r\n\r\n";
    }

    private static GatewayConfig.Builder with(UpstreamHttp2 http2, GatewayConfig.Builder config) {
        return config.set(GatewaySettings.UPSTREAM_HTTP2, http2).set(GatewaySettings.RETRIES, 0);
    }

    private static void assertTooMany(HttpResponse<String> answer) {
        assertEquals(502, answer.statusCode(), answer.body());
        assertTrue(answer.body().contains("\"kind\":\"too_many_interim\""), answer.body());
        assertTrue(answer.body().contains("max-head-bytes"), answer.body());
    }

    @ParameterizedTest
    @CsvSource({"256, 4, 200", "257, 4, 502", "3, 900, 200", "3, 1100, 502"})
    void theyAreSkippedUpToTheirLimits(int count, int nameBytes, int status) throws Exception {
        try (FakeEngine engine =
                new FakeEngine(
                        call -> {
                            for (int i = 0; i < count; i++) {
                                call.raw(interim(nameBytes));
                            }
                            call.json(200, ANSWER);
                        })) {
            gateway =
                    GatewayServer.start(
                            with(UpstreamHttp2.OFF, Gateways.config(engine.worker("w")))
                                    .set(GatewaySettings.MAX_HEAD_BYTES, 3000)
                                    .build());
            final HttpResponse<String> answer = Gateways.post(gateway, PATH, BODY);
            assertEquals(status, answer.statusCode(), answer.body());
            if (status != 200) {
                assertTooMany(answer);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"256, 200", "257, 502"})
    void soAreTheyOverHttp2(int count, int status) throws Exception {
        try (FrameEngine engine =
                new FrameEngine(
                        128,
                        call -> {
                            for (int i = 0; i < count; i++) {
                                call.interim(103);
                            }
                            call.json(200, ANSWER);
                        })) {
            gateway =
                    GatewayServer.start(
                            with(UpstreamHttp2.PRIOR_KNOWLEDGE, Gateways.config(engine.worker("w")))
                                    .build());
            final HttpResponse<String> answer = Gateways.post(gateway, PATH, BODY);
            assertEquals(status, answer.statusCode(), answer.body());
            if (status != 200) {
                assertTooMany(answer);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = UpstreamHttp2.class,
            names = {"OFF", "PRIOR_KNOWLEDGE"})
    void endlessOnesEndTheRequestAndTheConnection(UpstreamHttp2 http2) throws Exception {
        try (FloodingWorker worker = new FloodingWorker(http2 != UpstreamHttp2.OFF)) {
            assertEndless(worker, with(http2, Gateways.config(worker.worker("w"))));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void soTheyDoOverTls(boolean http2, @TempDir Path dir) throws Exception {
        final Path store = dir.resolve("worker.p12");
        final Path pem =
                Files.writeString(
                        dir.resolve("ca.pem"),
                        Keytool.certificate(store, "worker", "ip:127.0.0.1"));
        try (FloodingWorker worker = new FloodingWorker(http2, Keytool.server(store))) {
            assertEndless(
                    worker,
                    with(UpstreamHttp2.AUTO, Gateways.config(worker.worker("w")))
                            .set(GatewaySettings.WORKER_TRUST_STORE, pem));
        }
    }

    private void assertEndless(FloodingWorker worker, GatewayConfig.Builder config)
            throws Exception {
        gateway =
                GatewayServer.start(
                        config.set(GatewaySettings.HEALTH_INTERVAL, Duration.ofHours(1)).build());
        Eventually.holds("the probe's connection is closed", () -> worker.closed.get() >= 1);
        assertTooMany(Gateways.post(gateway, PATH, BODY));
        Eventually.holds("no connection is left open", () -> worker.open.get() == 0);
        assertEquals(0, worker.whole.get());
        assertEquals(0, gateway.router().activeLeases());
    }

    @Test
    void aWorkerWhoseHealthIsEndlessIsUnhealthyAndAnotherOneServes() throws Exception {
        try (FloodingWorker worker = new FloodingWorker(false);
                FakeEngine fine = new FakeEngine(call -> call.json(200, ANSWER))) {
            gateway =
                    GatewayServer.start(
                            Gateways.config(worker.worker("flood"))
                                    .worker(fine.worker("fine"))
                                    .build());
            Eventually.holds(
                    "one is unhealthy", () -> gateway.workersPage().contains("interim answers"));
            assertEquals(ANSWER, Gateways.post(gateway, PATH, BODY).body());
            Eventually.holds("no connection is left open", () -> worker.open.get() == 0);
            assertEquals(0, worker.whole.get());
        }
    }
}
