package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.journal.DecisionJournal;
import io.kvasir.router.journal.JournalFile;
import io.kvasir.router.journal.JournalRecord;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** What a router keeps of its decisions. */
class JournaledDecisionsTest {
    private static final int BLOCK_SIZE = 16;

    @TempDir Path folder;

    private final List<Lease> leases = new ArrayList<>(); // a forgotten one would be released
    private final Decision decision = new Decision();
    private final int[] prompt = new int[4 * BLOCK_SIZE + 3];
    private long nowNs = 1;
    private KvRouter router;
    private JournalRecord record;

    private void start(int workers, RouterConfig.Builder builder) {
        router =
                builder.tickedBy(() -> nowNs)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(300)
                        .maxBlocks(1_024, 4_096)
                        .maxActiveRequests(64)
                        .build();
        for (int i = 0; i < workers; i++) {
            router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
        }
        record = router.journal() == null ? null : router.journal().newRecord();
    }

    @AfterEach
    void close() {
        leases.forEach(Lease::close);
        router.close();
    }

    private Lease reserve(String id) throws RouteException {
        final Lease lease =
                router.reserve(router.newRequest().tokens(prompt, prompt.length).id(id), decision);
        leases.add(lease);
        return lease;
    }

    @Test
    void whatASessionHasDecidedIsSaid() throws RouteException {
        start(3, KvRouter.builder().set(RouterSettings.SESSION_TTL, Duration.ofMinutes(1)));
        for (int i = 0; i < 2; i++) {
            final RouteRequest request = router.newRequest().tokens(prompt, prompt.length);
            leases.add(router.reserve(request.session("s"), decision));
            assertTrue(router.journal().read(i, record));
            assertEquals(i == 1, record.isBySession());
            assertEquals(decision.bySession(), record.isBySession());
        }
    }

