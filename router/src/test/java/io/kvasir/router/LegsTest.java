package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** What the two legs of a split request need of a router: taints, and loads of one kind. */
class LegsTest {
    private static final int BLOCK_SIZE = 16;

    private final long seed = Seeds.next("LegsTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private KvRouter router = start(true, false);

    private KvRouter start(boolean tracksBlocks, boolean approximate) {
        return start(tracksBlocks, approximate, true);
    }

    private KvRouter start(boolean tracksBlocks, boolean approximate, boolean tracksPrefill) {
        return KvRouter.builder()
                .tickedBy(() -> 0)
                .blockSize(BLOCK_SIZE)
                .maxWorkers(200)
                .maxBlocks(4096, 8192)
                .set(RouterSettings.TRACK_ACTIVE_BLOCKS, tracksBlocks)
                .set(RouterSettings.APPROXIMATE, approximate)
                .set(RouterSettings.TRACK_PREFILL_TOKENS, tracksPrefill)
                .random(RandomSource.seeded(seed))
                .build();
    }

    private void restart(boolean tracksBlocks, boolean approximate) {
        router.close();
        router = start(tracksBlocks, approximate);
    }

    @AfterEach
    void close() {
        router.close();
    }

    private Worker worker(int id, long taints) {
        return router.addWorker(new WorkerSpec(id, "w" + id, "http://w" + id, 0, null, taints));
    }

    private int[] prompt(int blocks) {
        return random.ints((long) blocks * BLOCK_SIZE, 0, 50_000).toArray();
    }

    private RouteRequest request(int[] prompt) {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private Lease reserve(RouteRequest request) throws RouteException {
        final Lease lease = router.reserve(request, decision);
        Eventually.holds("an empty ring", () -> router.bookingPipeline().backlog() == 0);
        return lease;
    }

    private RouteException refused(RouteRequest request) {
        return assertThrows(RouteException.class, () -> router.select(request, decision));
    }

    @Test
    void noRequestGoesToAWorkerWithATaintThatItExcludes() throws RouteException {
        final long[] taints = {0, 1, 2, 3, 1L << 63};
        for (int id = 0; id < 150; id++) {
            worker(id, taints[id % taints.length]);
        }
        for (long excluded : new long[] {0, 1, 2, 3, 1L << 63, -1, 1L << 40}) {
            for (RoutingMode mode : List.of(RoutingMode.KV, RoutingMode.RANDOM)) {
                final RouteRequest request = request(prompt(4)).mode(mode).excludeTainted(excluded);
                for (int i = 0; i < 50; i++) {
                    router.select(request, decision);
                    assertEquals(0, decision.worker().taints() & excluded);
                }
            }
            for (int i = 0; i < 150; i++) {
                assertEquals(
                        (taints[i % taints.length] & excluded) == 0
                                ? Decision.Exclusion.NONE
                                : Decision.Exclusion.TAINTED,
                        decision.exclusion(i));
            }
        }
    }

    @Test
    void aSlotThatChangesItsTenantHasTheTaintsOfTheNewOne() throws RouteException {
        for (int round = 0; round < 1_000; round++) {
            final Worker tainted = worker(2 * round, 1);
            assertEquals(
                    RouteException.Kind.NO_WORKERS,
                    refused(request(prompt(1)).excludeTainted(1)).kind());
            router.removeWorker(tainted);
            final Worker clean = worker(2 * round + 1, 0);
            router.select(request(prompt(1)).excludeTainted(1), decision);
            assertSame(clean, decision.worker());
            router.removeWorker(clean);
        }
    }

    @Test
    void aRequestThatTaintsLeaveNoWorkerSaysSo() {
        final Worker first = worker(1, 1);
        final Worker second = worker(2, 0);
        second.available(false);
        final RouteException none = refused(request(prompt(1)).excludeTainted(1));
        assertEquals(RouteException.Kind.NO_WORKERS, none.kind());
        assertTrue(none.getMessage().contains("1 are excluded by their taints"), none.getMessage());

        second.available(true);
        final RouteException failed = refused(request(prompt(1)).excludeTainted(1).exclude(second));
        assertEquals(RouteException.Kind.ALL_EXCLUDED, failed.kind());
        assertTrue(failed.getMessage().contains("1 failed this request"), failed.getMessage());

        assertEquals(
                RouteException.Kind.PINNED_UNAVAILABLE,
                refused(request(prompt(1)).excludeTainted(1).pin(first)).kind());
        assertEquals(
                RouteException.Kind.PINNED_UNAVAILABLE,
                refused(request(prompt(1)).excludeTainted(1).pin(first).mode(RoutingMode.DIRECT))
                        .kind());
    }

    @Test
    void aResetRequestExcludesNothingAndIsPrefilled() throws RouteException {
        final Worker worker = worker(1, 1);
        final int[] prompt = prompt(3);
        final RouteRequest request =
                request(prompt).excludeTainted(1).trackPrefillTokens(false).reset();
        try (Lease lease = reserve(request.tokens(prompt, prompt.length))) {
            assertSame(worker, lease.worker());
            assertEquals(48, worker.prefillTokens());
        }
    }

    @Test
    void aPromptThatIsComputedElsewhereIsBlocksInUseAndNoWorkToPrefill() throws RouteException {
        final Worker worker = worker(1, 0);
        final int[] prompt = prompt(5);
        try (Lease lease = reserve(request(prompt).trackPrefillTokens(false))) {
            assertEquals(0, worker.prefillTokens());
            Eventually.holds("blocks in use", () -> worker.activeBlocks() == 5);
            assertEquals(1, worker.activeRequests());
            assertEquals(0, decision.prefillBlocks(0));
            assertEquals(5, decision.decodeBlocks(0));
            assertEquals(0, decision.predictedCachedTokens());
            lease.outputTokens(BLOCK_SIZE);
            Eventually.holds("a block of output", () -> worker.activeBlocks() == 6);
            lease.prefillComplete();
            assertEquals(0, worker.prefillTokens());
        }
        Eventually.holds("no load", () -> worker.activeBlocks() == 0);
        assertEquals(0, worker.prefillTokens());
    }

    @Test
    void aPromptThatIsComputedElsewhereGoesByLoadWhateverIsCached() throws RouteException {
        restart(true, true);
        final Worker holder = worker(1, 0);
        final int[] prompt = prompt(8);
        reserve(request(prompt)).close();
        Eventually.holds("no load", () -> holder.activeRequests() == 0);
        router.select(request(prompt), decision);
        assertEquals(8, decision.overlapBlocks());
        final Worker idle = worker(2, 0);
        try (Lease load = reserve(request(prompt(1)).pin(holder))) {
            assertSame(holder, load.worker());
            router.select(request(prompt), decision);
            assertSame(holder, decision.worker(), "what it holds outweighs its load");
            router.select(request(prompt).trackPrefillTokens(false), decision);
            assertSame(idle, decision.worker());
            router.select(request(prompt).trackPrefillTokens(false).overlapWeight(0), decision);
            assertSame(idle, decision.worker());
        }
    }

    @Test
    void aRouterThatTracksNoPrefillGoesByBlocksInUseAndStillSaysWhatIsCached()
            throws RouteException {
        router.close();
        router = start(true, true, false);
        final Worker holder = worker(1, 0);
        final int[] prompt = prompt(8);
        reserve(request(prompt)).close();
        Eventually.holds("no load", () -> holder.activeRequests() == 0);
        final Worker idle = worker(2, 0);
        try (Lease load = reserve(request(prompt(1)).pin(holder))) {
            assertSame(holder, load.worker());
            assertEquals(0, holder.prefillTokens());
            Eventually.holds("a block in use", () -> holder.activeBlocks() == 1);
            router.select(request(prompt).overlapWeight(100), decision);
            assertSame(idle, decision.worker());
            assertEquals(0, decision.overlapWeight());
            router.select(request(prompt).pin(holder), decision);
            assertEquals(8, decision.overlapBlocks());
            assertEquals(7 * BLOCK_SIZE, decision.predictedCachedTokens());
            load.prefillComplete();
        }
        Eventually.holds("no load", () -> holder.activeBlocks() == 0);
        assertEquals(0, holder.prefillTokens());
    }

    @Test
    void aRequestCountsItsPromptAlsoInARouterThatTracksNone() throws RouteException {
        router.close();
        router = start(true, false, false);
        final Worker first = worker(1, 0);
        final Worker second = worker(2, 0);
        final Lease counted = reserve(request(prompt(2)).pin(first).trackPrefillTokens(true));
        final Lease usual = reserve(request(prompt(3)).pin(second));
        Eventually.holds("blocks in use", () -> second.activeBlocks() == 3);
        assertEquals(2 * BLOCK_SIZE, first.prefillTokens());
        assertEquals(0, second.prefillTokens());
        router.select(request(prompt(1)), decision);
        assertSame(first, decision.worker(), "fewer blocks in use");
        assertEquals(0, decision.overlapWeight());
        router.select(request(prompt(1)).trackPrefillTokens(true).overlapWeight(2), decision);
        assertSame(second, decision.worker(), "no work to prefill");
        assertEquals(2, decision.overlapWeight());
        counted.prefillComplete();
        Eventually.holds("a computed prompt", () -> first.prefillTokens() == 0);
        counted.close();
        usual.close();
    }

    @Test
    void withoutWeightADecodeLegDoesNotSeeWorkToPrefill() throws RouteException {
        final Worker first = worker(1, 0);
        final Worker second = worker(2, 0);
        final int[] prompt = prompt(2);
        final List<Lease> leases = new ArrayList<>();
        leases.add(reserve(request(prompt(2)).pin(first).trackPrefillTokens(false)));
        leases.add(reserve(request(prompt(1)).pin(second))); // fewer blocks, more to prefill
        router.select(request(prompt).trackPrefillTokens(false).overlapWeight(0), decision);
        assertSame(second, decision.worker());
        router.select(request(prompt).trackPrefillTokens(false).overlapWeight(3), decision);
        assertSame(first, decision.worker());
        leases.forEach(Lease::close);
    }

    @Test
    void whereBlocksAreNotTrackedABookingIsWorkToPrefillAlone() throws RouteException {
        restart(false, false);
        final Worker worker = worker(1, 0);
        final int[] prompt = prompt(5);
        final Lease first = reserve(request(prompt));
        final Lease second = reserve(request(prompt));
        assertEquals(0, decision.decodeBlocks(0));
        assertEquals(10, decision.prefillBlocks(0));
        assertEquals(160, worker.prefillTokens());
        assertEquals(0, worker.activeBlocks());
        assertEquals(2, worker.activeRequests());
        first.outputTokens(1_000);
        first.prefillComplete();
        Eventually.holds("one prompt to prefill", () -> worker.prefillTokens() == 80);
        assertEquals(0, worker.activeBlocks());
        first.close();
        second.close();
        Eventually.holds("no load", () -> worker.activeRequests() == 0);
        assertEquals(0, worker.prefillTokens());
        assertEquals(0, worker.activeBlocks());
        assertEquals(0, router.status().pathlessBookings());
        assertEquals(0, router.activeRequests().matchActive(new long[] {1}, 1, scores()));
    }

    private OverlapScores scores() {
        return new OverlapScores(router.activeRequests().config().maxWorkerSlots());
    }

    @Test
    void whereBlocksAreNotTrackedTheLeastToPrefillIsChosen() throws RouteException {
        restart(false, false);
        final Worker first = worker(1, 0);
        worker(2, 0);
        final int[] shared = prompt(4);
        final Lease running = reserve(request(shared).pin(first));
        running.prefillComplete();
        Eventually.holds("nothing to prefill", () -> first.prefillTokens() == 0);
        final Lease other = reserve(request(shared).exclude(first));
        assertNotSame(first, other.worker());
        for (int i = 0; i < 20; i++) {
            router.select(request(shared), decision);
            assertSame(first, decision.worker(), "its running request is no load");
        }
        running.close();
        other.close();
    }

    @Test
    void whereBlocksAreNotTrackedPromptsAreStillPredicted() throws RouteException {
        restart(false, true);
        final Worker worker = worker(1, 0);
        worker(2, 0);
        final int[] prompt = prompt(6);
        reserve(request(prompt).pin(worker)).close();
        Eventually.holds(
                "6 predicted blocks and no load",
                () -> router.routedPrefixes().blocks() == 6 && worker.activeRequests() == 0);
        router.select(request(prompt), decision);
        assertSame(worker, decision.worker());
        assertEquals(6, decision.overlapBlocks());
        assertEquals(0, worker.activeBlocks());
    }

    @Test
    void whereBlocksAreNotTrackedNothingIsLeftAfterManyBookings() throws RouteException {
        restart(false, false);
        final List<Worker> workers = List.of(worker(1, 0), worker(2, 0), worker(3, 0));
        final List<Lease> open = new ArrayList<>();
        for (int i = 0; i < 2_000; i++) {
            final Lease lease = router.reserve(request(prompt(1 + i % 7)), decision);
            assertNotEquals(0, lease.requestId());
            open.add(lease);
            if (open.size() > 100) {
                final Lease ended = open.remove(random.nextInt(open.size()));
                if (random.nextBoolean()) {
                    ended.prefillComplete();
                }
                ended.close();
            }
        }
        open.forEach(Lease::close);
        for (Worker worker : workers) {
            Eventually.holds(
                    "no load", () -> worker.activeRequests() == 0 && worker.prefillTokens() == 0);
            assertEquals(0, worker.activeBlocks());
        }
    }
}
