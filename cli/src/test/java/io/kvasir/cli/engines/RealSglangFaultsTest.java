package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

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
 * Real SGLang servers that hang or die while requests meet on them: each request ends with an error
 * that has a name, as neither server can answer alone, and the other server is idle afterwards.
 */
@Tag("real-engine")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class RealSglangFaultsTest {
    /** Of a leg; an answer that waits for all of them comes within a few of it. */
    private static final Duration DEADLINE = Duration.ofSeconds(5);

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static SplitPair<SglangServer> pair;

    @BeforeAll
    static void start() throws Exception {
        pair = SplitPair.sglang(logs, config -> SplitPair.deadlines(config, DEADLINE));
    }

    @AfterAll
    static void stop() {
        if (pair != null) {
            pair.close();
        }
    }

    @Test
    @Order(1)
    void aPrefillServerThatHangsEndsRequestsByNameInTime() throws Exception {
        hangs(pair.prefill, "prefill");
        pair.decode.awaitIdle();
    }

    @Test
    @Order(2)
    void aDecodeServerThatHangsEndsRequestsByNameInTime() throws Exception {
        hangs(pair.decode, "decode");
        pair.prefill.awaitIdle();
    }

    private static void hangs(SglangServer server, String name) throws Exception {
        assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
        server.pause();
        try {
            for (boolean stream : List.of(false, true)) {
                final HttpResponse<String> answer = pair.ask(4, stream).get();
                final String ended = SplitPair.ended(answer);
                System.out.printf("%s server hangs, stream=%s: %s%n", name, stream, ended);
                assertNotEquals("answered", ended, answer.body());
            }
        } finally {
            server.resume();
        }
        pair.awaitUp();
        assertEquals("answered", SplitPair.ended(pair.ask(4, false).get()));
    }

    @Test
    @Order(3) // a start takes minutes
    void thePrefillServerIsIdleAfterTheDecodeServerWasKilled() throws Exception {
        final double split = pair.metric("kvasir_split_requests_total");
        final List<CompletableFuture<HttpResponse<String>>> asked =
                IntStream.range(0, 16).mapToObj(i -> pair.ask(200, i % 2 == 0)).toList();
        while (pair.metric("kvasir_split_requests_total") < split + 16) {
            Thread.sleep(5);
        }
        pair.decode.kill();
        for (CompletableFuture<HttpResponse<String>> each : asked) {
            final String how =
                    each.handle((answer, thrown) -> thrown == null ? "came" : "cut").get();
            System.out.println(
                    "killed: " + (how.equals("came") ? SplitPair.ended(each.get()) : how));
        }
        pair.prefill.awaitIdle();
    }
}
