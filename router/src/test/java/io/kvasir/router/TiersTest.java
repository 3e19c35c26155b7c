package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/** What blocks on hosts, disks and in shared storage count, and where that is seen. */
class TiersTest {
    private static final int BLOCK = 4;
    private static final int BLOCKS = 10;

    /** Ten blocks and a token, so that an engine reuses ten. */
    private static final int[] PROMPT = IntStream.rangeClosed(1, BLOCKS * BLOCK + 1).toArray();

    private final Decision decision = new Decision();
    private KvRouter router;

    @AfterEach
    void close() {
        router.close();
    }

    private void open(double host, double disk, double shared) {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK)
                        .random(RandomSource.seeded(1337))
                        .set(RouterSettings.HOST_CACHE_HIT_WEIGHT, host)
                        .set(RouterSettings.DISK_CACHE_HIT_WEIGHT, disk)
                        .set(RouterSettings.SHARED_CACHE_MULTIPLIER, shared)
                        .set(RouterSettings.DECISION_JOURNAL, 16)
                        .build();
    }

    /** A worker whose events the test gives. */
    private final class Engine {
        final Worker worker;
        private final EngineStream stream;
        private final long firstName;
        private long messages;

        Engine(int id) {
            worker = router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
            stream = router.openDirect(worker, EngineMessages.source(worker.name(), BLOCK));
            firstName = 1_000L * id;
        }

        /** Stores blocks of the prompt in a medium, the first at {@code from}. */
        Engine stored(String medium, int from, int to) {
            final int[] tokens = Arrays.copyOfRange(PROMPT, from * BLOCK, to * BLOCK);
            final Long parent = from == 0 ? null : firstName + from;
            return message(
                    EngineMessages.stored(
                            tokens, to - from, BLOCK, firstName + from, parent, medium));
        }

        /** The same by their names alone. */
        Engine named(String medium, int from, int to) {
            return message(
                    EngineMessages.stored(
                            new int[0], to - from, BLOCK, firstName + from, null, medium));
        }

        Engine removed(String medium, int from, int to) {
            return message(EngineMessages.removed(to - from, firstName + from, medium));
        }

        private Engine message(byte[] batch) {
            stream.onMessage(messages++, batch);
            Eventually.holds(
                    () -> "message " + messages + " of " + worker,
                    () -> router.index().appliedSequence(worker.slot()) == messages - 1);
            return this;
        }

        int candidate() {
            return router.workers().indexOf(worker);
        }
    }

    private void select() throws RouteException {
        select(router.newRequest().tokens(PROMPT, PROMPT.length));
    }

    private void select(RouteRequest request) throws RouteException {
        router.select(request, decision);
    }

    @Test
    void aTierThatIsNearlyFullIsSaidOnceWithTheKnob() {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK)
                        .maxBlocks(10, 100)
                        .set(RouterSettings.DISK_CACHE_HIT_WEIGHT, 0.0)
                        .build();
        new Engine(1).stored("CPU", 0, 8);
        final List<String> lines = new ArrayList<>();
        final FillWatch watch = new FillWatch(router::status, lines::add, lines::add);
        watch.look(0);
        watch.look(1_000_000_000L);
        assertEquals(List.of("host-index-blocks is 80 % full: 8 of 10; raise max-blocks"), lines);
        assertEquals(
                List.of("index-blocks", "host-index-blocks"),
                router.status().usages().stream()
                        .map(RouterStatus.Usage::resource)
                        .filter(resource -> resource.endsWith("index-blocks"))
                        .toList());
    }

    @Test
    void aBlockCountsByTheWeightOfItsTier() throws RouteException {
        open(0.75, 0.25, 0);
        final Engine tiered = new Engine(1).stored("GPU", 0, 4);
        tiered.stored("CPU", 4, 7).stored("DISK", 7, 9);
        final Engine plain = new Engine(2).stored("GPU", 0, 5);

        select();

        // (41 tokens / 4) - (4 + 0.75 * 3 + 0.25 * 2) to prefill, 10 blocks to decode
        assertEquals(10.25 - 6.75 + 10, decision.cost(tiered.candidate()));
        assertEquals(10.25 - 5 + 10, decision.cost(plain.candidate()));
        assertEquals(tiered.worker, decision.worker());
        assertEquals(4, decision.overlapBlocks());
        assertEquals(4, decision.overlapBlocks(StorageTier.DEVICE));
        assertEquals(3, decision.overlapBlocks(StorageTier.HOST));
        assertEquals(2, decision.overlapBlocks(StorageTier.DISK));
        assertEquals(0, decision.overlapBlocks(StorageTier.SHARED));
        assertEquals(9 * BLOCK, decision.predictedCachedTokens());
        assertEquals(4 * BLOCK, decision.believedDeviceTokens());
        assertEquals(3.5 * BLOCK, decision.tokensToCompute());
        assertEquals(4, tiered.worker.indexedBlocks(StorageTier.DEVICE));
        assertEquals(3, tiered.worker.indexedBlocks(StorageTier.HOST));
        assertEquals(2, tiered.worker.indexedBlocks(StorageTier.DISK));
        assertEquals(0, plain.worker.indexedBlocks(StorageTier.HOST));
        assertEquals(2, router.status().tiers().size());
        assertEquals(0, router.status().tiers().getFirst().refused().get("unknown-parent"));
        assertTrue(
                decision.explain().contains("holds 4 blocks + 3 host + 2 disk (EXACT"),
                decision.explain());
    }

    @Test
    void withoutWeightsNoTierIsFollowedAndTheDecisionIsAsWithoutTiers() throws RouteException {
        open(0, 0, 0);
        assertNull(router.lowerTiersOrNull());
        final Engine tiered = new Engine(1).stored("GPU", 0, 4);
        tiered.stored("CPU", 4, 9).named("CPU", 0, 4).removed("DISK", 0, 4);
        final Engine plain = new Engine(2).stored("GPU", 0, 5);

        select();

        assertEquals(plain.worker, decision.worker());
        assertEquals(10.25 - 4 + 10, decision.cost(tiered.candidate()));
        assertEquals(0, decision.overlapBlocks(tiered.candidate(), StorageTier.HOST));
        assertEquals(
                3L,
                tiered.stream.status().drops().values().stream().mapToLong(Long::longValue).sum());
    }

    @Test
    void aTierThatIsOffIsSkippedAndTheOthersCount() throws RouteException {
        open(0, 0.5, 0);
        final Engine engine = new Engine(1).stored("GPU", 0, 2);
        engine.stored("CPU", 2, 4).stored("DISK", 2, 6);
        select();
        assertEquals(0, decision.overlapBlocks(StorageTier.HOST));
        assertEquals(4, decision.overlapBlocks(StorageTier.DISK));
        assertEquals(10.25 - 2 - 0.5 * 4 + 10, decision.cost());
    }

    @Test
    void whatAnEngineOffloadsByNameIsFoundOnceItHasLeftTheDevice() throws RouteException {
        open(0.75, 0.25, 0);
        final Engine engine = new Engine(1).stored("GPU", 0, 8).named("CPU", 0, 8);
        select();
        assertEquals(8, decision.overlapBlocks());
        assertEquals(0, decision.overlapBlocks(StorageTier.HOST));

        engine.removed("GPU", 2, 8);
        select();
        assertEquals(2, decision.overlapBlocks());
        assertEquals(6, decision.overlapBlocks(StorageTier.HOST));

        engine.removed("CPU", 0, 8);
        select();
        assertEquals(0, decision.overlapBlocks(StorageTier.HOST));
    }

    @Test
    void whatIsInSharedStorageCountsForEveryWorker() throws RouteException {
        open(0.75, 0, 0.5);
        final Engine first = new Engine(1).stored("EXTERNAL", 0, 6);
        final Engine other = new Engine(2).stored("GPU", 0, 3);
        final Engine empty = new Engine(3).removed("GPU", 0, 1); // so that it is EXACT

        select();

        assertEquals(6, decision.overlapBlocks(empty.candidate(), StorageTier.SHARED));
        assertEquals(3, decision.overlapBlocks(other.candidate(), StorageTier.SHARED));
        assertEquals(10.25 - 0.5 * 6 + 10, decision.cost(empty.candidate()));
        assertEquals(10.25 - 3 - 0.5 * 3 + 10, decision.cost(other.candidate()));
        assertEquals(other.worker, decision.worker());

        router.removeWorker(first.worker);
        Eventually.holds(
                "the end of what it had announced",
                () -> router.lowerTiersOrNull().heldBlocks(StorageTier.SHARED, 0) == 0);
        select();
        assertEquals(0, decision.overlapBlocks(empty.candidate(), StorageTier.SHARED));
    }

    @Test
    void aRequestsOwnCreditCountsInTheChoiceAndNowhereElse() throws RouteException {
        open(0.75, 0, 0.5);
        final Engine shares = new Engine(1).stored("GPU", 0, 2).stored("EXTERNAL", 0, 6);
        final Engine holds = new Engine(2).stored("GPU", 0, 4);
        select();
        assertEquals(holds.worker, decision.worker());
        assertEquals(10.25 - 4 - 0.5 * 2 + 10, decision.cost());

        select(own(0.25, Double.NaN)); // 0.25 · 2 + 0.5 · 4 against 0.25 · 4 + 0.5 · 2
        assertEquals(shares.worker, decision.worker());
        assertEquals(10.25 - 0.5 - 2 + 10, decision.cost());
        assertTrue(decision.explain().contains("overlap credit 0.25, shared multiplier 0.5"));
        assertEquals(6 * BLOCK, decision.predictedCachedTokens());
        assertEquals(10.25 - 2 - 2, decision.prefillBlocks(shares.candidate()));
        assertEquals(1.5, decision.addedBlocks(shares.candidate()));

        select(own(Double.NaN, 0));
        assertEquals(10.25 - 4 + 10, decision.cost(holds.candidate()));
        assertEquals(10.25 - 2 + 10, decision.cost(shares.candidate()));

        select(own(100, 1)); // no more than all is spared, so that both cost the same
        assertEquals(10, decision.cost(holds.candidate()));
        assertEquals(10, decision.cost(shares.candidate()));

        final RouteRequest booked = own(0, 0).pin(holds.worker);
        try (Lease lease = router.reserve(booked, decision)) {
            assertEquals(10.25 + 10, decision.cost());
            assertEquals(PROMPT.length - 4 * BLOCK - BLOCK, holds.worker.prefillTokens());
            final JournalRecord record = router.journal().newRecord();
            assertTrue(router.journal().read(router.journal().end() - 1, record));
            assertEquals(10.25 + 10, record.cost(0));
            assertEquals(5, record.addedBlocks(0));
            lease.prefillComplete();
        }
    }

    private RouteRequest own(double credit, double shared) {
        final RouteRequest request = router.newRequest().tokens(PROMPT, PROMPT.length);
        if (!Double.isNaN(credit)) {
            request.overlapCredit(credit);
        }
        return Double.isNaN(shared) ? request : request.sharedCacheMultiplier(shared);
    }

    @Test
    void noMoreCountsThanAnEngineReuses() throws RouteException {
        open(0.5, 0.5, 0);
        new Engine(1).stored("GPU", 0, 8).stored("CPU", 8, 10);
        // nine blocks and no token more: the last block is computed again
        select(router.newRequest().tokens(PROMPT, 9 * BLOCK));
        assertEquals(8, decision.overlapBlocks());
        assertEquals(1, decision.overlapBlocks(StorageTier.HOST));
        assertEquals(8 * BLOCK, decision.predictedCachedTokens());
        assertEquals(9 - 8 + 9, decision.cost());
    }

    @Test
    void theBookingCountsWhatIsLoadedInPart() throws RouteException {
        open(0.5, 0.5, 0);
        final Engine engine = new Engine(1).stored("GPU", 0, 2).stored("CPU", 2, 10);
        try (Lease lease =
                router.reserve(router.newRequest().tokens(PROMPT, PROMPT.length), decision)) {
            // 41 - (2 + 0.5 * 8) * 4
            assertEquals(17, engine.worker.prefillTokens());
            lease.prefillComplete();
        }
    }

    @ParameterizedTest
    @CsvSource({"KV, 0", "KV, 0.7", "LEAST_LOADED, 0", "CONSISTENT_HASH, 0"})
    void aRequestsOwnCostAndEveryModeSeeTheTiers(RoutingMode mode, double temperature)
            throws RouteException {
        open(0.75, 0.25, 0);
        final Engine engine = new Engine(1).stored("GPU", 0, 4).stored("CPU", 4, 7);
        final int[] seen = new int[2];
        final WorkerCost cost =
                candidate -> {
                    seen[0] = candidate.overlapBlocks(StorageTier.HOST);
                    seen[1] = candidate.overlapBlocks(StorageTier.DEVICE);
                    return 0;
                };
        select(
                router.newRequest()
                        .tokens(PROMPT, PROMPT.length)
                        .mode(mode)
                        .temperature(temperature)
                        .addCost(cost));
        assertEquals(3, seen[0]);
        assertEquals(4, seen[1]);
        assertEquals(3, decision.overlapBlocks(engine.candidate(), StorageTier.HOST));
        assertEquals(10.25 - 6.25 + 10, decision.cost(engine.candidate()));
    }

    /** Prices every worker of many with tiers by hand; the choice is the least. */
    @Test
    void amongManyWorkersTheCheapestIsChosen() throws RouteException {
        open(0.75, 0.25, 0);
        double least = Double.MAX_VALUE;
        for (int i = 0; i < 200; i++) {
            final int device = i * 7 % 5;
            final int host = i * 13 % 4;
            final int disk = i * 11 % 3;
            final Engine engine = new Engine(i + 1);
            if (device > 0) {
                engine.stored("GPU", 0, device);
            }
            if (host > 0) {
                engine.stored("CPU", device, device + host);
            }
            if (disk > 0) {
                engine.stored("DISK", device + host, device + host + disk);
            }
            least = Math.min(least, 20.25 - device - 0.75 * host - 0.25 * disk);
        }
        select();
        assertEquals(least, decision.cost());
        for (int i = 0; i < 200; i++) {
            assertEquals(i * 7 % 5, decision.overlapBlocks(i));
            assertEquals(i * 13 % 4, decision.overlapBlocks(i, StorageTier.HOST));
            assertEquals(i * 11 % 3, decision.overlapBlocks(i, StorageTier.DISK));
        }
    }

    @Test
    void theJournalHasTheTiers() throws RouteException {
        open(0.75, 0.25, 0.5);
        new Engine(1)
                .stored("GPU", 0, 4)
                .stored("CPU", 4, 7)
                .stored("DISK", 7, 9)
                .stored("EXTERNAL", 0, 10);
        try (Lease lease =
                router.reserve(router.newRequest().tokens(PROMPT, PROMPT.length), decision)) {
            final var record = router.journal().newRecord();
            assertTrue(router.journal().read(0, record));
            assertEquals(4, record.overlapBlocks(0));
            assertEquals(3, record.hostBlocks(0));
            assertEquals(2, record.diskBlocks(0));
            assertEquals(1, record.sharedBlocks(0));
            assertEquals(0, record.dpRank(0));
            assertEquals(10, record.activePrefixBlocks(0) + 10);
            lease.prefillComplete();
        }
    }

    @Test
    void selectingAmongTiersAllocatesNothing() {
        open(0.75, 0.25, 0.5);
        for (int i = 1; i <= 100; i++) {
            new Engine(i).stored("GPU", 0, 1 + i % 4).stored("CPU", 1 + i % 4, 6);
        }
        new Engine(101).stored("EXTERNAL", 0, 8).stored("DISK", 0, 2);
        final RouteRequest request = router.newRequest();
        final Lease lease = new Lease();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        5_000,
                        () -> {
                            try {
                                router.reserve(
                                        request.reset().tokens(PROMPT, PROMPT.length),
                                        decision,
                                        lease);
                                lease.close();
                            } catch (RouteException e) {
                                assertEquals(RouteException.Kind.OVERLOADED, e.kind());
                            }
                        }));
        assertTrue(decision.overlapBlocks(StorageTier.SHARED) > 0, decision::explain);
    }
}
