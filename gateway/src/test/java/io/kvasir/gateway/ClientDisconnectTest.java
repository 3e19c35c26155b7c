package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

class ClientDisconnectTest {
    private static final String STREAM = "{\"model\":\"m\",\"prompt\":[1,2,3],\"stream\":true}";
    private static final String WHOLE = "{\"model\":\"m\",\"prompt\":[1,2,3]}";

    private final CountDownLatch received = new CountDownLatch(1);
    private final CountDownLatch gone = new CountDownLatch(1);

    @Test
    void leavingInTheMiddleOfAStreamClosesTheUpstreamAtOnceAndFreesTheLease() throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                                    awaitGone(call);
                                });
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            try (RawClient client = new RawClient(gateway.port())) {
                client.post("/v1/completions", STREAM).readUntil("\"a\"");
                assertEquals(1, gateway.router().activeLeases());
            }
            assertClosedAndFree(gateway);
        }
    }

    @Test
    void aResetInTheMiddleOfAStreamDoesTheSame() throws Exception {
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    call.beginEvents();
                                    call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"a\"}"));
                                    awaitGone(call);
                                });
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            final RawClient client = new RawClient(gateway.port());
            client.post("/v1/completions", STREAM).readUntil("\"a\"");
            client.reset();
            assertClosedAndFree(gateway);
        }
    }

    @Test
    void leavingBeforeTheFirstByteClosesTheUpstreamAtOnceAndFreesTheLease() throws Exception {
        for (String body : new String[] {STREAM, WHOLE}) {
            final CountDownLatch arrived = new CountDownLatch(1);
            final CountDownLatch left = new CountDownLatch(1);
            try (FakeEngine engine =
                            new FakeEngine(
                                    call -> {
                                        arrived.countDown();
                                        if (call.awaitClientGone(60)) {
                                            left.countDown();
                                        }
                                    });
                    GatewayServer gateway =
                            GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
                try (RawClient client = new RawClient(gateway.port())) {
                    client.post("/v1/completions", body);
                    assertTrue(arrived.await(1, TimeUnit.MINUTES));
                }
                assertTrue(left.await(1, TimeUnit.MINUTES), "upstream still open for " + body);
                Eventually.holds("lease free", () -> gateway.router().activeLeases() == 0);
                Eventually.holds(
                        "it is counted",
                        () ->
                                MetricsPage.of(gateway)
                                                .sum(
                                                        "kvasir_client_disconnects_total",
                                                        "route",
                                                        "completions")
                                        == 1);
            }
        }
    }

    /** Its socket is known to be closed only by what is written to it. */
    @ParameterizedTest
    @CsvSource({"true, 499", "false, 200"})
    void whoHasLeftBeforeTheAnswerIsNoOneWhoGotItAndWhoStillReadsIsOne(
            boolean leaves, int status, @TempDir Path folder) throws Exception {
        final CountDownLatch answers = new CountDownLatch(1);
        final Path log = folder.resolve("access.log");
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    answers.await();
                                    call.json(200, "{\"choices\":[]}");
                                });
                GatewayServer gateway =
                        Gateways.started(
                                Gateways.config(engine.worker("w"))
                                        .set(GatewaySettings.ACCESS_LOG, log.toString()));
                RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", WHOLE).halfClose();
            client.readUntil("100 Continue\r\n\r\n"); // is asked whether it is there
            if (leaves) {
                client.reset();
            }
            answers.countDown();
            if (!leaves) {
                client.readUntil("{\"choices\":[]}");
            }
            Eventually.holds("it is logged", () -> !read(log).isEmpty());
            assertTrue(read(log).contains(" HTTP/1.1\" " + status + " "), read(log));
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(1, page.sum("kvasir_requests_total", "route", "completions"));
            assertEquals(1, page.sum("kvasir_requests_total", "status", "" + status));
            assertEquals(leaves ? 1 : 0, page.sum("kvasir_client_disconnects_total"));
        }
    }

    private static String read(Path log) {
        try {
            return Files.exists(log) ? Files.readString(log) : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void theConnectionServesTheNextRequestAfterAWatchedOne() throws Exception {
        try (FakeEngine engine = new FakeEngine(FakeEngine.chatStream(2, 1));
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build());
                RawClient client = new RawClient(gateway.port())) {
            for (int i = 0; i < 20; i++) {
                client.post("/v1/completions", STREAM).readUntil("0\r\n\r\n");
            }
            assertEquals(20, engine.calls.size());
        }
    }

    @Test
    void aPipelinedRequestIsAnsweredAfterTheFirst() throws Exception {
        try (FakeEngine engine = new FakeEngine(FakeEngine.chatStream(3, 20));
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build());
                RawClient client = new RawClient(gateway.port())) {
            client.post("/v1/completions", STREAM);
            Thread.sleep(20);
            client.post("/v1/completions", STREAM);
            client.readUntil("0\r\n\r\n");
            client.readUntil("0\r\n\r\n");
            assertEquals(2, engine.calls.size());
        }
    }

    private void awaitGone(FakeEngine.Call call) throws InterruptedException {
        received.countDown();
        if (call.awaitClientGone(60)) {
            gone.countDown();
        }
    }

    private void assertClosedAndFree(GatewayServer gateway) throws InterruptedException {
        assertTrue(received.await(1, TimeUnit.MINUTES));
        assertTrue(gone.await(1, TimeUnit.MINUTES), "the upstream connection is still open");
        Eventually.holds("lease free", () -> gateway.router().activeLeases() == 0);
    }
}