    @Test
    void whatADecisionKnewIsKeptAndWhatCameOfIt() throws RouteException {
        start(3, KvRouter.builder());
        final Worker holder = router.workers().get(1);
        router.openDirect(holder, EngineMessages.source("w1", BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(prompt, 3, BLOCK_SIZE, 10));
        Eventually.holds("events", () -> holder.state() == IndexState.EXACT);
        Eventually.holds("blocks", () -> holder.indexedBlocks() == 3);
        final Lease lease = reserve("first");
        assertEquals(0, lease.journalNumber());
        nowNs += 5_000;
        lease.prefillComplete();
        lease.engineCachedTokens(47);
        assertEquals(0, router.journal().find("first", router.journal().end(), record));
        assertEquals("first", record.id());
        assertEquals(prompt.length, record.tokens());
        assertEquals(4, record.blocks());
        assertEquals("kv", record.mode());
        assertEquals(1, record.weight());
        assertEquals(3, record.candidates());
        assertEquals(3, record.workers());
        assertEquals("", record.refusal());
        assertEquals(3, record.listed());
        assertEquals(0, record.regret());
        assertEquals("w1", record.worker(0));
        assertEquals(3, record.overlapBlocks(0));
        assertEquals(IndexState.EXACT, record.indexStateOrNull(0));
        assertEquals(19 / 16.0, record.prefillBlocks(0));
        assertEquals(4, record.decodeBlocks(0));
        assertEquals(decision.cost(), record.cost(0));
        assertEquals(0, record.eventSequence(0));
        assertEquals(67 / 16.0 + 4, record.cost(1));
        assertEquals(record.cost(1), record.cost(2));
        assertEquals(3 * BLOCK_SIZE, record.predictedCachedTokens());
        assertEquals(47, record.engineCachedTokens());
        assertEquals(5_000, record.firstTokenNs());
    }

    @Test
    void theCheapestOfManyAreListedAndWhatWasDearerIsRegretted() throws RouteException {
        start(
                200,
                KvRouter.builder()
                        .mode(RoutingMode.ROUND_ROBIN)
                        .set(RouterSettings.DECISION_JOURNAL_CANDIDATES, 3));
        final Worker first = router.workers().getFirst();
        router.board().add(first.slot(), 160, 2, 1);
        reserve(null);
        assertEquals("w0", decision.worker().name());
        assertTrue(router.journal().read(0, record));
        assertEquals("", record.id());
        assertEquals(3, record.listed());
        assertEquals(200, record.candidates());
        assertEquals("w0", record.worker(0));
        assertEquals(12, record.regret());
        assertEquals(record.cost(0) - 12, record.cost(1));
        assertEquals(1, record.activeRequests(0));
    }

    @Test
    void oneDecisionServesRoutersWhoseJournalsListMoreOrFewer() throws RouteException {
        for (int listed : new int[] {3, 8, 1, 64, 2}) {
            start(
                    100,
                    KvRouter.builder()
                            .set(RouterSettings.DECISION_JOURNAL, 2)
                            .set(RouterSettings.DECISION_JOURNAL_CANDIDATES, listed));
            for (int n = 0; n < 5; n++) {
                reserve("r" + n);
                assertTrue(router.journal().read(n, record));
                assertEquals(listed, record.listed());
                assertEquals("r" + n, record.id());
            }
            assertTrue(router.journal().read(3, record));
            leases.forEach(Lease::close);
            leases.clear();
            router.close();
        }
    }

    @Test
    void aTemperatureAndAnOwnCostAreKeptToo() throws RouteException {
        start(100, KvRouter.builder().temperature(0.5));
        final Lease lease =
                router.reserve(
                        router.newRequest()
                                .tokens(prompt, prompt.length)
                                .addCost(candidate -> candidate.worker().id() % 7),
                        decision);
        leases.add(lease);
        assertTrue(router.journal().read(0, record));
        assertEquals(0.5, record.temperature());
        assertEquals(8, record.listed());
        assertEquals(decision.worker().name(), record.worker(0));
        assertEquals((double) (decision.worker().id() % 7), record.addedBlocks(0));
        assertEquals((double) (decision.worker().id() % 7), record.regret());
        for (int i = 1; i < 8; i++) {
            assertEquals(0, record.addedBlocks(i), record.worker(i));
        }
    }

    @Test
    void requestsWithoutAWorkerAreKeptWithTheReason() throws RouteException {
        start(1, KvRouter.builder());
        router.workers().getFirst().available(false);
        assertThrows(RouteException.class, () -> reserve("none"));
        assertEquals(0, router.journal().find("none", 1, record));
        assertEquals("NO_WORKERS", record.refusal());
        assertEquals(0, record.candidates());
        assertEquals(1, record.workers());
        assertEquals(0, record.listed());
        assertTrue(Double.isNaN(record.regret()));
        router.workers().getFirst().available(true);
        assertThrows(
                RouteException.class,
                () ->
                        router.select(
                                router.newRequest()
                                        .tokens(prompt, prompt.length)
                                        .mode(RoutingMode.DIRECT),
                                decision));
        assertEquals(1, router.journal().end(), "what is only asked is not kept");
        router.reserve("by id", router.newRequest().tokens(prompt, prompt.length), decision);
        assertEquals(1, router.journal().find("by id", 2, record));
        assertTrue(router.free("by id"));
    }

    @Test
    void withoutAJournalNothingIsKept() throws RouteException {
        start(1, KvRouter.builder().set(RouterSettings.DECISION_JOURNAL, 0));
        assertNull(router.journal());
        final Lease lease = reserve("first");
        assertEquals(DecisionJournal.NONE, lease.journalNumber());
        lease.prefillComplete();
        lease.engineCachedTokens(3);
    }

    @Test
    void aFileHasTheDecisionsOfARouterThatHasEnded() throws Exception {
        start(2, KvRouter.builder().set(RouterSettings.DECISION_JOURNAL_DIR, folder));
        reserve("kept");
        assertThrows(
                IllegalStateException.class,
                () -> KvRouter.builder().set(RouterSettings.DECISION_JOURNAL_DIR, folder).build());
        router.close();
        assertFalse(router.journal().read(0, record));
        try (DecisionJournal file = JournalFile.open(folder)) {
            assertEquals(0, file.find("kept", file.end(), record));
            assertNotEquals(0, record.timeMs());
            assertNotEquals(0, record.configVersion());
        }
    }

    @Test
    void equalSettingsHaveOneNumberAndOthersAnother() throws RouteException {
        final List<Long> versions = new ArrayList<>();
        for (double weight : new double[] {1, 1, 2}) {
            start(1, KvRouter.builder().overlapWeight(weight));
            final Lease lease = reserve("x");
            router.journal().read(0, record);
            versions.add(record.configVersion());
            lease.close();
            router.close();
        }
        assertEquals(versions.get(0), versions.get(1));
        assertNotEquals(versions.get(0), versions.get(2));
    }
}
