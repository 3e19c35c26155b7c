package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

/** The chooser against a plain look at every worker. */
class WorkerSelectorTest {
    private static final int BLOCK_SIZE = 16;
    private static final int SLOTS = 2_200;
    private static final int IDLE = 300;
    private static final int SAMPLES = 30_000;

    private final long seed = Seeds.next("WorkerSelectorTest");
    private final Random random = new Random(seed);
    private final OverlapScores cached = new OverlapScores(SLOTS);
    private final OverlapScores active = new OverlapScores(SLOTS);
    private final Decision decision = new Decision();
    private final List<Worker> workers = new ArrayList<>();
    private KvRouter router = build(CostModel.LINEAR);

    /** Draws the same in every run: a bound of five standard deviations holds always or never. */
    private void alwaysDrawTheSame() {
        router.close();
        router = build(CostModel.LINEAR, 20_26);
    }

    private KvRouter build(CostModel model) {
        return build(model, seed);
    }

    private static KvRouter build(CostModel model, long seed) {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .maxWorkers(SLOTS)
                .maxBlocks(1_024, 1_024)
                .maxActiveRequests(64)
                .costModel(model)
                .random(RandomSource.seeded(seed))
                .build();
    }

    @AfterEach
    void close() {
        router.close();
    }

    private void register(int count) {
        for (int i = 0; i < count; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
    }

    /** Gives a worker events, so that its overlaps count in full and not by half. */
    private void trust(Worker worker) {
        router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(new int[0], 0, BLOCK_SIZE, 0));
        Eventually.holds("events of " + worker, () -> worker.state() == IndexState.EXACT);
    }

    private RouteRequest request(int blocks) {
        final int[] tokens =
                random.ints((long) blocks * BLOCK_SIZE + random.nextInt(BLOCK_SIZE)).toArray();
        return router.newRequest().tokens(tokens, tokens.length);
    }

    private void load(Worker worker, long tokens, long blocks) {
        router.board().add(worker.slot(), tokens, blocks, 1);
    }

    /** What each worker would cost, by the formula, from what the accessors of a worker say. */
    private Map<Worker, Double> naive(RouteRequest request, double weight, List<Worker> excluded) {
        final Map<Worker, Double> costs = new HashMap<>();
        for (Worker worker : router.workers()) {
            if (!worker.available() || excluded.contains(worker)) {
                continue;
            }
            final int blocks = request.tokenCount() / BLOCK_SIZE;
            final int reusable =
                    Math.min(cached.depth(worker.slot()), (request.tokenCount() - 1) / BLOCK_SIZE);
            final double credit = worker.state() == IndexState.DEGRADED ? 0.5 : 1;
            final double prefill =
                    (worker.prefillTokens() + request.tokenCount() - credit * reusable * BLOCK_SIZE)
                            / BLOCK_SIZE;
            final long decode = worker.activeBlocks() + blocks - active.depth(worker.slot());
            costs.put(worker, weight * prefill + decode);
        }
        return costs;
    }

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(ints = {1, 7, 64, 65, 290, 2_200})
    void itPicksWhatALookAtEveryWorkerPicks(int count) throws RouteException {
        register(count);
        workers.stream().filter(w -> random.nextBoolean()).forEach(this::trust);
        for (int round = Trials.of(600, 6_000) / (count < 1_000 ? 3 : 12); round > 0; round--) {
            changeSomething();
            final RouteRequest request = request(1 + random.nextInt(40));
            match(random.nextInt(4) == 0 ? random.nextInt(2 * count) : random.nextInt(5), request);
            final double weight = random.nextInt(10) == 0 ? random.nextInt(4) * 0.5 : 1;
            final List<Worker> excluded = exclude(request.overlapWeight(weight));
            final Map<Worker, Double> costs = naive(request, weight, excluded);
            if (costs.isEmpty()) {
                assertThrows(
                        RouteException.class,
                        () -> router.select(request, cached, active, decision));
                continue;
            }
            router.select(request, cached, active, decision);
            final double least = costs.values().stream().mapToDouble(c -> c).min().orElseThrow();
            assertEquals(least, costs.get(decision.worker()));
            checkExplanation(costs, excluded);
            checkRunnersUp(costs);
        }
    }

