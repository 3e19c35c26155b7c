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
 * The gateway in front of a real prefill and a real decode server that move blocks through NIXL:
 * what a split request answers is what one server would answer, and no blocks stay behind.
 */
@Tag("real-engine")
class RealSplitTest {
    private static final int REQUESTS = Integer.getInteger("kvasir.split.requests", 300);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static SplitPair<VllmServer> pair;

    private final Random random = new Random(Seeds.next("RealSplitTest"));

    @BeforeAll
    static void start() throws Exception {
        pair = SplitPair.vllm(logs, config -> {});
    }

    @AfterAll
    static void stop() {
        if (pair != null) {
            pair.close();
        }
    }

    @Test
    void everySplitAnswerIsThatOfOneServerAndNoBlocksStayBehind() throws Exception {
        final double before = pair.metric("kvasir_split_requests_total");
        final double hitsBefore = pair.prefill.cacheHits();
        final double exactBefore = predictions("exact");
        long cachedTokens = 0;
        for (int i = 0; i < REQUESTS; i++) {
            final ObjectNode body = Completion.randomRequest(random, i);
            final Completion split = Completion.ask(pair.url(), body);
            cachedTokens += split.cachedTokens();
            body.put("cache_salt", "alone-" + i); // computes all of it
            assertEquals(
                    Completion.ask(pair.decode.uri(), body), split.uncached(), body.toString());
        }
        assertEquals(
                pair.prefill.cacheHits() - hitsBefore,
                (double) cachedTokens,
                "as the prefill says");
        assertEquals(REQUESTS, pair.metric("kvasir_split_requests_total") - before);
        assertEquals(0, pair.metric("kvasir_leg_failures_total"));
        pair.prefill.awaitUsage(false);
        assertEquals(REQUESTS, predictions("exact") - exactBefore, "predicted exactly");
    }

    private static double predictions(String result) throws Exception {
        return pair.metric("kvasir_cache_prediction_total{result=\"" + result + "\",worker=\"p\"}");
    }

    @Test
    void noBlocksStayBehindWhenClientsLeaveAtAnyMoment() throws Exception {
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
        pair.prefill.awaitUsage(false);
    }
}
