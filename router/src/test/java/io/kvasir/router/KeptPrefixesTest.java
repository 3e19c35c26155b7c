package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.events.KeptSlot;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.IndexCause;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.Arrays;

/** Workers that register again at a router whose index has outlived its process. */
class KeptPrefixesTest {
    private static final int BLOCK = 16;
    private static final int[] PROMPT = new int[8 * BLOCK];

    private static final int[] OTHER_PROMPT = new int[8 * BLOCK];

    static {
        Arrays.setAll(PROMPT, i -> 1_000 + i);
        Arrays.setAll(OTHER_PROMPT, i -> 5_000 + i);
    }

    @TempDir Path folder;

    private long nowNs;

    private RouterConfig.Builder builder(int workers) {
        return withoutFile(workers).set(RouterSettings.STATE_MAPPED_DIR, folder);
    }

    private RouterConfig.Builder withoutFile(int workers) {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(workers)
                .maxBlocks(4_096, 8_192)
                .tickedBy(() -> nowNs);
    }

    /** A worker whose engine cannot be reached; its messages are delivered by hand. */
    private static WorkerSpec spec(String name, int rank) {
        return new WorkerSpec(
                rank, name, "http://w", rank, SourceConfig.of(name, 0, BLOCK, "tcp://127.0.0.1:1"));
    }

    private static Worker add(KvRouter router, String name, int rank, int blocks) {
        final Worker worker = router.addWorker(spec(name, rank));
        router.openDirect(worker, EngineMessages.source(name, BLOCK))
                .onMessage(0, EngineMessages.stored(PROMPT, blocks, BLOCK, 100L * rank));
        Eventually.holds("the event", worker::ready);
        assertEquals(blocks, worker.indexedBlocks());
        return worker;
    }

    private static int overlap(KvRouter router, Worker worker) throws RouteException {
        final Decision decision = new Decision();
        router.select(router.newRequest().tokens(PROMPT, PROMPT.length).pin(worker), decision);
        return decision.overlapBlocks();
    }

