package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.load.LoadSnapshot;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.SplittableRandom;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * The costs and the choice of requests that say what cached blocks count are those of the formula,
 * computed for each candidate by itself: for random fleets, with lower tiers and without, engines
 * that lost events, hot prefixes, prompts that are being computed, any weight.
 */
class CreditOverrideModelTest {
    private static final int BLOCK = 4;
    private static final int BLOCKS = 20;
    private static final double MOST = 1e100; // beyond it nothing more can be spared
    private static final double ROUNDING = 1e-9;

    private final Decision decision = new Decision();
    private SplittableRandom random;
    private KvRouter router;
    private boolean tiered;
    private double hot;
    private double hostWeight; // of a block; 0 where the tier is not followed
    private double diskWeight;
    private double sharedWeight;

    // of one request; NaN for none
    private double weight;
    private double credit;
    private double shared;
    private Worker computing;
    private int computingBlocks;

    @ParameterizedTest
    @CsvSource({"false, 0", "false, 1.5", "true, 0", "true, 1.5"})
    void costsAndChoiceAreThoseOfTheFormula(boolean lowerTiers, double hotDiscount)
            throws RouteException {
        final long seed = Seeds.next("CreditOverrideModelTest");
        for (int fleet = 0; fleet < 8; fleet++) {
            random = new SplittableRandom(seed + fleet);
            tiered = lowerTiers;
            hot = hotDiscount;
            final int[] prompt = random.ints((long) BLOCKS * BLOCK + 1, 0, 50_000).toArray();
            try (KvRouter opened = open()) {
                router = opened;
                fill(prompt);
                for (int round = 0; round < 40; round++) {
                    compare(prompt, "seed " + seed + ", fleet " + fleet + ", round " + round);
                }
            }
        }
    }

    private KvRouter open() {
        hostWeight = tiered ? pick(0, 0.75, random.nextDouble(), 1) : 0;
        diskWeight = tiered ? pick(0, 0.25, random.nextDouble(), 1) : 0;
        sharedWeight = tiered ? pick(0, 0.5, random.nextDouble(), 1) : 0;
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(300)
                .maxBlocks(8_192, 8_192)
                .random(RandomSource.seeded(random.nextLong()))
                .set(RouterSettings.HOST_CACHE_HIT_WEIGHT, hostWeight)
                .set(RouterSettings.DISK_CACHE_HIT_WEIGHT, diskWeight)
                .set(RouterSettings.SHARED_CACHE_MULTIPLIER, sharedWeight)
                .set(RouterSettings.HOT_PREFIX_DISCOUNT, hot)
                .set(RouterSettings.DECISION_JOURNAL, 16)
                .build();
    }

    private void fill(int[] prompt) {
        final int workers = 1 + random.nextInt(random.nextBoolean() ? 8 : 200);
        final int holders = 1 + random.nextInt(4); // of four
        for (int i = 0; i < workers; i++) {
            final Worker worker = router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
            router.board().add(worker.slot(), random.nextInt(200), random.nextInt(12), 1);
            if (random.nextInt(4) < holders) {
                store(worker, prompt);
            }
            if (random.nextInt(16) == 0) {
                worker.available(false);
            }
        }
    }

