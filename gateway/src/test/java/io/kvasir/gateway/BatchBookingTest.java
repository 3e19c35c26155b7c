package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Worker;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Batches of prompts, and several answers to one. */
class BatchBookingTest {
    private static final int BLOCK = 16;

    private static String ids(int from, int count) {
        final StringBuilder ids = new StringBuilder();
        for (int i = from; i < from + count; i++) {
            ids.append(ids.isEmpty() ? "" : ",").append(i);
        }
        return ids.toString();
    }

    /** Prefill tokens and active blocks while the request is under way, and its load afterwards. */
    private static void booked(String body, long prefillTokens, long activeBlocks)
            throws Exception {
        final CountDownLatch release = new CountDownLatch(1);
        try (FakeEngine engine =
                        new FakeEngine(
                                call -> {
                                    if (!release.await(1, TimeUnit.MINUTES)) {
                                        throw new IllegalStateException("not released");
                                    }
                                    call.json(200, "{}");
                                });
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            final Worker worker = gateway.router().workers().getFirst();
            final CompletableFuture<Integer> answer =
                    CompletableFuture.supplyAsync(
                            () -> {
                                try {
                                    return Gateways.post(gateway, "/v1/completions", body)
                                            .statusCode();
                                } catch (Exception e) {
                                    throw new IllegalStateException(e);
                                }
                            });
            Eventually.holds("it is under way", () -> engine.inFlight.get() == 1);
            Eventually.holds(
                    "it is booked",
                    () ->
                            worker.activeBlocks() == activeBlocks
                                    && worker.prefillTokens() == prefillTokens
                                    && worker.activeRequests() == 1);
            release.countDown();
            assertEquals(200, answer.get(1, TimeUnit.MINUTES));
            Eventually.holds(
                    "released", () -> worker.activeBlocks() == 0 && worker.prefillTokens() == 0);
        }
    }

    @Test
    void aBatchCountsAllItsPromptsAndAnswers() throws Exception {
        final StringBuilder prompts = new StringBuilder();
        for (int i = 0; i < 200; i++) {
            prompts.append(i == 0 ? "[" : ",[").append(ids(1000 * i, 3 * BLOCK)).append(']');
        }
        booked(
                "{\"model\":\"m\",\"n\":8,\"prompt\":[" + prompts + "]}",
                200 * 3 * BLOCK,
                200 * 3 + 200 * 8 - 1);
    }

    @Test
    void whatTheyHaveInCommonCountsOnce() throws Exception {
        final String common = ids(1, 10 * BLOCK);
        booked(
                "{\"model\":\"m\",\"prompt\":[["
                        + common
                        + "],["
                        + common
                        + ","
                        + ids(5000, BLOCK)
                        + "],["
                        + common
                        + ","
                        + ids(6000, 2 * BLOCK)
                        + "],["
                        + common
                        + "]]}",
                13 * BLOCK,
                13 + 3);
    }

    @Test
    void severalAnswersAreDecodeLoad() throws Exception {
        booked(
                "{\"model\":\"m\",\"best_of\":5,\"prompt\":[" + ids(1, 4 * BLOCK) + "]}",
                4 * BLOCK,
                4 + 4);
    }
}
