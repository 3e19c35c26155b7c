package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/** What the admin port does to the whole process, or must do whatever that does. */
@Isolated // keeps every carrier of virtual threads busy, and captures the log
class AdminPortAloneTest {
    private final FakeEngine engine = new FakeEngine(call -> call.json(200, "{}"));
    private final GatewayServer gateway =
            GatewayServer.start(Gateways.config(engine.worker("w1")).build());

    @AfterEach
    void stop() {
        gateway.close();
        engine.close();
    }

    @Test
    void statusIsAnsweredWhileNoVirtualThreadCanRun() throws Exception {
        Gateways.awaitContact(gateway);
        final AtomicBoolean busy = new AtomicBoolean(true);
        final int carriers = Runtime.getRuntime().availableProcessors();
        final CountDownLatch spinning = new CountDownLatch(carriers);
        final List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < carriers; i++) {
            threads.add(
                    Thread.ofVirtual()
                            .start(
                                    () -> {
                                        spinning.countDown();
                                        while (busy.get()) {
                                            Thread.onSpinWait();
                                        }
                                    }));
        }
        try {
            spinning.await();
            for (String path : List.of("/health", "/live", "/ready")) {
                assertEquals(200, Gateways.get(gateway, path).statusCode(), path);
            }
            for (String path :
                    List.of("/health", "/live", "/ready", "/metrics", "/debug/workers")) {
                assertEquals(200, Gateways.admin(gateway, path).statusCode(), path);
            }
        } finally {
            busy.set(false);
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    @Test
    void aQueryThatCannotBeDecodedIsNoErrorInTheLog() throws Exception {
        try (CapturedLog log = new CapturedLog(Level.WARN);
                RawClient client = new RawClient(gateway.adminPort())) {
            final String query = "/debug/workers?%";
            client.send(
                    "GET " + query + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
            assertTrue(client.readAll().startsWith("HTTP/1.1 400 "));
            assertEquals(List.of(), log.textsFrom(Level.ERROR));
        }
    }
}
