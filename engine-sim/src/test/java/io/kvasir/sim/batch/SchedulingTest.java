package io.kvasir.sim.batch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.SimEngine;
import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.events.EventPublisher;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.state.SimState;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.sim.testing.Http;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

class SchedulingTest {
    private static int[] tokens(int from, int count) {
        return IntStream.range(from, from + count).toArray();
    }

    /** One rank in simulated time alone. */
    private static final class Bench implements EventPublisher {
        final SimConfig config;
        final RankScheduler rank;
        final BlockNamer namer;

        Bench(SimConfig.Builder builder) {
            this.config = builder.build();
            this.namer = new BlockNamer(0, 1, config.blockSize());
            this.rank =
                    new RankScheduler(
                            0,
                            config,
                            new VirtualClock(),
                            new ArrayList<>(),
                            NoCarrier.INSTANCE,
                            new InjectedFaults(config.handoff()),
                            null);
            rank.begin(0, this);
        }

        @Override
        public void publish(int r, long sequence, byte[] payload, boolean lost) {}

        SimRequest submit(double arrivalMillis, int[] prompt, int output) {
            final SimRequest request = request(arrivalMillis, prompt, output);
            rank.submit(request);
            return request;
        }

        /** One whose blocks are held after its end, until it is aborted. */
        SimRequest submitHeld(double arrivalMillis, int[] prompt) {
            final SimRequest request = request(arrivalMillis, prompt, 1);
            request.hold(new KvHold("held", true, false));
            rank.submit(request);
            return request;
        }

        private SimRequest request(double arrivalMillis, int[] prompt, int output) {
            final Completion.Limits limits =
                    new Completion.Limits(output, 0, -1, 1, List.of(), List.of(), false);
            final SimRequest request =
                    new SimRequest(
                            Completion.of(prompt, 0, limits),
                            namer,
                            Labels.NONE,
                            false,
                            new Gate());
            request.arrivalNs = (long) (arrivalMillis * 1e6);
            return request;
        }

        /** When the request had generated that many tokens, in simulated milliseconds. */
        double reached(SimRequest request, int generated) {
            for (long ns = 0; ns < 1L << 40; ) {
                final long next = rank.advance(ns);
                if (request.generated >= generated) {
                    return ns / 1e6;
                }
                assertTrue(
                        next != RankScheduler.NOTHING_TO_DO,
                        "idle before " + generated + " tokens");
                ns = next;
            }
            throw new AssertionError("never");
        }
    }

    private static SimConfig.Builder virtual() {
        return SimConfig.builder()
                .blockSize(10)
                .blocks(1000)
                .prefillTokensPerSecond(10_000)
                .interTokenMillis(5)
                .maxBatchedTokens(500);
    }

    @Test
    void prefillTakesItsRateAndDecodeItsInterval() {
        final Bench bench = new Bench(virtual());
        final SimRequest request = bench.submit(3, tokens(0, 1000), 11);
        assertEquals(103, bench.reached(request, 1), 0.01);
        assertEquals(153, bench.reached(request, 11), 0.01);
    }

    @Test
    void cachedTokensCostNothing() {
        final Bench bench = new Bench(virtual());
        bench.reached(bench.submit(0, tokens(0, 1000), 1), 1);
        final SimRequest again = bench.submit(200, tokens(0, 1000), 1);
        assertEquals(205, bench.reached(again, 1), 0.01); // ten tokens take less than a step
        assertEquals(990, again.cachedTokens);
    }

    @Test
    void concurrentPrefillsShareTheRateInOrderOfArrival() {
        final Bench bench = new Bench(virtual());
        final SimRequest first = bench.submit(0, tokens(0, 750), 1);
        final SimRequest second = bench.submit(0, tokens(10_000, 500), 1);
        assertEquals(100, bench.reached(first, 1), 0.01); // its second chunk leaves half a step
        assertEquals(125, bench.reached(second, 1), 0.01);
    }

    @Test
    void decodingGoesOnBesideAPrefillButInItsLongerSteps() {
        final Bench bench = new Bench(virtual());
        final SimRequest decoding = bench.submit(0, tokens(0, 10), 100);
        bench.reached(decoding, 3);
        final SimRequest prefilling = bench.submit(15, tokens(5000, 2000), 1);
        final double began = bench.reached(decoding, 4);
        assertEquals(began + 50, bench.reached(decoding, 5), 0.1);
        bench.reached(prefilling, 1);
        assertTrue(decoding.generated < 10, "generated=" + decoding.generated);
    }

