package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

class ManyStreamsTest {
    private static final int STREAMS = 200;

    @Test
    void aWorkerDyingUnderTwoHundredStreamsHangsNoneAndLeavesNoLoadBehind() throws Exception {
        final CountDownLatch goOn = new CountDownLatch(1);
        final AtomicInteger begunOnDoomed = new AtomicInteger();
        final FakeEngine doomed = new FakeEngine(script(goOn, begunOnDoomed));
        try (FakeEngine survivor = new FakeEngine(script(goOn, new AtomicInteger()));
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                doomed.worker("doomed"),
                                                survivor.worker("survivor"))
                                        .set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN)
                                        .set(GatewaySettings.HEALTH_INTERVAL, Duration.ofSeconds(5))
                                        .build());
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            final AtomicInteger started = new AtomicInteger();
            final List<Future<String>> answers = new ArrayList<>();
            for (int i = 0; i < STREAMS; i++) {
                final boolean late =
                        i / 2 % 2 == 1; // the late ones have sent nothing when the worker dies
                answers.add(clients.submit(() -> stream(gateway, late, started)));
            }
            Eventually.holds(
                    "all streams are under way",
                    () ->
                            doomed.inFlight.get() + survivor.inFlight.get() == STREAMS
                                    && started.get() == STREAMS / 2);
            assertEquals(STREAMS, gateway.router().activeLeases());
            Eventually.holds("booked load is the load", () -> activeRequests(gateway) == STREAMS);

            doomed.close();
            Eventually.holds(
                    "the dead worker has no load left",
                    () -> gateway.router().workers().get(0).activeRequests() == 0);
            goOn.countDown();
            int whole = 0;
            int broken = 0;
            for (Future<String> answer : answers) {
                final String text = answer.get(1, TimeUnit.MINUTES);
                if (text.contains("data: [DONE]")) {
                    whole++;
                    assertTrue(text.contains("last"), text);
                } else {
                    broken++;
                    assertTrue(
                            text.contains(
                                    "\"leg\":\"upstream\",\"worker\":\"doomed\",\"kind\":\"closed\""),
                            text);
                    assertTrue(
                            text.contains("first"),
                            "nothing was sent: it should have been retried");
                }
            }
            assertEquals(STREAMS, whole + broken);
            assertEquals(begunOnDoomed.get(), broken, "streams that had begun on the dead worker");
            assertTrue(broken > 0);
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            Eventually.holds("no load is left", () -> activeRequests(gateway) == 0);
            for (Worker worker : gateway.router().workers()) {
                Eventually.holds(
                        "none is left on " + worker.name(),
                        () -> worker.prefillTokens() == 0 && worker.activeBlocks() == 0);
            }
        }
    }

    @Test
    void clientsThatLeaveAtAnyMomentDisturbNobodyElse() throws Exception {
        final Random random = new Random(Seeds.next("ManyStreamsTest"));
        final StringBuilder whole = new StringBuilder();
        for (int i = 0; i < 20; i++) {
            whole.append("\"t").append(i).append(" \"");
        }
        try (FakeEngine engine = new FakeEngine(FakeEngine.chatStream(20, 2));
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build());
                ExecutorService clients = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<Future<String>> staying = new ArrayList<>();
            final List<Future<String>> leaving = new ArrayList<>();
            for (int i = 0; i < STREAMS; i++) {
                final int stayMillis = random.nextInt(60);
                staying.add(clients.submit(() -> stream(gateway)));
                leaving.add(
                        clients.submit(
                                () -> {
                                    try (RawClient client = new RawClient(gateway.port())) {
                                        client.post(
                                                "/v1/completions",
                                                "{\"prompt\":[1],\"stream\":true}");
                                        Thread.sleep(stayMillis);
                                    }
                                    return "left";
                                }));
            }
            for (Future<String> client : leaving) {
                assertEquals("left", client.get(1, TimeUnit.MINUTES));
            }
            for (Future<String> client : staying) {
                final String text = client.get(1, TimeUnit.MINUTES);
                assertEquals(
                        whole.toString(),
                        Pattern.compile("\"t\\d+ \"")
                                .matcher(text)
                                .results()
                                .map(MatchResult::group)
                                .collect(Collectors.joining()),
                        text);
            }
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            Eventually.holds("the engine is released", () -> engine.inFlight.get() == 0);
        }
    }

    private static String stream(GatewayServer gateway) throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            return client.post("/v1/completions", "{\"prompt\":[1],\"stream\":true}")
                    .readUntil("\r\n0\r\n\r\n");
        }
    }

    /** Says "first" at once unless the request is late, and "last" when all may go on. */
    private static FakeEngine.Script script(CountDownLatch goOn, AtomicInteger begun) {
        return call -> {
            final boolean late = call.text().contains("late");
            if (!late) {
                begun.incrementAndGet();
                call.beginEvents();
                call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"first\"}"));
            }
            if (!goOn.await(10, TimeUnit.MINUTES)) {
                return;
            }
            if (late) {
                call.beginEvents();
            }
            call.chunk(FakeEngine.event("{\"index\":0,\"text\":\"last\"}"));
            call.chunk("data: [DONE]\n\n");
            call.endChunks();
        };
    }

    private static String stream(GatewayServer gateway, boolean late, AtomicInteger started)
            throws Exception {
        try (RawClient client = new RawClient(gateway.port())) {
            client.post(
                    "/v1/completions",
                    "{\"prompt\":["
                            + "5,".repeat(40)
                            + "6],\"stream\":true,\"user\":\""
                            + (late ? "late" : "")
                            + "\"}");
            String begin = "";
            if (!late) {
                begin = client.readUntil("first");
                started.incrementAndGet();
            }
            return begin + client.readUntil("\r\n0\r\n\r\n");
        }
    }

    private static long activeRequests(GatewayServer gateway) {
        return gateway.router().workers().stream().mapToLong(Worker::activeRequests).sum();
    }
}