    @Tag("trials")
    @ParameterizedTest
    @ValueSource(ints = {1, 10, 64, 150})
    void weightsThatAreNoBinaryFractionsFindTheCheapest(int count) throws RouteException {
        register(count);
        workers.forEach(this::trust);
        for (int round = 0; round < Trials.of(500, 5_000); round++) {
            changeSomething();
            final RouteRequest request = request(1 + random.nextInt(40));
            final int blocks = request.tokenCount() / BLOCK_SIZE;
            if (random.nextBoolean()) {
                match(random.nextInt(4), request);
            } else { // what one holds all hold: the bound of a group is the cost of its least
                // loaded
                cached.clear();
                active.clear();
                cached.addSet(allSlots(), 1 + random.nextInt(blocks));
                active.addSet(allSlots(), 1 + random.nextInt(blocks));
            }
            final double weight = random.nextInt(20) * 0.1;
            final Map<Worker, Double> costs =
                    naive(request.overlapWeight(weight), weight, List.of());
            if (!costs.isEmpty()) {
                router.select(request, cached, active, decision);
                final double least =
                        costs.values().stream().mapToDouble(c -> c).min().orElseThrow();
                assertEquals(least, costs.get(decision.worker()), 1e-9 * (1 + Math.abs(least)));
            }
        }
    }

    private long[] allSlots() {
        final BitSet slots = new BitSet();
        workers.forEach(worker -> slots.set(worker.slot()));
        return Arrays.copyOf(slots.toLongArray(), (SLOTS + Long.SIZE - 1) / Long.SIZE);
    }

    private void checkRunnersUp(Map<Worker, Double> costs) {
        final int most = random.nextInt(9);
        final RunnersUp found = new RunnersUp(most);
        found.find(decision.selection());
        final double[] expected =
                costs.entrySet().stream()
                        .filter(entry -> entry.getKey() != decision.worker())
                        .mapToDouble(Map.Entry::getValue)
                        .sorted()
                        .limit(most)
                        .toArray();
        assertEquals(expected.length, found.count());
        final BitSet slots = new BitSet();
        for (int i = 0; i < expected.length; i++) {
            assertEquals(expected[i], found.cost(i));
            assertEquals(expected[i], costs.get(decision.selection().workers().at(found.slot(i))));
            slots.set(found.slot(i));
        }
        assertEquals(expected.length, slots.cardinality());
    }

    private void changeSomething() {
        for (int i = random.nextInt(4); i > 0; i--) {
            final Worker worker = workers.get(random.nextInt(workers.size()));
            load(worker, random.nextInt(64), random.nextInt(4));
        }
        final Worker worker = workers.get(random.nextInt(workers.size()));
        if (random.nextInt(20) == 0) {
            worker.available(random.nextInt(3) > 0);
        }
    }

    private void match(int matched, RouteRequest request) {
        cached.clear();
        active.clear();
        final int blocks = request.tokenCount() / BLOCK_SIZE;
        for (int i = 0; i < matched; i++) {
            final int slot = random.nextInt(workers.size());
            if (cached.depth(slot) == 0 && random.nextInt(4) > 0) {
                cached.add(slot, 1 + random.nextInt(blocks));
            }
            if (active.depth(slot) == 0 && random.nextInt(2) > 0) {
                active.add(slot, 1 + random.nextInt(blocks));
            }
        }
        for (int sets = random.nextInt(4); sets > 0; sets--) {
            addSet(random.nextBoolean() ? cached : active, 1 + random.nextInt(blocks));
        }
    }

