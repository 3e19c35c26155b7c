package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Workers of an event plane that register again at a router whose index has outlived its process.
 */
class KeptPlaneTest {
    private static final int BLOCK = 4;
    private static final long STORE = 5;

    /** Where the index goes on from. */
    enum Kept {
        MAPPED,
        SNAPSHOT
    }

    @TempDir Path folder;

    private final List<byte[]> stored =
            new ArrayList<>(); // in the plane's stream, from number 1 on
    private long nowNs;
    private EventPlane plane;
    private KvRouter router;

    private RouterConfig.Builder builder(Kept kept, int workers) {
        return KvRouter.builder()
                .blockSize(BLOCK)
                .maxWorkers(workers)
                .maxBlocks(1_024, 1_024)
                .tickedBy(() -> nowNs)
                .set(
                        kept == Kept.MAPPED
                                ? RouterSettings.STATE_MAPPED_DIR
                                : RouterSettings.STATE_DIR,
                        folder);
    }

    /** A router whose transport begins behind what was kept, as one over JetStream does. */
    private void start(RouterConfig.Builder builder) {
        router = builder.eventPlane(made -> transport(made, STORE)).build();
    }

    private AutoCloseable transport(EventPlane made, long store) {
        plane = made;
        return KeptTransport.begin(made, store);
    }

    /** Passes on what the stream has behind the plane's position; how many messages. */
    private int read() {
        return read(plane.keptBeforeOrNull() == null ? 0 : plane.keptBeforeOrNull().upTo());
    }

    private int read(long after) {
        for (int i = (int) after; i < stored.size(); i++) {
            final byte[] message = stored.get(i);
            plane.onKept(message, 0, message.length, i + 1, EventPlane.NO_PUBLISHER);
        }
        settle();
        return stored.size() - (int) after;
    }

    private void settle() {
        Eventually.holds(
                "what was passed on",
                () -> {
                    plane.tick(); // a message that waits for the one before it does so for a while
                    return plane.isApplied();
                });
        plane.settle();
        plane.keep();
        plane.onCaughtUp();
    }

