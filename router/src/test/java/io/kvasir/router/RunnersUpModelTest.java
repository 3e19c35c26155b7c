package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * The cheapest others that bounds find are those that a sort of all costs has, for random fleets:
 * loads, matches in groups of 64 that are listed and that are not, lower tiers, engines that lost
 * events, hot prefixes, any weight.
 */
class RunnersUpModelTest {
    private static final int BLOCK = 4;
    private static final int LISTED = 4;
    private static final double ROUNDING = 1e-6; // costs that differ by less are equal

    private final Decision decision = new Decision();

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
    void theCheapestOthersAreThoseOfASort(long seed) throws RouteException {
        final SplittableRandom random = new SplittableRandom(seed);
        final int workers = 1 + random.nextInt(random.nextBoolean() ? 8 : 300);
        final int[] prompt = random.ints(20L * BLOCK + 1, 0, 50_000).toArray();
        try (KvRouter router = router(random, seed)) {
            for (int i = 0; i < workers; i++) {
                final Worker worker = router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
                router.board().add(worker.slot(), random.nextInt(200), random.nextInt(12), 1);
                if (random.nextInt(3) == 0) {
                    store(router, worker, prompt, random);
                }
            }
            for (int round = 0; round < 20; round++) {
                final RouteRequest request =
                        router.newRequest()
                                .tokens(prompt, 1 + random.nextInt(prompt.length))
                                .overlapWeight(4 * random.nextDouble());
                router.select(request, decision);
                compare(decision.selection(), "seed " + seed + ", round " + round);
            }
        }
    }

    private static KvRouter router(SplittableRandom random, long seed) {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(300)
                .maxBlocks(8_192, 8_192)
                .random(RandomSource.seeded(seed))
                .set(RouterSettings.HOST_CACHE_HIT_WEIGHT, random.nextBoolean() ? 0.75 : 0)
                .set(RouterSettings.HOT_PREFIX_DISCOUNT, random.nextBoolean() ? 0.5 : 0)
                .build();
    }

    private static void store(
            KvRouter router, Worker worker, int[] prompt, SplittableRandom random) {
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK));
        final int device = 1 + random.nextInt(18);
        final long firstName = 1_000L * (worker.slot() + 1);
        stream.onMessage(0, EngineMessages.storedPart(prompt, 0, device, BLOCK, firstName, "GPU"));
        long last = 0;
        if (random.nextBoolean()) {
            last++;
            stream.onMessage(
                    last, EngineMessages.storedPart(prompt, device, 20, BLOCK, firstName, "CPU"));
        }
        EngineMessages.awaitApplied(router, worker, last);
        if (random.nextInt(4) == 0) { // one was lost: what it holds counts in part
            EngineMessages.lose(stream, worker, last + 1, firstName + device - 1);
        }
    }

    private static void compare(Selection selection, String what) {
        final List<Double> sorted =
                IntStream.range(0, selection.workers().slotEnd())
                        .filter(slot -> selection.candidates().contains(slot))
                        .filter(slot -> slot != selection.chosen())
                        .mapToObj(selection::cost)
                        .sorted()
                        .limit(LISTED)
                        .toList();
        final RunnersUp found = new RunnersUp(LISTED);
        found.find(selection);

        assertEquals(sorted.size(), found.count(), what);
        for (int i = 0; i < found.count(); i++) {
            assertEquals(sorted.get(i), found.cost(i), ROUNDING, what + ", " + i);
            assertEquals(selection.cost(found.slot(i)), found.cost(i), what);
        }
        assertTrue(
                IntStream.range(0, found.count()).map(found::slot).distinct().count()
                        == found.count(),
                what);
    }
}
