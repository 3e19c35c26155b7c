package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.kvasir.router.state.SnapshotCounts;
import io.kvasir.router.state.SnapshotStatus;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;

/** Workers that join their event plane anew while other things become of them. */
class RejoinedPlaneTest {
    private static final int BLOCK = 4;
    private static final int[] PROMPT = {1, 2, 3, 4, 5};

    private final AtomicInteger restores = new AtomicInteger();
    private final AtomicInteger running = new AtomicInteger();
    private final AtomicInteger atOnce = new AtomicInteger(); // of them, at most
    private final CountDownLatch restoring = new CountDownLatch(1);
    private final CountDownLatch released = new CountDownLatch(1);
    private volatile int held = -1; // which restore waits until it is released; from 1 on
    private EventPlane plane;
    private KvRouter router;

    /** Restores one block, as of a worker that had it saved. */
    private class Saved implements PlaneState {
        @Override
        public Restored restore(
                EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
            final int number = restores.incrementAndGet();
            if (number == 1) {
                return null; // the worker's first
            }
            atOnce.accumulateAndGet(running.incrementAndGet(), Math::max);
            if (number == held) {
                restoring.countDown();
                Latches.await(released);
            }
            try (EngineStream saved =
                    pipeline.openDirect(
                            EngineMessages.source("saved", BLOCK)
                                    .withSlot(slot)
                                    .withHashSeed(BlockHasher.BASE_SEED),
                            null)) {
                saved.onMessage(0, EngineMessages.stored(PROMPT, 1, BLOCK, 100));
            }
            running.decrementAndGet();
            return null;
        }

        @Override
        public void start(KvRouter started) {}

        @Override
        public SnapshotStatus status() {
            return new SnapshotCounts().status();
        }

        @Override
        public void close() {}
    }

    private void start(PlaneState state, int workers) {
        router =
                KvRouter.builder()
                        .blockSize(BLOCK)
                        .maxWorkers(workers)
                        .maxBlocks(1_024, 1_024)
                        .planeState(state)
                        .eventPlane(
                                made -> {
                                    plane = made;
                                    return () -> {};
                                })
                        .build();
    }

    @AfterEach
    void close() {
        released.countDown();
        router.close();
    }

    private Worker add(String name, long planeId) {
        return router.addWorker(
                WorkerSpec.of(planeId, name, "http://w")
                        .onEventPlane(new EventPlaneWorker(planeId, 0)));
    }

