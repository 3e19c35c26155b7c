package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/**
 * Real prefill and decode servers that hang or die while requests are split between them: each
 * request ends with an answer or an error that has a name, and no blocks stay behind.
 */
@Tag("real-engine")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RealSplitFaultsTest {
    /** Of a leg; an answer that waits for all of them comes within a few of it. */
    private static final Duration DEADLINE = Duration.ofSeconds(5);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static SplitPair<VllmServer> pair;

    @BeforeAll
    static void start() throws Exception {
        pair = SplitPair.vllm(logs, config -> SplitPair.deadlines(config, DEADLINE));
    }

    @AfterAll
    static void stop() {
        if (pair != null) {
            pair.close();
        }
    }

    @Test
    void aPrefillServerThatHangsIsReplacedByTheDecodeServerInTime() throws Exception {
        assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
        pair.prefill.pause();
        try {
            final double split = pair.metric("kvasir_split_requests_total");
            assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
            assertEquals(1, pair.metric("kvasir_split_requests_total") - split, "it was tried");
        } finally {
            pair.prefill.resume();
        }
        pair.prefill.awaitUsage(false);
        pair.awaitUp();
    }

    @Test
    void aDecodeServerThatHangsEndsRequestsByNameInTime() throws Exception {
        assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
        pair.decode.pause();
        try {
            for (boolean stream : List.of(false, true)) {
                final String ended = SplitPair.ended(pair.ask(4, stream).get());
                assertTrue(ended.startsWith("50"), ended);
                System.out.println("decode server hangs, stream=" + stream + ": " + ended);
            }
            pair.prefill.awaitUsage(false); // although it may still want to fetch them
        } finally {
            pair.decode.resume();
        }
        pair.awaitUp();
        assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
    }

    @Test
    @Order(Integer.MAX_VALUE) // a start takes minutes
    void noBlocksStayBehindWhenTheDecodeServerIsKilled() throws Exception {
        final double handedOver = pair.metric("kvasir_handoff_seconds_count");
        final List<CompletableFuture<HttpResponse<String>>> asked =
                IntStream.range(0, 16).mapToObj(i -> pair.ask(200, i % 2 == 0)).toList();
        while (pair.metric("kvasir_handoff_seconds_count") <= handedOver) {
            Thread.sleep(5); // now some wait, some are prefilled, some are answered
        }
        pair.decode.kill();
        for (CompletableFuture<HttpResponse<String>> each : asked) {
            final String how =
                    each.handle((answer, thrown) -> thrown == null ? "came" : "cut").get();
            System.out.println(
                    "killed: " + (how.equals("came") ? SplitPair.ended(each.get()) : how));
        }
        pair.prefill.awaitUsage(false);
    }
}