    /** A system prompt that some of those hold that hold nothing so far. */
    private void addSet(OverlapScores scores, int depth) {
        final long[] slots = new long[(SLOTS + Long.SIZE - 1) / Long.SIZE];
        final int share = 1 + random.nextInt(8);
        for (int slot = 0; slot < workers.size(); slot++) {
            if (scores.depth(slot) == 0 && random.nextInt(share) == 0) {
                slots[slot / Long.SIZE] |= 1L << slot;
            }
        }
        scores.addSet(slots, depth);
    }

    private List<Worker> exclude(RouteRequest request) {
        final List<Worker> excluded = new ArrayList<>();
        for (int i = random.nextInt(4) - 1; i > 0; i--) {
            final Worker worker = workers.get(random.nextInt(workers.size()));
            excluded.add(worker);
            request.exclude(worker);
        }
        return excluded;
    }

    private void checkExplanation(Map<Worker, Double> costs, List<Worker> excluded) {
        assertEquals(workers.size(), decision.candidateCount());
        for (int i = 0; i < decision.candidateCount(); i++) {
            final Worker worker = decision.candidate(i);
            assertEquals(costs.getOrDefault(worker, Double.NaN), decision.cost(i));
            assertEquals(cached.depth(worker.slot()), decision.overlapBlocks(i));
            assertEquals(active.depth(worker.slot()), decision.activePrefixBlocks(i));
            assertEquals(worker.activeRequests(), decision.activeRequests(i));
            assertEquals(-1, decision.eventSequence(i));
            assertEquals(worker.state(), decision.state(i));
            assertEquals(
                    excluded.contains(worker)
                            ? Decision.Exclusion.EXCLUDED
                            : worker.available()
                                    ? Decision.Exclusion.NONE
                                    : Decision.Exclusion.UNAVAILABLE,
                    decision.exclusion(i));
        }
    }

    @Test
    void anExcludedWorkerIsShownWithTheCreditThatItHas() throws RouteException {
        register(2);
        workers.forEach(this::trust);
        cached.add(workers.get(0).slot(), 4);
        cached.add(workers.get(1).slot(), 4);
        final RouteRequest request = router.newRequest().tokens(new int[128], 128);
        router.select(request.temperature(0.5).exclude(workers.get(0)), cached, active, decision);
        assertSame(workers.get(1), decision.worker());
        assertEquals(IndexState.EXACT, decision.state(0));
        assertEquals(4, decision.prefillBlocks(0));
    }

    @Test
    void aCostModelOfOnesOwnIsAskedForEveryCandidate() throws RouteException {
        router.close();
        router = build(CostModel.each((all, one) -> -one.activeRequests()));
        register(130);
        load(workers.get(99), 0, 0);
        load(workers.get(99), 0, 0);
        load(workers.get(7), 0, 0);
        router.select(request(3), cached, active, decision);
        assertSame(workers.get(99), decision.worker());
        assertEquals(-2, decision.cost());
        assertEquals(-1, decision.cost(7));
        assertEquals(0, decision.cost(8));
    }

    /**
     * Ties among matched and unmatched workers, over several groups, with a hole and a closed one.
     */
    @Test
    void tiesAreBrokenUniformly() throws RouteException {
        alwaysDrawTheSame();
        register(200);
        final RouteRequest request = request(8).tokens(new int[8 * BLOCK_SIZE], 8 * BLOCK_SIZE);
        for (Worker worker : workers) {
            load(worker, 0, 50);
        }
        final int[] tied = {3, 17, 63, 64, 150, 151, 199};
        for (int i : tied) {
            load(workers.get(i), 0, -20);
        }
        cached.add(workers.get(80).slot(), 4); // 4 blocks at half credit: 2 less to prefill
        load(workers.get(80), 0, -18);
        active.add(workers.get(81).slot(), 5);
        load(workers.get(81), 0, -15);
        load(workers.get(100), 0, -30);
        workers.get(100).available(false);
        load(workers.get(101), 0, -30);
        request.exclude(workers.get(101));

        final int[] chosen = new int[200];
        for (int i = 0; i < SAMPLES; i++) {
            router.select(request, cached, active, decision);
            chosen[(int) decision.worker().id()]++;
        }

        final int[] expected = IntStream.concat(IntStream.of(tied), IntStream.of(80, 81)).toArray();
        assertEquals(SAMPLES, IntStream.of(expected).map(i -> chosen[i]).sum());
        for (int i : expected) {
            // five standard deviations of a binomial with p = 1/9
            assertEquals(SAMPLES / 9.0, chosen[i], 5 * Math.sqrt(SAMPLES * 8 / 81.0), "w" + i);
        }
    }

