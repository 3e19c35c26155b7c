package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.function.Predicate;

/** Blocks that most workers hold count less. */
class HotPrefixTest {
    private static final int BLOCK_SIZE = 16;

    private final Random random = new Random(Seeds.next("HotPrefixTest"));
    private final Decision decision = new Decision();
    private final List<Worker> workers = new ArrayList<>();
    private OverlapScores cached;
    private OverlapScores active;
    private KvRouter router;

    private void start(int count, double discount, double credit) {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(count)
                        .maxBlocks(1_024, 1_024)
                        .degradedCredit(credit) // what overlaps count without events
                        .set(RouterSettings.HOT_PREFIX_DISCOUNT, discount)
                        .set(RouterSettings.LORA_MODE, LoraMode.PREFERRED)
                        .set(RouterSettings.BUSY_LEASE, Duration.ofMinutes(10))
                        .random(RandomSource.seeded(1337))
                        .build();
        cached = new OverlapScores(count);
        active = new OverlapScores(count);
        for (int i = 0; i < count; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request(int blocks) {
        return router.newRequest()
                .tokens(new int[blocks * BLOCK_SIZE + 1], blocks * BLOCK_SIZE + 1);
    }

    private void select(RouteRequest request) throws RouteException {
        router.select(request, cached, active, decision);
    }

    /** What leading blocks count, block by block; by depth. */
    private double[] naive(int deepest, double strength, Predicate<Worker> mayBeChosen) {
        final int[] holders = new int[deepest]; // of each block
        int candidates = 0;
        for (Worker worker : workers) {
            if (mayBeChosen.test(worker)) {
                candidates++;
                for (int i = 0; i < Math.min(deepest, cached.depth(worker.slot())); i++) {
                    holders[i]++;
                }
            }
        }
        final double[] credited = new double[deepest + 1];
        for (int i = 0; i < deepest; i++) {
            final double share = (double) holders[i] / candidates;
            credited[i + 1] = credited[i] + 1 - Math.min(1, strength * Math.max(0, 2 * share - 1));
        }
        return credited;
    }

    @ParameterizedTest
    @CsvSource({
        "1, 1, 1",
        "2, 1, 1",
        "5, 5, 1",
        "7, 0.5, 0.5",
        "65, 1, 0.5",
        "290, 3, 1",
        "2200, 1, 0.5",
        "2200, 2, 1"
    })
    void itPicksWhatALookAtEveryBlockOfEveryWorkerPicks(int count, double strength, double credit)
            throws RouteException {
        start(count, strength, credit);
        for (Worker worker : workers) {
            worker.adapters(random.nextBoolean() ? Set.of("sql") : Set.of());
        }
        for (int round = count < 1_000 ? 100 : 25; round > 0; round--) {
            match(64);
            for (int i = 0; i < count / 10 + 1; i++) {
                final Worker worker = workers.get(random.nextInt(count));
                if (worker.slot() != 0) {
                    worker.available(random.nextInt(3) > 0);
                }
                router.board()
                        .add(
                                workers.get(random.nextInt(count)).slot(),
                                16L * random.nextInt(40),
                                random.nextInt(40),
                                1);
            }
            final RouteRequest request = request(64);
            if (random.nextInt(4) == 0) {
                request.temperature(0.001);
            }
            final boolean forAdapter = random.nextBoolean();
            select(forAdapter ? request.lora("sql") : request);
            final Predicate<Worker> serves =
                    worker -> worker.available() && worker.adapters().contains("sql");
            final Predicate<Worker> mayBeChosen =
                    forAdapter && workers.stream().anyMatch(serves) ? serves : Worker::available;
            final double[] byDepth = naive(64, strength, mayBeChosen);
            double least = Double.POSITIVE_INFINITY;
            for (int i = 0; i < count; i++) {
                final Worker worker = workers.get(i);
                if (mayBeChosen.test(worker)) {
                    final double cost =
                            (worker.prefillTokens() + 64 * BLOCK_SIZE + 1.0) / BLOCK_SIZE
                                    - credit * byDepth[cached.depth(worker.slot())]
                                    + worker.activeBlocks()
                                    + 64;
                    assertEquals(cost, decision.cost(i), 1e-6);
                    least = Math.min(least, cost);
                }
            }
            if (!(decision.temperature() > 0)) {
                assertEquals(least, decision.cost(), 1e-6);
            }
        }
    }

    /** Most of the slots hold what many do, some hold what no other does. */
    private void match(int deepest) {
        cached.clear();
        final int common = 1 + random.nextInt(deepest - 1);
        final double share = random.nextDouble();
        final long[] bits = new long[(cached.maxSlots() + 63) / 64];
        final List<Integer> others = new ArrayList<>();
        for (Worker worker : workers) {
            if (random.nextDouble() < share) {
                bits[worker.slot() / 64] |= 1L << worker.slot();
            } else if (random.nextInt(3) == 0) {
                others.add(worker.slot());
            }
        }
        if (random.nextBoolean()) {
            cached.addSet(bits, common);
        } else {
            for (Worker worker : workers) {
                if ((bits[worker.slot() / 64] >>> worker.slot() & 1) != 0) {
                    cached.add(worker.slot(), Math.min(deepest, common + random.nextInt(3)));
                }
            }
        }
        for (int slot : others) {
            cached.add(slot, 1 + random.nextInt(deepest));
        }
    }

    @ParameterizedTest
    @CsvSource({"0, false", "1, false", "5, true"})
    void whatThreeOfFiveHoldKeepsNothingFromTheOtherTwo(double discount, boolean spreads)
            throws RouteException {
        start(5, discount, 1);
        for (int i = 0; i < 3; i++) {
            cached.add(workers.get(i).slot(), 60);
            router.board().add(workers.get(i).slot(), 0, 10, 1);
        }
        select(request(64));
        assertEquals(spreads, decision.worker().slot() > 2, decision::toString);
    }

    @ParameterizedTest
    @EnumSource(
            value = LoraMode.class,
            names = {"PREFERRED", "REQUIRED"})
    void theShareIsOfThoseThatHaveTheAdapter(LoraMode mode) throws RouteException {
        start(10, 5, 1);
        router.change(router.settings().with(RouterSettings.LORA_MODE, mode));
        for (int i = 0; i < 4; i++) {
            workers.get(i).adapters(Set.of("sql"));
        }
        threeHoldAndAreLoaded();
        select(request(64).lora("sql"));
        assertEquals(3, decision.worker().slot(), decision::toString);
        assertEquals(60, decision.addedBlocks(0));
    }

    @Test
    void theShareIsOfThoseThatAreInReach() throws RouteException {
        start(10, 5, 1);
        threeHoldAndAreLoaded();
        final WorkerCost near =
                candidate -> candidate.worker().slot() < 4 ? 0 : Double.POSITIVE_INFINITY;
        select(request(64).addCost(near));
        assertEquals(3, decision.worker().slot(), decision::toString);
        assertEquals(60, decision.addedBlocks(0));
    }

    @Test
    void theShareIsOfThoseThatAreNotFull() throws RouteException {
        start(10, 5, 1);
        threeHoldAndAreLoaded();
        for (int i = 4; i < 10; i++) {
            workers.get(i).full("status 429");
        }
        select(request(64));
        assertEquals(3, decision.worker().slot(), decision::toString);
        assertEquals(60, decision.addedBlocks(0));
    }

    private void threeHoldAndAreLoaded() {
        for (int i = 0; i < 3; i++) {
            cached.add(i, 60);
            router.board().add(i, 0, 10, 1);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4, 10})
    void whatHalfOfThemHoldCountsInFull(int count) throws RouteException {
        start(count, 100, 1);
        for (int i = 0; i < count / 2; i++) {
            cached.add(workers.get(i).slot(), 60);
            router.board().add(workers.get(i).slot(), 0, 59, 1);
        }
        select(request(64));
        assertTrue(decision.worker().slot() < count / 2, decision::toString);
        assertEquals(0, decision.addedBlocks(0));
    }

    @Test
    void whatAllHoldAndOneHoldsMoreOfLeadsToThatOne() throws RouteException {
        start(10, 1, 1);
        for (Worker worker : workers) {
            cached.add(worker.slot(), worker.slot() == 7 ? 50 : 40);
        }
        select(request(64));
        assertSame(workers.get(7), decision.worker());
        assertEquals(40, decision.addedBlocks(7), "nothing of what all hold counts");
    }

    @Test
    void aLongPrefixIsExactToTwoSixtyFourthsOfIt() throws RouteException {
        start(10, 1, 1);
        for (int i = 0; i < 9; i++) {
            cached.add(workers.get(i).slot(), 1_000 + i);
        }
        select(request(2_000));
        final double exact = 1_000 - naive(1_000, 1, Worker::available)[1_000];
        assertEquals(exact, decision.addedBlocks(0), 2 * 1_008 / 64.0);
        assertTrue(decision.addedBlocks(0) <= exact, "never more than it is");
    }

    @Test
    void choosingByItAllocatesNothing() {
        start(200, 1, 0.5);
        final RouteRequest request = request(64);
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        2_000,
                        () -> {
                            cached.clear();
                            for (int i = 0; i < 150; i++) {
                                cached.add(i, 1 + i % 60);
                            }
                            try {
                                select(request);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }
}