    @Test
    void requestsBeyondTheSlotsWaitInOrderOfArrival() {
        final Bench bench = new Bench(virtual().slots(2));
        final List<SimRequest> requests = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            requests.add(bench.submit(0, tokens(1000 * i, 10), 10));
        }
        bench.reached(requests.get(1), 1);
        assertEquals(2, bench.rank.state().running());
        assertEquals(2, bench.rank.state().waiting());
        assertEquals(50, bench.reached(requests.get(1), 10), 0.01);
        assertEquals(55, bench.reached(requests.get(2), 1), 0.01);
        assertEquals(100, bench.reached(requests.get(3), 10), 0.01);
    }

    @Test
    void aPromptThatFindsNoRoomWaitsUntilBlocksAreFree() {
        final Bench bench = new Bench(virtual().blocks(100));
        final SimRequest first = bench.submit(0, tokens(0, 600), 10);
        final SimRequest second = bench.submit(0, tokens(5000, 600), 1);
        bench.reached(first, 1);
        assertEquals(1, bench.rank.state().waiting());
        final double freed = bench.reached(first, 10);
        assertEquals(freed + 60, bench.reached(second, 1), 0.01);
    }

    @Test
    void aPromptThatWaitsForHeldBlocksBeginsWhenTheirClientHasLeft() {
        final Bench bench = new Bench(virtual().blocks(100));
        final SimRequest held = bench.submitHeld(0, tokens(0, 600));
        assertEquals(60, bench.reached(held, 1), 0.01);
        final SimRequest waiting = bench.submit(100, tokens(5000, 600), 1);
        bench.rank.advance(4_000_000_000L);
        assertEquals(1, bench.rank.state().waiting());
        bench.rank.abort(held, 4_000_000_000L);
        assertEquals(4060, bench.reached(waiting, 1), 0.01);
    }

    @Test
    void theYoungestIsPreemptedWhenOutputsOutgrowThePoolAndStillFinishes() {
        final Bench bench = new Bench(virtual().blocks(20));
        final SimRequest first = bench.submit(0, tokens(0, 80), 100);
        final SimRequest second = bench.submit(0, tokens(1000, 80), 100);
        bench.reached(first, 100);
        bench.reached(second, 100);
        assertTrue(bench.rank.state().preemptions() > 0);
        assertEquals(20, bench.rank.state().freeBlocks());
        assertEquals(0, second.cachedTokens, "the first lookup is the one that is told");
    }

    @Test
    void siblingsOfOneStepHitTheBlocksThatTheFirstOfThemComputes() {
        final Bench bench = new Bench(virtual());
        final SimRequest first = bench.submit(0, tokens(0, 105), 1);
        final SimRequest second = bench.submit(0, tokens(0, 105), 1);
        bench.reached(second, 1);
        assertEquals(0, first.cachedTokens);
        assertEquals(100, second.cachedTokens);
        assertEquals(10, bench.rank.state().cachedBlocks());
    }

    @Test
    void clockTimeIsSimulatedTimeDividedBySpeedUp() throws InterruptedException {
        // 4000 tokens at 10000/s and 99 steps of 10 ms: 1390 ms, at speed-up 10 139 ms
        final VirtualClock clock = new VirtualClock();
        try (SimEngine engine =
                SimEngine.start(SimConfig.builder().blocks(1024).speedUp(10).build(), clock)) {
            final CompletableFuture<HttpResponse<String>> answer =
                    new Http(engine)
                            .sendAsync("/v1/completions", Http.body(tokens(0, 4000), 100, ""));
            Eventually.holds(() -> engine.state(0).running() == 1);
            while (engine.state(0).finished() == 0) {
                assertTrue(clock.advanceToNext(), "asleep before its end");
            }
            assertEquals(TimeUnit.MILLISECONDS.toNanos(139), clock.nanoTime());
            assertEquals(200, answer.join().statusCode());
        }
    }

    @Test
    void tokensOfShortStepsAreStreamedTogether() throws InterruptedException {
        final VirtualClock clock = new VirtualClock();
        try (SimEngine engine =
                SimEngine.start(
                        SimConfig.builder().speedUp(100).interTokenMillis(10).build(), clock)) {
            final String body = Http.body(tokens(0, 20), 400, ",\"stream\":true");
            final CompletableFuture<HttpResponse<String>> answer =
                    new Http(engine).sendAsync("/v1/completions", body);
            Eventually.holds(() -> engine.state(0).running() == 1);
            int wakes = 0;
            while (engine.state(0).finished() == 0) {
                assertTrue(clock.advanceToNext(), "asleep before its end");
                wakes++;
            }
            assertEquals(40, wakes, "of 1 ms, in which ten steps end");
            assertEquals(40_000_000, clock.nanoTime());
            final List<JsonNode> events =
                    answer.join()
                            .body()
                            .lines()
                            .filter(line -> line.startsWith("data: {"))
                            .map(line -> Http.tree(line.substring("data: ".length())))
                            .toList();
            final int ids =
                    events.stream().mapToInt(e -> e.at("/choices/0/token_ids").size()).sum();
            assertEquals(400, ids);
            assertTrue(events.size() <= wakes + 3, "chunks=" + events.size());
        }
    }

    @Test
    void manyClientsAtOnceAreAllAnsweredAndLeaveNothingBehind() {
        try (SimEngine engine =
                        SimEngine.start(
                                SimConfig.builder()
                                        .blockSize(4)
                                        .blocks(200)
                                        .maxModelLength(400)
                                        .slots(16)
                                        .speedUp(50)
                                        .build());
                EventClient client = new EventClient(engine, 0)) {
            final Http http = new Http(engine);
            final List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                final int[] prompt = tokens(10_000 * (i % 7), 20 + (i * 37) % 150);
                answers.add(
                        http.sendAsync(
                                "/v1/completions",
                                Http.body(
                                        prompt, 1 + i % 40, i % 2 == 0 ? "" : ",\"stream\":true")));
            }
            for (CompletableFuture<HttpResponse<String>> answer : answers) {
                assertEquals(200, answer.join().statusCode());
            }
            final SimState state = engine.state(0);
            assertEquals(200, state.finished());
            assertEquals(200, state.freeBlocks());
            assertEquals(engine.heldBlocks(0), EventClient.held(client.replay(engine, 0, 0)));
        }
    }
}
