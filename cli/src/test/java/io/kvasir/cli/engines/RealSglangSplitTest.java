package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/**
 * The gateway in front of a real SGLang prefill and a real SGLang decode server, which meet in
 * rooms: what a split request answers is what one server answers that computes all of it.
 */
@Tag("real-engine")
class RealSglangSplitTest {
    private static final int REQUESTS = Integer.getInteger("kvasir.split.requests", 300);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static SplitPair<SglangServer> pair;
    private static SglangServer alone;

    private final Random random = new Random(Seeds.next("RealSglangSplitTest"));

    @BeforeAll
    static void start() throws Exception {
        alone = new SglangServer(SglangServer.installed(), logs.resolve("alone.log")).uncached();
        alone.start();
        pair = SplitPair.sglang(logs, config -> {});
        alone.awaitHealthy();
    }

    @AfterAll
    static void stop() {
        if (alone != null) {
            alone.close();
        }
        if (pair != null) {
            pair.close();
        }
    }

    @Test
    void everySplitAnswerIsThatOfOneServer() throws Exception {
        final double before = pair.metric("kvasir_split_requests_total");
        for (int i = 0; i < REQUESTS; i++) {
            askBoth(i);
        }
        assertEquals(REQUESTS, pair.metric("kvasir_split_requests_total") - before);
        assertEquals(0, pair.metric("kvasir_leg_failures_total"));
        System.out.printf(
                "%d requests split, prompts predicted exactly: %.0f, otherwise: %.0f%n",
                REQUESTS,
                pair.metric("kvasir_cache_prediction_total{result=\"exact\",worker=\"p\"}"),
                pair.metric("kvasir_cache_prediction_total{result=\"over\",worker=\"p\"}")
                        + pair.metric(
                                "kvasir_cache_prediction_total{result=\"under\",worker=\"p\"}"));
    }

    private void askBoth(int number) throws Exception {
        final ObjectNode body = Completion.randomRequest(random, number);
        final Completion split = Completion.ask(pair.url(), body);
        assertEquals(
                Completion.ask(alone.uri(), body).uncached(), split.uncached(), body.toString());
    }

    @Test
    void requestsAreAnsweredAfterClientsLeftAtAnyMoment() throws Exception {
        for (int i = 0; i < 40; i++) {
            final ObjectNode body = Completion.randomRequest(random, 1000 + i);
            body.put("max_tokens", 200);
            final CompletableFuture<?> asked =
                    EngineServer.HTTP.sendAsync(
                            Completion.post(pair.url(), body),
                            HttpResponse.BodyHandlers.ofString());
            Thread.sleep(random.nextInt(300)); // any phase of it
            asked.cancel(true);
        }
        pair.prefill.awaitIdle();
        pair.decode.awaitIdle();
        for (int i = 0; i < 20; i++) {
            askBoth(2000 + i);
        }
    }
}