    /** Some can be trusted by half: they are drawn, asked, and it is drawn again. */
    @Test
    void tiesOfASetAreBrokenUniformlyAmongThoseWhoCanBeTrusted() throws RouteException {
        alwaysDrawTheSame();
        register(100);
        workers.stream().filter(w -> w.slot() % 4 != 0).forEach(this::trust);
        cached.addSet(new long[] {-1, 0xFF}, 4); // slots 0..71, of which 54 can be trusted
        active.addSet(new long[] {0, 0xF0}, 1); // 68 is not trusted; 69..71 are a block better off
        for (int slot = 69; slot < 72; slot++) {
            load(workers.get(slot), 0, 1);
        }
        final RouteRequest request = request(8);
        final int[] chosen = new int[100];
        for (int i = 0; i < SAMPLES; i++) {
            router.select(request, cached, active, decision);
            chosen[decision.worker().slot()]++;
        }
        for (int slot = 0; slot < 100; slot++) {
            final double expected = slot < 72 && slot % 4 != 0 ? SAMPLES / 54.0 : 0;
            assertEquals(expected, chosen[slot], 5 * Math.sqrt(expected), "slot " + slot);
        }
    }

    @Test
    void ofManyIdleWorkersEachIsAsLikely() throws RouteException {
        alwaysDrawTheSame();
        register(IDLE);
        cached.addSet(new long[] {-1, -1, -1, -1, (1L << (IDLE - 256)) - 1}, 3);
        final RouteRequest request = request(8);
        final int[] chosen = new int[IDLE];
        final int samples = 100 * IDLE;
        for (int i = 0; i < samples; i++) {
            router.select(request, cached, active, decision);
            chosen[(int) decision.worker().id()]++;
        }
        double chiSquare = 0;
        for (int count : chosen) {
            chiSquare += (count - 100) * (count - 100) / 100.0;
        }
        // mean IDLE - 1, standard deviation √(2 (IDLE - 1)): five of them
        assertEquals(IDLE - 1, chiSquare, 5 * Math.sqrt(2 * (IDLE - 1)));
    }

    @Test
    void aDecisionServesSeveralRoutersInTurn() throws RouteException {
        register(3);
        load(workers.get(0), 0, 5);
        load(workers.get(1), 0, 5);
        try (KvRouter other = build(CostModel.LINEAR)) {
            final Worker only = other.addWorker(WorkerSpec.of(9, "other", "http://other"));
            for (int i = 0; i < 3; i++) {
                router.select(request(2), cached, active, decision);
                assertSame(workers.get(2), decision.worker());
                other.select(other.newRequest(), cached, active, decision);
                assertSame(only, decision.worker());
                assertEquals(1, decision.candidateCount());
            }
        }
    }

    @Test
    void theExplanationNamesTheChoiceAndItsReasons() throws RouteException {
        register(3);
        load(workers.get(0), 0, 8);
        workers.get(2).available(false);
        router.select(
                router.newRequest().tokens(new int[80], 80).pin(null), cached, active, decision);
        final String text = decision.explain();
        assertTrue(text.contains(" -> w1/0: cost 10.000"), text);
        assertTrue(text.contains("    w0/0: cost 18.000"), text);
        assertTrue(text.contains("w2/0: not a candidate, UNAVAILABLE"), text);
    }
}
