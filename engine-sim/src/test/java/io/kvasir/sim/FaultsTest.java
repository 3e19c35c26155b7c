package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.state.SimState;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

class FaultsTest {
    private static SimConfig.Builder config() {
        return SimConfig.builder().blockSize(4).blocks(64).speedUp(100);
    }

    private static SimConfig.Builder slow() {
        return config().speedUp(1).interTokenMillis(10);
    }

    /** 200 tokens take more than a minute. */
    private static SimConfig.Builder verySlow() {
        return slow().interTokenMillis(400);
    }

    private static int[] tokens(int from, int count) {
        return IntStream.range(from, from + count).toArray();
    }

    private static byte[] post(String body, String headers) {
        final String head =
                "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "
                        + body.length()
                        + "\r\n"
                        + headers
                        + "\r\n";
        return (head + body).getBytes(StandardCharsets.US_ASCII);
    }

    @Test
    void droppedEventsAreNumberedAndReplayedButNotSent() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            final int[] unique = {0};
            client.awaitSubscription(() -> http.complete(tokens(1000 * ++unique[0], 5), 1));
            final long before = engine.state(0).lastSequence();
            http.post("/sim/faults", "{\"drop_events\":2}");
            for (int i = 0; i < 3; i++) {
                http.complete(tokens(100 * i, 5), 1);
            }
            assertEquals(before + 3, client.next().sequence());
            assertEquals(3, client.replay(engine, 0, before + 1).size());
            assertEquals(2, engine.state(0).droppedMessages());
        }
    }

    @Test
    void aRestartBeginsANewLifeOnTheSamePorts() {
        try (SimEngine engine = SimEngine.start(config().build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            final int[] unique = {0};
            client.awaitSubscription(() -> http.complete(tokens(1000 * ++unique[0], 5), 1));
            http.complete(tokens(1, 9), 1);
            final Set<Long> before = engine.heldBlocks(0).keySet();
            final String events = engine.eventsEndpoint(0);
            final String replay = engine.replayEndpoint(0);
            http.post("/sim/faults", "{\"restart\":true}");
            assertEquals(events, engine.eventsEndpoint(0));
            assertEquals(replay, engine.replayEndpoint(0));
            assertEquals(1, engine.state(0).life());
            assertEquals(-1, engine.state(0).lastSequence());
            assertEquals(Map.of(), engine.heldBlocks(0));
            assertEquals(List.of(), client.replay(engine, 0, 0));
            assertEquals(0, http.cachedTokens(tokens(1, 9), 1));
            final List<EventClient.Message> replayed = client.replay(engine, 0, 0);
            assertEquals(0, replayed.getFirst().sequence());
            final Set<Long> after = engine.heldBlocks(0).keySet();
            assertEquals(2, after.size());
            assertTrue(before.stream().noneMatch(after::contains));
            try (EventClient later = new EventClient(engine, 0)) {
                later.awaitSubscription(() -> http.complete(tokens(1000 * ++unique[0], 5), 1));
            }
        }
    }

    @Test
    void aRestartCutsRequestsInFlight() {
        try (SimEngine engine = SimEngine.start(verySlow().build())) {
            final Http http = new Http(engine);
            final var whole = http.sendAsync("/v1/completions", Http.body(tokens(1, 9), 200, ""));
            final var stream =
                    http.sendAsync(
                            "/v1/completions", Http.body(tokens(1, 9), 200, ",\"stream\":true"));
            Eventually.holds(() -> engine.state(0).running() == 2);
            engine.faults().restart();
            assertThrows(CompletionException.class, whole::join);
            assertThrows(CompletionException.class, stream::join);
            assertEquals(0, engine.state(0).running());
        }
    }

    @Test
    void aStallStopsTokensAndNotTheServer() throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        try (SimEngine engine =
                SimEngine.start(config().interTokenMillis(500).build(), clock)) { // a step: 5 ms
            final Http http = new Http(engine);
            http.post("/sim/faults", "{\"stall_ms\":300}");
            final var answer = http.sendAsync("/v1/completions", Http.body(tokens(1, 9), 2, ""));
            Eventually.holds(() -> engine.state(0).waiting() == 1);
            clock.advance(TimeUnit.MILLISECONDS.toNanos(300) - 1);
            assertEquals("", http.get("/health"));
            assertTrue(http.get("/metrics").contains("vllm:num_requests_waiting"));
            assertEquals(0, engine.state(0).admitted());
            clock.advance(1);
            assertEquals(1, engine.state(0).running(), "the stall has ended");
            clock.advance(TimeUnit.MILLISECONDS.toNanos(10));
            assertEquals(200, answer.join().statusCode());
        }
    }

    @Test
    void theNextRequestsFailWithTheStatusAskedFor() {
        try (SimEngine engine = SimEngine.start(config().build())) {
            final Http http = new Http(engine);
            http.post("/sim/faults", "{\"status\":503,\"count\":2}");
            final String body = Http.body(tokens(1, 9), 1, "");
            for (int status : new int[] {503, 503, 200}) {
                assertEquals(status, http.send("/v1/completions", body).statusCode());
            }
            assertEquals(400, http.send("/sim/faults", "{\"status\":200}").statusCode());
            assertEquals(400, http.send("/sim/faults", "{\"earthquake\":1}").statusCode());
            assertEquals(400, http.send("/sim/faults", "\0\0\0{\1").statusCode()); // as UTF-32
        }
    }

    @Test
    void aStreamIsCutInTheMiddleAndItsBlocksAreFreed() throws IOException {
        try (SimEngine engine = SimEngine.start(slow().interTokenMillis(2).build())) {
            final Http http = new Http(engine);
            http.post("/sim/faults", "{\"disconnect_mid_stream\":1}");
            final String body = Http.body(tokens(1, 9), 20, ",\"stream\":true");
            final String seen;
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), engine.port())) {
                socket.getOutputStream().write(post(body, ""));
                seen = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            }
            final long ids =
                    seen.lines()
                            .filter(line -> line.startsWith("data: "))
                            .mapToLong(
                                    line ->
                                            Http.tree(line.substring(6))
                                                    .at("/choices/0/token_ids")
                                                    .size())
                            .sum();
            assertEquals(10, ids, seen);
            assertTrue(!seen.endsWith("0\r\n\r\n"), seen);
            Eventually.holds(() -> engine.state(0).freeBlocks() == 64);
            final SimState state = engine.state(0);
            assertEquals(1, state.aborted() + state.finished(), "aborted, or done before the cut");
            assertEquals(20, Http.outputIds(http.complete(tokens(1, 9), 20)).length);
        }
    }

    @Test
    void aClientThatGoesAwayFreesItsBlocksWhetherItStreamsOrNot() throws IOException {
        try (SimEngine engine = SimEngine.start(verySlow().build())) {
            for (String more : List.of("", ",\"stream\":true")) {
                final String body = Http.body(tokens(1, 9), 200, more);
                final byte[] request = post(body, "");
                try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), engine.port())) {
                    final OutputStream out = socket.getOutputStream();
                    out.write(request);
                    out.flush();
                    Eventually.holds(() -> engine.state(0).running() == 1);
                }
                Eventually.holds(() -> engine.state(0).running() == 0);
            }
            assertEquals(2, engine.state(0).aborted());
            assertEquals(64, engine.state(0).freeBlocks());
            assertTrue(
                    new Http(engine)
                            .get("/metrics")
                            .contains("finished_reason=\"abort\",model_name=\"kvasir-sim\"} 2.0"));
        }
    }

    @Test
    void aPipeliningClientLosesNothingToTheWatchForItsEnd() throws Exception {
        final VirtualClock clock = new VirtualClock();
        try (SimEngine engine = SimEngine.start(slow().build(), clock);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), engine.port())) {
            final String body = Http.body(tokens(1, 9), 15, "");
            final OutputStream out = socket.getOutputStream();
            out.write(post(body, ""));
            Eventually.holds(() -> engine.state(0).running() == 1);
            out.write(post(body, "Connection: close\r\n"));
            finish(engine, clock, 1);
            Eventually.holds(() -> engine.state(0).running() == 1);
            finish(engine, clock, 2);
            final String answers =
                    new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            assertEquals(3, answers.split("HTTP/1.1 200 OK", -1).length, answers);
            assertEquals(2, engine.state(0).finished());
        }
    }

    /** Moves time until so many requests have ended. */
    private static void finish(SimEngine engine, VirtualClock clock, long requests)
            throws InterruptedException {
        while (engine.state(0).finished() < requests) {
            assertTrue(clock.advanceToNext(), "asleep before its end");
        }
    }

    @Test
    void closingAnEngineCutsRequestsInFlight() {
        final SimEngine engine = SimEngine.start(verySlow().build());
        final var whole =
                new Http(engine).sendAsync("/v1/completions", Http.body(tokens(1, 9), 200, ""));
        Eventually.holds(() -> engine.state(0).running() == 1);
        engine.close();
        assertThrows(CompletionException.class, whole::join);
        engine.close();
    }

    @Test
    void anEngineWithoutEventsServesAndSaysSo() {
        try (SimEngine engine = SimEngine.start(config().eventsPort(-1).build())) {
            final Http http = new Http(engine);
            http.complete(tokens(1, 8), 1);
            assertEquals(4, http.cachedTokens(tokens(1, 8), 1));
            assertThrows(IllegalStateException.class, () -> engine.eventsEndpoint(0));
            assertThrows(IllegalStateException.class, () -> engine.replayEndpoint(0));
        }
    }

    @Test
    void theStateOverHttpIsTheStateInTheApi() {
        try (SimEngine engine = SimEngine.start(config().dataParallelSize(2).build())) {
            final Http http = new Http(engine);
            http.post(
                    "/v1/completions", Http.body(tokens(1, 9), 1, ""), "X-data-parallel-rank", "1");
            final var ranks = Http.tree(http.get("/sim/state?blocks=true")).get("ranks");
            assertEquals(2, ranks.size());
            assertEquals(0, ranks.at("/0/held").size());
            assertEquals(2, ranks.at("/1/held").size());
            assertEquals(0, ranks.at("/1/lastSequence").intValue());
            engine.heldBlocks(1)
                    .forEach(
                            (name, copies) ->
                                    assertEquals(
                                            copies,
                                            ranks.at("/1/held/" + Long.toUnsignedString(name))
                                                    .intValue()));
            assertNotEquals(0, ranks.at("/1/freeBlocks").intValue());
        }
    }
}