    @Test
    void aWorkerThatRegistersAgainHasItsBlocksAtOnceWhateverTheOrder() throws Exception {
        try (KvRouter router = builder(4).build()) {
            add(router, "a", 0, 3);
            add(router, "a", 1, 5);
            add(router, "b", 0, 7);
        }
        try (KvRouter router = builder(4).build()) {
            final Worker other = router.addWorker(spec("c", 0));
            final Worker b = router.addWorker(spec("b", 0));
            final Worker a1 = router.addWorker(spec("a", 1));
            final Worker a0 = router.addWorker(spec("a", 0));
            assertEquals(0, other.indexedBlocks());
            assertEquals(7, overlap(router, b));
            assertEquals(5, overlap(router, a1));
            assertEquals(3, overlap(router, a0));
            assertEquals(0, overlap(router, other));
            assertEquals(IndexState.STALE, b.state()); // until its engine has sent something
            assertEquals(0, b.eventSequence());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aWorkerWhoseAddressIsInUseHasItsBlocksOnceItIsFree(boolean mapped) throws IOException {
        final RouterConfig.Builder builder =
                mapped ? builder(4) : withoutFile(4).set(RouterSettings.STATE_DIR, folder);
        try (KvRouter router = builder.build()) {
            add(router, "a", 0, 3);
        }
        try (KvRouter router = builder.build()) {
            final WorkerSpec binds;
            try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                binds =
                        new WorkerSpec(
                                0,
                                "a",
                                "http://w",
                                0,
                                SourceConfig.of(
                                                "a",
                                                0,
                                                BLOCK,
                                                "tcp://127.0.0.1:" + other.getLocalPort())
                                        .withBind(true));
                assertThrows(IllegalArgumentException.class, () -> router.addWorker(binds));
            }
            assertEquals(3, router.addWorker(binds).indexedBlocks());
        }
    }

    @Test
    void aWorkerThatWasRemovedIsNotThereAgain() {
        try (KvRouter router = builder(4).build()) {
            router.removeWorker(add(router, "a", 0, 3));
            Eventually.holds("the sweep", () -> router.index().heldBlocks() == 0);
            add(router, "b", 0, 2);
        }
        try (KvRouter router = builder(4).build()) {
            assertEquals(2, router.index().heldBlocks());
            assertEquals(0, router.addWorker(spec("a", 0)).indexedBlocks());
            assertEquals(2, router.addWorker(spec("b", 0)).indexedBlocks());
        }
    }

    @Test
    void blocksWhoseWorkerDoesNotComeGiveTheirSlotToAnother() throws Exception {
        try (KvRouter router = builder(2).build()) {
            add(router, "a", 0, 3);
            add(router, "b", 0, 4);
        }
        try (KvRouter router = builder(2).build()) {
            final Worker c = router.addWorker(spec("c", 0));
            final Worker d = router.addWorker(spec("d", 0));
            assertNotEquals(c.slot(), d.slot());
            assertEquals(0, overlap(router, c));
            assertEquals(0, overlap(router, d));
            assertEquals(0, router.index().heldBlocks());
            assertThrows(IllegalStateException.class, () -> router.addWorker(spec("a", 0)));
        }
    }

    @Test
    void blocksWhoseWorkerDoesNotComeAreSweptInTime() {
        try (KvRouter router = builder(2).build()) {
            add(router, "a", 0, 3);
        }
        try (KvRouter router = builder(2).build()) {
            nowNs = 5;
            router.tick(nowNs);
            nowNs += KeptPrefixes.WAIT_NS - 1;
            router.tick(nowNs);
            assertEquals(3, router.index().heldBlocks());
            nowNs++;
            router.tick(nowNs);
            Eventually.holds("the sweep", () -> router.index().heldBlocks() == 0);
            assertEquals(0, router.addWorker(spec("a", 0)).indexedBlocks());
        }
    }

    @Test
    void anotherSeedOrSizeBeginsEmpty() {
        try (KvRouter router = builder(2).build()) {
            add(router, "a", 0, 3);
        }
        try (KvRouter router = builder(2).set(RouterSettings.HASH_SEED, 77L).build()) {
            assertEquals(0, router.index().heldBlocks());
            add(router, "a", 0, 4);
        }
        try (KvRouter router = builder(3).build()) {
            assertEquals(0, router.index().heldBlocks());
        }
    }

    @Test
    void theSeedOfTheFileIsTakenOverAndSnapshotsGoOnWithIt(@TempDir Path state) throws Exception {
        try (KvRouter router = builder(2).build()) {
            add(router, "a", 0, 3);
        }
        try (KvRouter router = builder(2).set(RouterSettings.STATE_DIR, state).build()) {
            final Worker a = router.addWorker(spec("a", 0));
            assertEquals(3, overlap(router, a));
        }
        try (KvRouter router = builder(2).set(RouterSettings.STATE_DIR, state).build()) {
            assertEquals(3, overlap(router, router.addWorker(spec("a", 0))));
        }
    }

    @Test
    void aFileIsNotUsedThatARouterHasGoneOnWithout(@TempDir Path state) throws Exception {
        final RouterConfig.Builder both = builder(2).set(RouterSettings.STATE_DIR, state);
        try (KvRouter router = both.build()) {
            add(router, "a", 0, 3);
        }
        awaitNextMillisecond();
        try (KvRouter router = withoutFile(2).set(RouterSettings.STATE_DIR, state).build()) {
            add(router, "a", 0, 7);
        }
        try (KvRouter router = both.build()) {
            assertEquals(0, router.index().heldBlocks());
            assertEquals(7, overlap(router, router.addWorker(spec("a", 0))));
        }
        // from here on the file is ahead of the snapshots again
        try (KvRouter router = builder(2).build()) {
            add(router, "a", 0, 8);
        }
        try (KvRouter router = both.build()) {
            assertEquals(8, router.index().heldBlocks());
            assertEquals(8, overlap(router, router.addWorker(spec("a", 0))));
        }
    }

    /** What is saved from here on is newer than what was saved before. */
    private static void awaitNextMillisecond() {
        final long nowMs = System.currentTimeMillis();
        Eventually.holds("the clock", () -> System.currentTimeMillis() > nowMs);
    }

    @Test
    void aSnapshotIsTheNextBestThingWhereTheFileCannotBeUsed(@TempDir Path state) throws Exception {
        try (KvRouter router = builder(2).set(RouterSettings.STATE_DIR, state).build()) {
            add(router, "a", 0, 3);
        }
        // other sizes: the file begins empty, the snapshot fits
        try (KvRouter router = builder(3).set(RouterSettings.STATE_DIR, state).build()) {
            assertEquals(0, router.index().heldBlocks());
            assertEquals(3, overlap(router, router.addWorker(spec("a", 0))));
        }
    }

    @Test
    void whatOthersTakeBeforeAWorkersFirstMessageIsMissingAtOnce() {
        final RouterConfig.Builder builder = builder(2).maxBlocks(10, 10);
        try (KvRouter router = builder.build()) {
            add(router, "a", 0, 8);
        }
        try (KvRouter router = builder.build()) {
            final Worker a = router.addWorker(spec("a", 0));
            final KeptSlot kept = router.indexPipeline().keptSlots().getFirst();
            final SlotMark mark = kept.markOrNull();
            final StreamStart start =
                    new StreamStart(
                            mark.sequence(),
                            mark.content(),
                            mark.complete(),
                            mark.missingBlocks(),
                            kept.memoryOrNull());
            router.openDirect(a, EngineMessages.source("a", BLOCK), start).onCaughtUp();
            assertEquals(IndexState.EXACT, a.state());
            router.openDirect(router.addWorker(spec("b", 1)), EngineMessages.source("b", BLOCK))
                    .onMessage(0, EngineMessages.stored(OTHER_PROMPT, 4, BLOCK, 100));
            Eventually.holds("the eviction", () -> a.indexedBlocks() < 8);
            Eventually.holds("the news of it", () -> a.state() == IndexState.DEGRADED);
            assertEquals(IndexCause.INDEX_FULL, a.cause());
        }
    }

    @Test
    void twoRoutersDoNotShareAFile() {
        try (KvRouter router = builder(2).build()) {
            assertEquals(0, router.index().heldBlocks());
            final IllegalStateException refused =
                    assertThrows(IllegalStateException.class, () -> builder(2).build());
            assertTrue(refused.getMessage().contains("another router"), refused.getMessage());
        }
        builder(2).build().close();
    }
}