    private void publish(long worker, long event) {
        final int[] prompt = {(int) worker, (int) event, 3, 4};
        final long[] local = new long[1];
        BlockHasher.localHashes(prompt, 0, BLOCK, BLOCK, BlockHasher.BASE_SEED, local);
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {event}, local, 1);
        stored.add(RouterEventWriter.json(worker, 0, event, batch, batch.first()));
    }

    private Worker add(long worker) {
        return router.addWorker(
                WorkerSpec.of(worker, "w" + worker, "http://w")
                        .onEventPlane(new EventPlaneWorker(worker, 0)));
    }

    /** Once the writer has kept what the plane has said; a close does not wait for it. */
    private void stop() {
        try {
            router.indexPipeline().visitRuns(0, 0, 1, (depth, parent, engine, local, count) -> {});
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        router.close();
    }

    private static void assertHas(int blocks, Worker worker) {
        assertEquals(blocks, worker.indexedBlocks());
        assertEquals(IndexState.EXACT, worker.state(), worker.sourceStatus().problem());
        assertEquals(0, worker.sourceStatus().gaps());
        assertEquals(0, worker.sourceStatus().restarts());
    }

    @ParameterizedTest
    @EnumSource
    void aRestartedRouterReadsWhatIsNewAlone(Kept kept) {
        start(builder(kept, 4));
        add(7);
        add(-8); // 64 unsigned bits
        publish(7, 1);
        publish(-8, 1);
        publish(7, 2);
        assertEquals(3, read());
        stop();
        publish(7, 3);
        publish(-8, 2);
        start(builder(kept, 4));
        final Worker seven = add(7);
        final Worker eight = add(-8);
        assertEquals(2, seven.indexedBlocks());
        assertEquals(1, eight.indexedBlocks());
        assertEquals(2, read());
        assertHas(3, seven);
        assertHas(2, eight);
        stop();
    }

    @ParameterizedTest
    @EnumSource
    void aWorkerThatWasNotThereBeforeHasAllReadAgain(Kept kept) {
        start(builder(kept, 4));
        add(7);
        publish(7, 1);
        publish(9, 1); // nobody knows it
        publish(7, 2);
        read();
        assertEquals(3, plane.positionOrNull().upTo(), "it keeps nothing back");
        stop();
        start(builder(kept, 4));
        final Worker seven = add(7);
        final Worker nine = add(9);
        read();
        assertEquals(0, plane.beginsAgainAfter());
        assertEquals(0, plane.positionOrNull().upTo());
        read(0);
        assertHas(2, seven);
        assertHas(1, nine);
        stop();
        start(builder(kept, 4));
        assertHas(1, settled(add(9)));
        assertEquals(0, read());
        stop();
    }

    private Worker settled(Worker worker) {
        settle();
        return worker;
    }

    @Test
    void blocksWhoseWorkerDoesNotComeHoldThePositionBackUntilTheyAreGivenUp() {
        start(builder(Kept.MAPPED, 4));
        add(7);
        add(8);
        publish(7, 1);
        publish(8, 1);
        read();
        stop();
        start(builder(Kept.MAPPED, 4));
        final Worker seven = add(7);
        publish(8, 2);
        publish(7, 2);
        read();
        assertEquals(1, seven.sourceStatus().messages());
        assertEquals(2, plane.positionOrNull().upTo());
        stop();
        start(builder(Kept.MAPPED, 4)); // 8 comes late, and misses nothing
        add(7);
        read();
        final Worker eight = add(8);
        assertEquals(2, plane.beginsAgainAfter());
        read(2);
        assertHas(2, eight);
        stop();
        start(builder(Kept.MAPPED, 4));
        add(7);
        publish(8, 3);
        publish(7, 3);
        read();
        assertEquals(4, plane.positionOrNull().upTo());
        router.tick(nowNs);
        nowNs += KeptPrefixes.WAIT_NS;
        router.tick(nowNs);
        Eventually.holds("the sweep", () -> router.index().heldBlocks() == 3);
        plane.keep();
        assertEquals(6, plane.positionOrNull().upTo());
        stop();
        start(builder(Kept.MAPPED, 4));
        add(7);
        assertEquals(0, add(8).indexedBlocks());
        assertEquals(0, plane.beginsAgainAfter(), "its blocks were given up: all is read again");
        stop();
    }

    @ParameterizedTest
    @EnumSource
    void aStreamThatWasMadeAnewIsReadFromItsBeginning(Kept kept) {
        start(builder(kept, 4));
        add(7);
        publish(7, 1);
        publish(7, 2);
        publish(7, 3);
        read();
        stop();
        stored.clear();
        publish(7, 4);
        router = builder(kept, 4).eventPlane(made -> transport(made, STORE + 1)).build();
        final Worker seven = add(7);
        assertEquals(3, seven.indexedBlocks());
        read(0);
        assertHas(4, seven);
        assertEquals(new PlanePosition(STORE + 1, 1), plane.positionOrNull());
        stop();
        publish(7, 5);
        router = builder(kept, 4).eventPlane(made -> transport(made, STORE + 1)).build();
        final Worker again = add(7);
        assertEquals(1, read());
        assertHas(5, again);
        stop();
    }

    @Test
    void anIndexThatBeginsEmptyHasNoPosition() {
        start(builder(Kept.MAPPED, 4));
        add(7);
        publish(7, 1);
        read();
        stop();
        start(builder(Kept.MAPPED, 5)); // other sizes: what was there is of no use
        assertNull(plane.keptBeforeOrNull());
        final Worker seven = add(7);
        assertEquals(1, read());
        assertHas(1, seven);
        stop();
    }

    @Test
    void aSnapshotGoesOnWhereTheMappedIndexBeginsEmpty(@TempDir Path state) {
        start(builder(Kept.MAPPED, 4).set(RouterSettings.STATE_DIR, state));
        add(7);
        publish(7, 1);
        publish(7, 2);
        read();
        stop();
        publish(7, 3);
        start(builder(Kept.MAPPED, 5).set(RouterSettings.STATE_DIR, state));
        final Worker seven = add(7);
        assertEquals(2, seven.indexedBlocks());
        assertEquals(1, read());
        assertHas(3, seven);
        stop();
    }

    @Test
    void aPlaneThatKeepsNothingLeavesWhatIsKeptAlone() {
        start(builder(Kept.MAPPED, 4));
        add(7);
        publish(7, 1);
        read();
        stop();
        router = builder(Kept.MAPPED, 4).eventPlane(made -> () -> {}).build(); // as core NATS
        assertEquals(0, add(7).indexedBlocks());
        assertEquals(1, router.index().heldBlocks());
        stop();
        publish(7, 2);
        start(builder(Kept.MAPPED, 4));
        final Worker seven = add(7);
        assertEquals(1, read());
        assertHas(2, seven);
        stop();
    }

    /** The check is checked: a position ahead of the index loses what lies between. */
    @Test
    void aPositionAheadOfTheIndexLosesEvents() {
        start(builder(Kept.MAPPED, 4));
        add(7);
        publish(7, 1);
        read();
        publish(7, 2);
        router.indexPipeline().keepPosition(new PlanePosition(STORE, 2));
        publish(7, 3);
        stop();
        start(builder(Kept.MAPPED, 4));
        final Worker seven = add(7);
        read();
        assertTrue(seven.indexedBlocks() < 3, "nothing was lost");
        stop();
    }
}
