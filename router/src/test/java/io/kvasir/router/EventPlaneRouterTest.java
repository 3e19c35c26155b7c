package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A router whose workers' events come from an event plane. */
class EventPlaneRouterTest {
    private static final int BLOCK = 4;
    private static final int[] PROMPT = {1, 2, 3, 4, 5, 6, 7, 8, 9};

    private EventPlane plane;
    private boolean ended;
    private KvRouter router;

    private void start() {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK)
                        .maxWorkers(2)
                        .maxBlocks(1_024, 1_024)
                        .eventPlane(
                                made -> {
                                    plane = made;
                                    return () -> ended = true;
                                })
                        .build();
    }

    @AfterEach
    void close() {
        if (router != null) {
            router.close();
        }
    }

    private Worker add(String name, long planeId, int planeRank) {
        return router.addWorker(
                WorkerSpec.of(1, name, "http://w")
                        .onEventPlane(new EventPlaneWorker(planeId, planeRank)));
    }

    private void stored(long worker, int rank, long eventId) {
        final long[] local = new long[2];
        BlockHasher.localHashes(PROMPT, 0, PROMPT.length, BLOCK, BlockHasher.BASE_SEED, local);
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {10 * eventId, 10 * eventId + 1}, local, 2);
        final byte[] bytes = RouterEventWriter.json(worker, rank, eventId, batch, batch.first());
        plane.onMessage(bytes, 0, bytes.length);
    }

    @Test
    void whatAWorkerAnnouncesOnThePlaneIsMatchedAsItsOwn() throws Exception {
        start();
        final Worker one = add("one", -7, 3); // 64 unsigned bits
        final Worker two = add("two", 8, 0);
        stored(-7, 3, 1);
        Eventually.holds("indexed", () -> one.state() == IndexState.EXACT);
        assertEquals(2, one.indexedBlocks());
        final Decision decision = new Decision();
        router.select(router.newRequest().tokens(PROMPT, PROMPT.length), decision);
        assertEquals(one, decision.worker());
        assertEquals(2, decision.overlapBlocks());
        assertEquals(0, two.indexedBlocks());
        assertEquals(
                "worker 18446744073709551609/3 of the event plane", one.sourceStatus().endpoint());
        assertEquals(1, router.status().planeOrNull().applied());
        assertEquals(2, router.status().planeOrNull().streams());
    }

    @Test
    void aRemovedWorkerIsUnknownToThePlaneAndItsNameThereIsFreeAgain() throws Exception {
        start();
        final Worker first = add("one", 7, 0);
        router.removeWorker(first);
        stored(7, 0, 1);
        assertEquals(1, router.status().planeOrNull().unknownEvents());
        final Worker next = add("one", 7, 0);
        stored(7, 0, 1);
        Eventually.holds("indexed", () -> next.indexedBlocks() == 2);
    }

    @Test
    void twoWorkersCannotBeTheSameOneOnThePlane() {
        start();
        add("one", 7, 0);
        for (int i = 0; i < 5; i++) { // whose slot is given back each time
            assertThrows(IllegalArgumentException.class, () -> add("two", 7, 0));
        }
        assertEquals(1, router.workers().size());
        add("two", 7, 1);
        assertEquals(2, router.workers().size());
    }

    @Test
    void aRouterThatIsOnNoPlaneRefusesItsWorkers() {
        router = KvRouter.builder().blockSize(BLOCK).maxBlocks(1_024, 1_024).build();
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> add("one", 7, 0));
        assertTrue(refused.getMessage().contains("event-plane"), refused.getMessage());
        assertNull(router.eventPlane());
        assertNull(router.status().planeOrNull());
    }

    @Test
    void anotherSeedThanThePublicOneIsRefused() {
        final RouterConfig.Builder builder =
                KvRouter.builder().set(RouterSettings.HASH_SEED, 5L).eventPlane(_ -> () -> {});
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, builder::build);
        assertTrue(refused.getMessage().contains("hash-seed=1337"), refused.getMessage());
    }

    @Test
    void aWorkerHasEventsOfItsOwnOrOnThePlane() {
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        new WorkerSpec(
                                1,
                                "w",
                                "http://w",
                                0,
                                SourceConfig.of("w", 0, BLOCK, "tcp://127.0.0.1:1"),
                                0,
                                new EventPlaneWorker(7, 0)));
        assertThrows(IllegalArgumentException.class, () -> new EventPlaneWorker(7, -1));
    }

    @Test
    void whatFeedsThePlaneEndsWithTheRouter() {
        start();
        router.close();
        assertTrue(ended);
    }
}
