package io.kvasir.sim.batch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.testing.Pair;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

/** Transfers in simulated time alone: 16 tokens of 100 bytes at 10,000 bytes/s are 160 ms. */
class PullTimingTest {
    private final SimConfig config =
            SimConfig.builder()
                    .blockSize(4)
                    .blocks(16)
                    .interTokenMillis(5)
                    .handoff(
                            HandoffConfig.of(SimRole.DECODE, SimHandoff.VLLM)
                                    .withBytesPerSecond(10_000)
                                    .withBytesPerToken(100))
                    .build();
    private final BlockNamer namer = new BlockNamer(0, 1, 4);
    private final List<String> freed = new ArrayList<>();
    private final RankScheduler rank =
            new RankScheduler(
                    0,
                    config,
                    new VirtualClock(),
                    new ArrayList<>(),
                    new PromptPrefill(),
                    new InjectedFaults(config.handoff()),
                    null);
    private long nowNs;

    PullTimingTest() {
        rank.begin(0, (r, sequence, payload, lost) -> {});
    }

    /** A prefill engine that has everything and answers at once. */
    private final class PromptPrefill implements KvPull.Carrier {
        @Override
        public void begin(SimRequest request) {
            final PullOffer offer =
                    new PullOffer(
                            request.script.promptTokens(),
                            request.print(),
                            List.of(),
                            null,
                            0,
                            null,
                            null);
            rank.pulls().offered(request, offer, nowNs);
        }

        @Override
        public void moved(SimRequest request) {
            freed.add(request.pull.order.key() + " at " + nowNs / 1_000_000);
            rank.pulls().confirmed(request, true, nowNs);
        }

        @Override
        public void cancel(SimRequest request) {}
    }

    private SimRequest submit(int firstToken, boolean pulls) {
        final Completion.Limits limits =
                new Completion.Limits(3, 0, -1, 1, List.of(), List.of(), false);
        final int[] prompt = Pair.tokens(firstToken, 16);
        final SimRequest request =
                new SimRequest(
                        Completion.of(prompt, 0, limits), namer, Labels.NONE, false, new Gate());
        if (pulls) {
            request.pull =
                    new KvPull(
                            "",
                            0,
                            new PullOrder("p" + firstToken, "e", -1, "m", 4),
                            null,
                            () -> Completion.of(prompt, -1, limits),
                            null);
        }
        rank.submit(request);
        return request;
    }

    private double reached(SimRequest request, int tokens) {
        while (request.generated < tokens) {
            final long next = rank.advance(nowNs);
            if (request.generated >= tokens) {
                break;
            }
            assertEquals(true, next != RankScheduler.NOTHING_TO_DO, "idle too early");
            nowNs = next;
        }
        return nowNs / 1e6;
    }

    @Test
    void aTransferTakesItsBytesAndThePromptOneStep() {
        final SimRequest request = submit(100, true);
        assertEquals(165, reached(request, 1), 0.01);
        assertEquals(List.of("p100 at 160"), freed);
        assertEquals(175, reached(request, 3), 0.01);
        assertEquals(15, request.cachedTokens);
        assertEquals(1600, rank.handoffs().transferredBytes());
    }

    @Test
    void transfersToOneRankAreOneAfterTheOther() {
        final SimRequest first = submit(100, true);
        final SimRequest second = submit(200, true);
        assertEquals(165, reached(first, 1), 0.01);
        assertEquals(325, reached(second, 1), 0.01);
    }

    @Test
    void otherRequestsAreComputedMeanwhile() {
        final SimRequest pulling = submit(100, true);
        final SimRequest local = submit(200, false);
        assertEquals(15, reached(local, 3), 0.01);
        assertEquals(165, reached(pulling, 1), 0.01);
    }

    @Test
    void aPullThatFindsNoRoomWaitsForIt() {
        final List<SimRequest> requests = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            requests.add(submit(100 * (i + 1), true)); // four blocks each, and one more for output
        }
        for (SimRequest request : requests) {
            reached(request, 3);
        }
        assertEquals(6, rank.handoffs().pulls());
        assertEquals(16, rank.state().freeBlocks());
    }
}