    private void store(Worker worker, int[] prompt) {
        final EngineStream stream =
                router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK));
        final long firstName = 1_000L * (worker.slot() + 1);
        final int device = 1 + random.nextInt(18);
        long last = 0;
        stream.onMessage(
                last, EngineMessages.storedPart(prompt, 0, device, BLOCK, firstName, "GPU"));
        if (tiered) {
            final int host = device + random.nextInt(BLOCKS - device + 1);
            final int disk = host + random.nextInt(BLOCKS - host + 1);
            if (host > device) {
                stream.onMessage(
                        ++last,
                        EngineMessages.storedPart(prompt, device, host, BLOCK, firstName, "CPU"));
            }
            if (disk > host) {
                stream.onMessage(
                        ++last,
                        EngineMessages.storedPart(prompt, host, disk, BLOCK, firstName, "DISK"));
            }
            if (worker.slot() == 0) { // shared storage has the names of one
                final int inShared = 1 + random.nextInt(BLOCKS);
                stream.onMessage(
                        ++last,
                        EngineMessages.storedPart(
                                prompt, 0, inShared, BLOCK, firstName, "EXTERNAL"));
            }
        }
        EngineMessages.awaitApplied(router, worker, last);
        if (random.nextInt(4) == 0) { // one was lost: what it holds counts in part
            EngineMessages.lose(stream, worker, last + 1, firstName + device - 1);
        }
    }

    private RouteRequest request(int[] prompt, int tokens) {
        final RouteRequest request = router.newRequest().tokens(prompt, tokens);
        weight = random.nextInt(4) == 0 ? 1e30 : 4 * random.nextDouble();
        request.overlapWeight(weight);
        credit = pick(Double.NaN, 0, 0.5, 1, 3, 1e300);
        shared = pick(Double.NaN, 0, 0.25, sharedWeight, 1);
        if (!Double.isNaN(credit)) {
            request.overlapCredit(credit);
        }
        if (!Double.isNaN(shared)) {
            request.sharedCacheMultiplier(shared);
        }
        computing = null;
        if (random.nextInt(3) == 0) {
            computing = router.workers().get(random.nextInt(router.workers().size()));
            computingBlocks = 1 + random.nextInt(BLOCKS);
            request.assumeComputing(computing, computingBlocks);
        }
        return request;
    }

    private double pick(double... values) {
        return values[random.nextInt(values.length)];
    }

    private void compare(int[] prompt, String what) throws RouteException {
        final int tokens = 1 + random.nextInt(prompt.length);
        final RouteRequest request = request(prompt, tokens);
        try {
            router.reserve(request, decision).close();
        } catch (RouteException e) {
            assertEquals(RouteException.Kind.NO_WORKERS, e.kind(), what);
            return; // none is available
        }
        assertEquals(Math.min(MOST, or(credit, 1)), decision.overlapCredit(), what);
        assertEquals(or(shared, sharedWeight), decision.sharedCacheMultiplier(), what);
        final double least = check(tokens, what);
        journaled(least, what);
    }

    private static double or(double said, double usual) {
        return Double.isNaN(said) ? usual : said;
    }

    /** The least of the costs; each is the one that the decision has, and the chosen one's, too. */
    private double check(int tokens, String what) {
        double least = Double.POSITIVE_INFINITY;
        double chosen = Double.NaN;
        final double[] hotness = IntStream.range(0, BLOCKS).mapToDouble(this::hotness).toArray();
        for (int i = 0; i < decision.candidateCount(); i++) {
            if (decision.exclusion(i) == Decision.Exclusion.NONE) {
                final double cost = cost(i, tokens, hotness);
                final Worker worker = decision.candidate(i);
                assertClose(cost, decision.cost(i), () -> what + ", " + worker);
                assertClose(
                        cost,
                        weight * decision.prefillBlocks(i)
                                + decision.decodeBlocks(i)
                                + decision.addedBlocks(i),
                        () -> what + ", its parts of " + worker);
                least = Math.min(least, cost);
                chosen = worker == decision.worker() ? cost : chosen;
            }
        }
        assertClose(least, chosen, () -> what + ", the chosen one");
        return least;
    }

    private void assertClose(double expected, double actual, Supplier<String> what) {
        final double scale = 1 + weight * 100; // a cost is a difference of such numbers
        assertFalse(Double.isNaN(actual), what);
        assertEquals(expected, actual, ROUNDING * scale, what);
    }

    private double cost(int i, int tokens, double[] hotness) {
        final Worker worker = decision.candidate(i);
        final int reusable = (tokens - 1) / BLOCK;
        final int device = decision.overlapBlocks(i);
        final int host = device + decision.overlapBlocks(i, StorageTier.HOST);
        final int disk = host + decision.overlapBlocks(i, StorageTier.DISK);
        final int all = disk + decision.overlapBlocks(i, StorageTier.SHARED);
        double counted = 0;
        for (int block = 0; block < Math.min(all, reusable); block++) {
            counted +=
                    block < device
                            ? or(credit, 1) * (1 - hotness[block])
                            : block < host
                                    ? hostWeight
                                    : block < disk ? diskWeight : or(shared, sharedWeight);
        }
        final LoadSnapshot loads = decision.selection().candidates().loads();
        final double booked = (double) loads.prefillTokens(worker.slot()) / BLOCK;
        double blocks = booked + (double) tokens / BLOCK;
        if (worker == computing) {
            blocks -= Math.min(Math.min(computingBlocks, decision.requestBlocks()), booked);
        }
        return weight * Math.max(0, blocks - worker.indexCredit() * counted)
                + loads.activeBlocks(worker.slot())
                + decision.requestBlocks()
                - decision.activePrefixBlocks(i);
    }

    /** How much less a block counts because most candidates hold it. */
    private double hotness(int block) {
        int candidates = 0;
        int holders = 0;
        for (int i = 0; i < decision.candidateCount(); i++) {
            if (decision.exclusion(i) == Decision.Exclusion.NONE) {
                candidates++;
                holders += decision.overlapBlocks(i) > block ? 1 : 0;
            }
        }
        return Math.clamp(hot * (2.0 * holders / candidates - 1), 0, 1);
    }

    /** The journal has the same costs, and the least of them all. */
    private void journaled(double least, String what) {
        final JournalRecord record = router.journal().newRecord();
        assertTrue(router.journal().read(router.journal().end() - 1, record), what);
        assertClose(least, record.cost(0) - record.regret(), () -> what);
        for (int i = 0; i < record.listed(); i++) {
            assertClose(
                    record.cost(i),
                    weight * record.prefillBlocks(i)
                            + record.decodeBlocks(i)
                            + record.addedBlocks(i),
                    () -> what + ", journaled");
            assertTrue(i < 2 || record.cost(i - 1) <= record.cost(i), what);
        }
    }
}