    private void stored(long worker, long event) {
        final long[] local = new long[1];
        BlockHasher.localHashes(PROMPT, 0, BLOCK, BLOCK, BlockHasher.BASE_SEED, local);
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {event}, local, 1);
        final byte[] bytes = RouterEventWriter.json(worker, 0, event, batch, batch.first());
        plane.onMessage(bytes, 0, bytes.length);
    }

    private FutureTask<Void> rejoin(Worker worker) {
        return new FutureTask<>(
                () -> {
                    router.rejoinPlane(worker);
                    return null;
                });
    }

    /** One whose rejoining waits in the midst of what is restored. */
    private FutureTask<Void> held(Worker worker) {
        held = 2;
        final FutureTask<Void> rejoined = rejoin(worker);
        Thread.ofPlatform().daemon().start(rejoined);
        Latches.await(restoring);
        return rejoined;
    }

    @Test
    void theSlotOfOneThatIsRemovedMeanwhileIsNoOthersUntilItIsEmpty() throws Exception {
        start(new Saved(), 1);
        final Worker one = add("one", 7);
        final FutureTask<Void> rejoined = held(one);
        router.removeWorker(one);
        assertTrue(router.workers().isEmpty());
        final FutureTask<Worker> added = new FutureTask<>(() -> add("two", 8));
        final Thread adder = Thread.ofPlatform().daemon().start(added);
        Eventually.holds(
                "it waits for the slot, or has it",
                () -> added.isDone() || adder.getState() == Thread.State.TIMED_WAITING);
        held = -1;
        restores.set(0); // nothing is saved of the other one
        released.countDown();
        rejoined.get();
        final Worker two = added.get();
        assertEquals(one.slot(), two.slot());
        settle();
        assertEquals(0, two.indexedBlocks(), "they are the other one's");
        stored(8, 1);
        Eventually.holds("events", () -> two.indexedBlocks() == 1);
        stored(7, 1);
        assertEquals(1, router.status().planeOrNull().unknownEvents());
        assertEquals(1, router.status().planeOrNull().streams());
    }

    /** Once the writer has done what came before. */
    private void settle() throws InterruptedException {
        router.indexPipeline().visitRuns(0, 0, 1, (depth, parent, engine, local, count) -> {});
    }

    @Test
    void twoAtOnceAreOneAfterTheOther() throws Exception {
        start(new Saved(), 2);
        final Worker one = add("one", 7);
        final FutureTask<Void> first = held(one);
        final FutureTask<Void> second = rejoin(one);
        final Thread waiter = Thread.ofPlatform().daemon().start(second);
        Eventually.holds(
                "it waits, or is done",
                () -> second.isDone() || waiter.getState() == Thread.State.WAITING);
        released.countDown();
        first.get();
        second.get();
        assertEquals(3, restores.get());
        assertEquals(1, atOnce.get(), "into one slot");
        assertSame(one, router.workers().getFirst());
        assertEquals(1, router.status().planeOrNull().streams());
        Eventually.holds("what is saved", () -> one.indexedBlocks() == 1);
        stored(7, 2);
        Eventually.holds("events", () -> one.sourceStatus().messages() == 1);
        assertEquals(0, router.status().planeOrNull().unknownEvents());
    }

    @Test
    void itsNameOnThePlaneIsNoOthersMeanwhile() throws Exception {
        start(new Saved(), 2);
        final Worker one = add("one", 7);
        final FutureTask<Void> rejoined = held(one);
        assertThrows(IllegalArgumentException.class, () -> add("two", 7));
        released.countDown();
        rejoined.get();
        assertEquals(1, router.workers().size());
        assertEquals(1, router.status().planeOrNull().streams());
        stored(7, 2);
        Eventually.holds("events", () -> one.sourceStatus().messages() == 1);
    }

    @Test
    void aRouterThatIsClosedMeanwhileEndsIt() throws Exception {
        start(new Saved(), 2);
        final FutureTask<Void> rejoined = held(add("one", 7));
        router.close();
        released.countDown();
        rejoined.get();
        assertTrue(router.workers().isEmpty());
    }

    @Test
    void anInterruptDoesNotHaveItRestoredBeforeItsSlotIsEmpty() throws Exception {
        final AtomicInteger heldBefore = new AtomicInteger();
        start(
                new Saved() {
                    @Override
                    public Restored restore(
                            EventPlaneWorker worker,
                            int slot,
                            IndexPipeline pipeline,
                            PrefixIndex index) {
                        heldBefore.set((int) index.heldBlocks(slot));
                        return super.restore(worker, slot, pipeline, index);
                    }
                },
                2);
        final Worker one = add("one", 7);
        stored(7, 1);
        Eventually.holds("events", () -> one.indexedBlocks() == 1);
        final CountDownLatch writing = new CountDownLatch(1);
        router.indexPipeline()
                .retire(
                        1,
                        () -> {
                            writing.countDown();
                            Latches.await(released); // and sweeps no other slot
                        });
        Latches.await(writing);
        final FutureTask<Void> rejoined = rejoin(one);
        final Thread waiter = Thread.ofPlatform().daemon().start(rejoined);
        Eventually.holds("it waits", () -> waiter.getState() == Thread.State.TIMED_WAITING);
        waiter.interrupt();
        Eventually.holds("it is interrupted", () -> !waiter.isInterrupted());
        released.countDown();
        assertInstanceOf(
                InterruptedException.class,
                assertThrows(ExecutionException.class, rejoined::get).getCause());
        assertEquals(2, restores.get());
        assertEquals(0, heldBefore.get());
        assertEquals(1, router.status().planeOrNull().streams());
        Eventually.holds("what is saved", () -> one.indexedBlocks() == 1);
    }

    @ParameterizedTest
    @ValueSource(classes = {IllegalStateException.class, IllegalArgumentException.class})
    void oneWhoseStateFailsJoinsWithoutWhatIsSaved(Class<? extends RuntimeException> how)
            throws Exception {
        final RuntimeException failure = how.getConstructor(String.class).newInstance("broken");
        start(failing(failure), 2);
        final Worker one = add("one", 7);
        router.rejoinPlane(one);
        assertJoinedEmpty(one);
    }

    @Test
    void norDoesAnErrorOfItsStateKeepItOffThePlane() throws Exception {
        start(failing(new NoSuchMethodError("of another version")), 2);
        final Worker one = add("one", 7);
        router.rejoinPlane(one);
        assertJoinedEmpty(one);
    }

    /** Fails at each rejoining, in the midst of what is restored. */
    private PlaneState failing(Throwable failure) {
        return new Saved() {
            @Override
            public Restored restore(
                    EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
                super.restore(worker, slot, pipeline, index);
                if (restores.get() > 1) {
                    switch (failure) {
                        case RuntimeException e -> throw e;
                        case Error e -> throw e;
                        default -> throw new IllegalStateException(failure);
                    }
                }
                return null;
            }
        };
    }

    private void assertJoinedEmpty(Worker one) throws Exception {
        assertEquals(2, restores.get());
        assertSame(one, router.workers().getFirst());
        assertEquals(1, router.status().planeOrNull().streams());
        settle();
        assertEquals(0, one.indexedBlocks(), "half of it was restored");
        stored(7, 2);
        Eventually.holds("events", () -> one.indexedBlocks() == 1);
        assertEquals(0, router.status().planeOrNull().unknownEvents());
    }

    @Test
    void aWorkerWhoseStateFailsIsNotLeftHalfRegistered() {
        final AtomicInteger failures = new AtomicInteger(1);
        start(
                new PlaneState() {
                    @Override
                    public Restored restore(
                            EventPlaneWorker worker,
                            int slot,
                            IndexPipeline pipeline,
                            PrefixIndex index) {
                        if (failures.getAndDecrement() > 0) {
                            throw new IllegalStateException("broken");
                        }
                        return null;
                    }

                    @Override
                    public void start(KvRouter started) {}

                    @Override
                    public SnapshotStatus status() {
                        return new SnapshotCounts().status();
                    }

                    @Override
                    public void close() {}
                },
                1);
        assertThrows(IllegalStateException.class, () -> add("one", 7));
        assertTrue(router.workers().isEmpty());
        final Worker one = add("one", 7); // in the only slot
        stored(7, 1);
        Eventually.holds("events", () -> one.indexedBlocks() == 1);
    }
}
