package io.kvasir.sim.batch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.sim.events.EventPublisher;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.state.SimState;
import io.kvasir.sim.testing.EventClient;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/**
 * A rank whose requests are computed, pulled from other engines and held for them, given up, and
 * cut by resets and restarts, with a pool that is too small for all of them. Its events say what it
 * holds, and in the end each request has ended and none of its blocks is in use.
 */
class RankModelTest {
    private static final int TRIALS = Trials.of(100, 2_000);
    private static final int STEPS = 120;
    private static final int BLOCK = 4;
    private static final long END_NS = 1_000_000_000_000L;

    @Tag("trials")
    @Test
    void eventsSayWhatIsHeldAndEachRequestEnds() {
        final long seed = Seeds.next("RankModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    /** One run. */
    private static final class Model implements EventPublisher, KvPull.Carrier {
        private final Random random;
        private final SimConfig config;
        private final RankScheduler rank;
        private final Map<Long, Integer> announced = new TreeMap<>(Long::compareUnsigned);
        private final List<SimRequest> open = new ArrayList<>();
        private final List<SimRequest> pulling = new ArrayList<>();
        private long life;
        private long messages;
        private long nowNs;
        private long nextNs;

        Model(Random random) {
            this.random = random;
            config =
                    SimConfig.builder()
                            .blockSize(BLOCK)
                            .blocks(4 + random.nextInt(16))
                            .maxModelLength(16)
                            .slots(1 + random.nextInt(4))
                            .maxBatchedTokens(BLOCK + random.nextInt(40))
                            .prefillTokensPerSecond(1_000)
                            .interTokenMillis(5)
                            .handoff(
                                    HandoffConfig.of(SimRole.BOTH, SimHandoff.VLLM)
                                            .withLease(Duration.ofMillis(200))
                                            .withPatience(Duration.ofMillis(100))
                                            .withStrict(random.nextBoolean()))
                            .build();
            rank =
                    new RankScheduler(
                            0,
                            config,
                            new VirtualClock(),
                            new ArrayList<>(),
                            this,
                            new InjectedFaults(config.handoff()));
            rank.begin(life, this);
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(16)) {
                    case 0, 1, 2 -> submit();
                    case 3 -> abort();
                    case 4 -> reset();
                    case 5 -> restart();
                    case 6 -> release();
                    case 7, 8, 9 -> answer();
                    default -> advance();
                }
                check();
            }
            while (nextNs != RankScheduler.NOTHING_TO_DO) {
                nowNs = Math.max(nowNs, nextNs);
                nextNs = rank.advance(nowNs);
                check();
                assertTrue(nowNs < END_NS, () -> "no end: " + rank.state());
            }
            for (SimRequest request : open) {
                assertTrue(hasEnded(request), () -> request.phase + ": " + rank.state() + config);
            }
            assertEquals(config.blocks(), rank.state().freeBlocks(), "free blocks");
        }

        private static boolean hasEnded(SimRequest request) {
            return request.phase != SimRequest.Phase.WAITING
                    && request.phase != SimRequest.Phase.ADMITTED;
        }

        private void submit() {
            final int[] prompt = random.ints(1 + random.nextInt(30), 0, 2).toArray();
            final int most = config.blocks() * BLOCK - prompt.length;
            if (most < 1) {
                return;
            }
            final int output = 1 + random.nextInt(Math.min(most, 20));
            final Completion script = script(prompt, output);
            final SimRequest request =
                    new SimRequest(
                            script,
                            new BlockNamer(life, 1 + life, BLOCK),
                            Labels.NONE,
                            false,
                            new Gate());
            request.arrivalNs(nowNs);
            switch (random.nextInt(3)) {
                case 0 -> request.hold(new KvHold(key(), random.nextBoolean(), false));
                case 1 ->
                        request.pull(
                                new KvPull(
                                        "other",
                                        1,
                                        new PullOrder(key(), null, -1, "m", BLOCK),
                                        null,
                                        () -> script(prompt, output),
                                        null));
                default -> {}
            }
            open.add(request);
            rank.submit(request);
            nextNs = Math.min(nextNs, nowNs);
        }

        private static Completion script(int[] prompt, int output) {
            return Completion.of(
                    prompt,
                    0,
                    new Completion.Limits(output, 0, -1, 1, List.of(), List.of(), false));
        }

        private String key() {
            return "key" + random.nextInt(6);
        }

        private void abort() {
            if (!open.isEmpty()) {
                final SimRequest request = open.get(random.nextInt(open.size()));
                if (!hasEnded(request)) {
                    open.remove(request);
                    rank.abort(request, nowNs);
                    nextNs = Math.min(nextNs, nowNs);
                }
            }
        }

        private void reset() {
            if (random.nextInt(3) == 0) {
                final boolean isFree = rank.state().freeBlocks() == config.blocks();
                final boolean done = rank.resetCache(random.nextBoolean());
                assertTrue(done || !isFree, "a reset of a free pool was refused");
                assertTrue(!done || rank.heldBlocks().isEmpty(), "a reset left blocks");
                nextNs = Math.min(nextNs, nowNs);
            }
        }

        private void restart() {
            if (random.nextInt(4) == 0) {
                rank.begin(++life, this);
                announced.clear();
                messages = 0;
                open.forEach(request -> assertTrue(hasEnded(request), "one outlives its engine"));
                open.clear();
                pulling.clear();
                nextNs = nowNs;
            }
        }

        /** Another engine has pulled a held prefill, or does not want it. */
        private void release() {
            if (rank.free(
                    key(), random.nextBoolean() ? KvHold.End.PULLED : KvHold.End.NOTIFIED, nowNs)) {
                nextNs = Math.min(nextNs, nowNs);
            }
        }

        /** Another engine answers a pull, early or late. */
        private void answer() {
            if (pulling.isEmpty()) {
                return;
            }
            final SimRequest request = pulling.get(random.nextInt(pulling.size()));
            switch (random.nextInt(8)) {
                case 0 -> rank.pulls().undeliverable(request, "lost", nowNs);
                case 1 -> rank.pulls().offered(request, PullOffer.stale("stale"), nowNs);
                case 2 -> rank.pulls().offered(request, PullOffer.refused("refused"), nowNs);
                case 3, 4 -> rank.pulls().confirmed(request, random.nextInt(4) > 0, nowNs);
                default ->
                        rank.pulls()
                                .offered(
                                        request,
                                        new PullOffer(
                                                request.script.promptTokens(),
                                                request.print(),
                                                List.of(),
                                                null,
                                                0,
                                                null,
                                                null),
                                        nowNs);
            }
            nextNs = Math.min(nextNs, nowNs);
        }

        private void advance() {
            final long most = Math.min(nextNs, nowNs + 50_000_000);
            nowNs = random.nextInt(4) == 0 ? (nowNs + most) / 2 : Math.max(nowNs, most);
            nextNs = rank.advance(nowNs);
            open.removeIf(request -> hasEnded(request) && random.nextBoolean());
        }

        private void check() {
            final SimState state = rank.state();
            final HandoffState handoffs = rank.handoffs();
            if (state.pendingEvents() == 0) {
                assertEquals(announced, rank.heldBlocks());
            }
            assertTrue(state.freeBlocks() >= 0 && handoffs.heldBlocks() >= 0, "below 0");
            if (state.running() + state.waiting() + handoffs.heldPrefills() == 0) {
                assertEquals(config.blocks(), state.freeBlocks(), "free blocks");
            }
            for (SimRequest request : open) {
                assertTrue(
                        request.cachedTokens < request.script.promptTokens(),
                        "the last token is computed");
            }
        }

        @Override
        public void publish(int ofRank, long sequence, byte[] payload, boolean lost) {
            assertEquals(messages++, sequence);
            final var message = new EventClient.Message("", sequence, EventClient.batch(payload));
            for (Map<String, Object> event : message.events()) {
                switch ((String) event.get("type")) {
                    case "BlockStored" ->
                            EventClient.names(event)
                                    .forEach(name -> announced.merge(name, 1, Integer::sum));
                    case "BlockRemoved" ->
                            EventClient.names(event)
                                    .forEach(
                                            name ->
                                                    announced.computeIfPresent(
                                                            name, (_, n) -> n == 1 ? null : n - 1));
                    default -> announced.clear();
                }
            }
        }

        @Override
        public void begin(SimRequest request) {
            pulling.add(request);
        }

        @Override
        public void moved(SimRequest request) {
            assertTrue(pulling.contains(request), "moved before its begin");
        }

        @Override
        public void cancel(SimRequest request) {
            pulling.remove(request);
        }
    }
}
