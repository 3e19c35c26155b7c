package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CapacityRule;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.util.stream.IntStream;

/** Two workers, one of which has filled the index before the other stores anything. */
class FullIndexTest {
    private static final int BLOCK = 16;
    private static final int LIMIT = 256;
    private static final int PROMPT = 32;

    private static final long SYSTEM = 10_000;
    private static final long BEHIND = 20_000;

    @Test
    void aWorkerThatComesLateStoresWhatItNeeds() {
        try (KvRouter router = router(CapacityRule.EVICT)) {
            final Worker first = router.addWorker(WorkerSpec.of(1, "first", "http://a"));
            final Worker late = router.addWorker(WorkerSpec.of(2, "late", "http://b"));
            final EngineStream firstStream = stream(router, first);
            final EngineStream lateStream = stream(router, late);
            fill(router, firstStream);

            storeSystemPrompt(lateStream);
            Eventually.holds("the late worker's blocks", () -> late.indexedBlocks() == PROMPT + 4);
            Eventually.holds("the late worker to be exact", () -> late.state() == IndexState.EXACT);
            assertEquals(IndexState.DEGRADED, first.state());
            assertEquals(LIMIT, router.index().heldBlocks());
            assertTrue(first.sourceStatus().problem().contains("max-held-blocks"));
            assertEquals(PROMPT + 4, router.status().refusals().evictedBlocks());
            assertEquals(1, firstStream.credit(0.5)); // what is held is true

            for (int i = 0; i < LIMIT / PROMPT; i++) {
                firstStream.onMessage(
                        LIMIT / PROMPT + i, EngineMessages.removed(PROMPT, (long) i * PROMPT));
            }
            Eventually.holds(
                    "the end of the first worker's blocks", () -> first.indexedBlocks() == 0);
            Eventually.holds(
                    "the first worker to be exact", () -> first.state() == IndexState.EXACT);
            assertEquals(0, first.sourceStatus().unknownRemovals());
        }
    }

    @Test
    void whatWasRefusedIsKnownAndEndsWithItsRemoval() {
        try (KvRouter router = router(CapacityRule.REFUSE)) {
            final Worker first = router.addWorker(WorkerSpec.of(1, "first", "http://a"));
            final Worker late = router.addWorker(WorkerSpec.of(2, "late", "http://b"));
            final EngineStream lateStream = stream(router, late);
            fill(router, stream(router, first));

            storeSystemPrompt(lateStream);
            Eventually.holds("refusals", () -> late.sourceStatus().missingBlocks() == PROMPT + 4);
            assertEquals(IndexState.DEGRADED, late.state());

            lateStream.onMessage(2, EngineMessages.removed(4, BEHIND));
            lateStream.onMessage(3, EngineMessages.removed(PROMPT, SYSTEM));
            Eventually.holds("the late worker to be exact", () -> late.state() == IndexState.EXACT);
            assertEquals(0, late.sourceStatus().unknownRemovals());
            assertEquals(0, late.sourceStatus().unknownParents());
            assertEquals(1, late.sourceStatus().missingParents());
        }
    }

    private static KvRouter router(CapacityRule rule) {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxBlocks(LIMIT, LIMIT)
                .set(RouterSettings.INDEX_FULL, rule)
                .build();
    }

    private static EngineStream stream(KvRouter router, Worker worker) {
        return router.openDirect(worker, EngineMessages.source("w", BLOCK));
    }

    private static void fill(KvRouter router, EngineStream stream) {
        for (int i = 0; i < LIMIT / PROMPT; i++) {
            stream.onMessage(i, EngineMessages.stored(tokens(i), PROMPT, BLOCK, (long) i * PROMPT));
        }
        Eventually.holds("a full index", () -> router.index().heldBlocks() == LIMIT);
    }

    private static void storeSystemPrompt(EngineStream stream) {
        stream.onMessage(0, EngineMessages.stored(tokens(900), PROMPT, BLOCK, SYSTEM));
        stream.onMessage(1, EngineMessages.stored(tokens(901), 4, BLOCK, BEHIND, SYSTEM + PROMPT));
    }

    private static int[] tokens(int prompt) {
        return IntStream.range(0, PROMPT * BLOCK).map(i -> prompt * 1_000_000 + i).toArray();
    }
}
