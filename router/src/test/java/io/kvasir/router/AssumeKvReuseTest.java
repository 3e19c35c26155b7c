package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whether requests of one prompt share its blocks while they run. */
class AssumeKvReuseTest {
    private static final int BLOCK_SIZE = 16;

    private final Decision decision = new Decision();
    private final int[] prompt = new int[5 * BLOCK_SIZE + 3];
    private KvRouter router;
    private Worker worker;

    private void start(RouterConfig.Builder builder) {
        router = builder.tickedBy(() -> 0).blockSize(BLOCK_SIZE).maxWorkers(4).build();
        worker = router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aSecondRequestOfThePromptUsesNoMoreBlocksOrAsManyAgain(boolean reuse)
            throws RouteException {
        start(KvRouter.builder().set("router-assume-kv-reuse", Boolean.toString(reuse)));
        final Lease first = router.reserve(request(), decision);
        EngineMessages.awaitLoad(router, worker, 1, 5);
        router.select(request(), decision);
        assertEquals(reuse ? 5 : 0, decision.activePrefixBlocks(0));
        assertEquals(reuse ? 5 : 10, decision.decodeBlocks(0));
        final Lease second = router.reserve(request(), decision);
        EngineMessages.awaitLoad(router, worker, 2, reuse ? 5 : 10);
        second.outputTokens(BLOCK_SIZE);
        EngineMessages.awaitLoad(router, worker, 2, reuse ? 6 : 11);
        first.close();
        EngineMessages.awaitLoad(router, worker, 1, 6);
        second.close();
        EngineMessages.awaitLoad(router, worker, 0, 0);
        assertEquals(0, router.status().pathlessBookings(), "there was room for paths");
        assertEquals(0, router.status().loadCorrections());
    }

    @Test
    void aRequestMaySayOtherwise() throws RouteException {
        start(KvRouter.builder());
        final Lease own = router.reserve(request().assumeKvReuse(false), decision);
        EngineMessages.awaitLoad(router, worker, 1, 5);
        router.select(request(), decision);
        assertEquals(0, decision.activePrefixBlocks(0), "nobody shares what is its own");
        final Lease shared = router.reserve(request(), decision);
        final Lease sharing = router.reserve(request(), decision);
        EngineMessages.awaitLoad(router, worker, 3, 10);
        final RouteRequest reset = request().assumeKvReuse(false).reset();
        router.select(reset.tokens(prompt, prompt.length), decision);
        assertEquals(5, decision.activePrefixBlocks(0), "a reset takes the router's own again");
        own.close();
        shared.close();
        EngineMessages.awaitLoad(router, worker, 1, 5);
        sharing.close();
        EngineMessages.awaitLoad(router, worker, 0, 0);
    }

    @Test
    void whatIsPredictedOfAWorkerStaysThePrompt() throws RouteException {
        start(
                KvRouter.builder()
                        .set(RouterSettings.ASSUME_KV_REUSE, false)
                        .routedPrefixes(new PredictedPrefixesConfig(4, 100, 0.5, 1_000_000_000)));
        final Worker other = router.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
        final Lease lease = router.reserve(request().pin(other), decision);
        EngineMessages.awaitLoad(router, other, 1, 5);
        router.select(request().pin(other), decision);
        assertEquals(5, decision.overlapBlocks());
        lease.close();
        EngineMessages.awaitLoad(router, other, 0, 0);
        router.select(request(), decision);
        assertSame(other, decision.worker());
    }

    @Test
    void whereBlocksAreNotTrackedNothingChanges() throws RouteException {
        start(
                KvRouter.builder()
                        .set(RouterSettings.TRACK_ACTIVE_BLOCKS, false)
                        .set(RouterSettings.ASSUME_KV_REUSE, false));
        final Lease lease = router.reserve(request(), decision);
        EngineMessages.awaitLoad(router, worker, 1, 0);
        lease.close();
        EngineMessages.awaitLoad(router, worker, 0, 0);
    }
}
