package io.kvasir.pipeline.events;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.HeldRunVisitor;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

class IndexPipelineTest {
    private static final int BLOCK = 4;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(16, 4_096, 4_096));

    @AfterEach
    void closeIndex() {
        index.close();
    }

    private static IndexPipelineConfig small(int ringSize) {
        return IndexPipelineConfig.defaults().withRingSize(ringSize);
    }

    private static byte[] store(int hash) {
        return batch(stored(List.of(hash), null, range(hash * 10, hash * 10 + 3), BLOCK));
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void messagesOfManyThreadsReachTheIndex(WaitMode mode) throws InterruptedException {
        final int threads = 4;
        final int messages = 200;
        try (IndexPipeline pipeline = new IndexPipeline(small(1_024).withWaitMode(mode), index)) {
            final List<Thread> started = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                final EngineStream stream =
                        pipeline.openDirect(SourceConfig.of("w" + t, t, BLOCK, ""));
                final int base = t * messages;
                started.add(
                        Thread.ofPlatform()
                                .start(
                                        () -> {
                                            for (int i = 0; i < messages; i++) {
                                                stream.onMessage(i, store(base + i));
                                            }
                                        }));
            }
            for (Thread thread : started) {
                thread.join();
            }
            Eventually.holds(
                    () -> pipeline.backlog() == 0 && pipeline.applied() == threads * messages);
            for (int t = 0; t < threads; t++) {
                assertEquals(messages, index.heldBlocks(t));
                assertEquals(messages - 1, index.appliedSequence(t));
            }
            assertEquals(threads * messages, pipeline.published());
            assertEquals(0, pipeline.refused());
            assertEquals(0, pipeline.failures());
        }
    }

    @Test
    void aFullRingIsAGapAndTheStreamResyncs() throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        try (IndexPipeline pipeline = new IndexPipeline(small(8), index)) {
            final EngineStream stream =
                    pipeline.openDirect(
                            SourceConfig.of("w", 1, BLOCK, "").withReplayEndpoint("direct"));
            pipeline.retire(
                    5,
                    () -> {
                        blocked.countDown();
                        Latches.await(release);
                    });
            assertTrue(blocked.await(1, TimeUnit.MINUTES));
            for (int i = 0; i < 12; i++) {
                stream.onMessage(i, store(i + 1));
            }
            assertEquals(1, pipeline.refused());
            assertEquals(IndexState.RESYNC, stream.state());
            final long from = stream.replayFrom();
            assertTrue(from > 0 && from < 12, "from=" + from);
            release.countDown();
            Eventually.holds(() -> pipeline.backlog() == 0);
            for (int i = (int) from; i < 12; i++) {
                int sequence = i;
                Eventually.holds(
                        () ->
                                stream.onReplayed(sequence, store(sequence + 1))
                                        == EngineStream.ReplayStep.CONTINUE);
            }
            stream.replayEnded();
            Eventually.holds(() -> stream.state() == IndexState.EXACT);
            assertEquals(12, index.heldBlocks(1));
            index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
        }
    }

    @Test
    void whatASlotHoldsIsShownInPartsBetweenEvents() throws InterruptedException {
        try (IndexPipeline pipeline = new IndexPipeline(small(64), index)) {
            final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, ""));
            final List<Long> shown = new ArrayList<>();
            final HeldRunVisitor all = (depth, parent, names, locals, count) -> shown.add(names[0]);
            assertEquals(PrefixIndex.NO_MORE_RUNS, pipeline.visitRuns(1, 0, 1, all));
            for (int i = 0; i < 5; i++) {
                stream.onMessage(i, store(i + 1));
            }
            Eventually.holds(() -> index.heldBlocks(1) == 5);
            int from = 0;
            int parts = 0;
            while (from != PrefixIndex.NO_MORE_RUNS) {
                from = pipeline.visitRuns(1, from, 2, all);
                parts++;
            }
            shown.sort(null);
            assertEquals(List.of(1L, 2L, 3L, 4L, 5L), shown);
            assertTrue(parts > 1, "parts=" + parts);
            final int beyond = index.config().maxWorkerSlots();
            assertThrows(
                    IndexOutOfBoundsException.class, () -> pipeline.visitRuns(beyond, 0, 1, all));
            final HeldRunVisitor wrong =
                    (depth, parent, names, locals, count) -> {
                        throw new IllegalStateException("test");
                    };
            assertThrows(IllegalStateException.class, () -> pipeline.visitRuns(1, 0, 9, wrong));
            assertTrue(pipeline.isWriterAlive());
        }
    }

    /** The writer stops at the next event boundary and does not look into its mailbox again. */
    @Test
    void whoeverWaitsForAPartGetsAnAnswerWhenThePipelineIsClosed() throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final AtomicReference<Throwable> answer = new AtomicReference<>();
        final IndexPipeline pipeline = new IndexPipeline(small(8), index);
        pipeline.retire(
                5,
                () -> {
                    blocked.countDown();
                    Latches.await(release);
                });
        assertTrue(blocked.await(1, TimeUnit.MINUTES));
        final Thread asking =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    try {
                                        pipeline.visitRuns(1, 0, 1, (d, p, n, l, c) -> {});
                                    } catch (Throwable e) {
                                        answer.set(e);
                                    }
                                });
        pipeline.close();
        asking.join(TimeUnit.MINUTES.toMillis(1));
        assertFalse(asking.isAlive());
        assertTrue(answer.get() instanceof ClosedException, () -> "answer=" + answer.get());
        release.countDown();
        assertThrows(
                ClosedException.class, () -> pipeline.visitRuns(1, 0, 1, (d, p, n, l, c) -> {}));
    }

    @Test
    void blocksOfAnotherIndexAreStoredOnceHoweverOftenTheyAreLoaded() {
        final long[] names = {7, -3};
        final long[] locals = {70, 30};
        final IndexPipeline pipeline = new IndexPipeline(small(8), index);
        try (pipeline) {
            for (int i = 0; i < 2; i++) {
                Eventually.holds(() -> pipeline.loadBlocks(1, true, 0, names, locals, 2));
                Eventually.holds(
                        () ->
                                pipeline.loadBlocks(
                                        1, false, -3, new long[] {8}, new long[] {80}, 1));
            }
            Eventually.holds(() -> pipeline.applied() == 4);
            assertEquals(3, index.heldBlocks(1));
            assertEquals(0, index.unknownParents());
            index.forEach((slot, engine, sequence, copies) -> assertEquals(1, copies));
        }
        assertThrows(
                ClosedException.class, () -> pipeline.loadBlocks(1, true, 0, names, locals, 2));
    }

    @Test
    void aRetiredSlotIsEmptyAndTakesNothingFromItsFormerStreams() throws InterruptedException {
        final CountDownLatch swept = new CountDownLatch(1);
        try (IndexPipeline pipeline = new IndexPipeline(small(64), index)) {
            final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, ""));
            for (int i = 0; i < 30; i++) {
                stream.onMessage(i, store(i + 1));
            }
            pipeline.retire(1, swept::countDown);
            assertTrue(swept.await(1, TimeUnit.MINUTES));
            stream.onMessage(30, store(31));
            Eventually.holds(() -> pipeline.backlog() == 0);
            assertEquals(0, index.heldBlocks(1));
            assertEquals(PrefixIndex.NO_EVENT, index.appliedSequence(1));

            final EngineStream next = pipeline.openDirect(SourceConfig.of("v", 1, BLOCK, ""));
            next.onMessage(0, store(40));
            Eventually.holds(() -> index.heldBlocks(1) == 1);
            Eventually.holds(() -> pipeline.applied() - 1 + pipeline.skipped() == 31);
        }
    }

    @Test
    void aSlotIsRetiredWithoutRoomInTheRing() throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final CountDownLatch swept = new CountDownLatch(1);
        try (IndexPipeline pipeline = new IndexPipeline(small(8), index)) {
            final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, ""));
            pipeline.retire(
                    5,
                    () -> {
                        blocked.countDown();
                        Latches.await(release);
                    });
            assertTrue(blocked.await(1, TimeUnit.MINUTES));
            for (int i = 0; i < 12; i++) {
                stream.onMessage(i, store(i + 1));
            }
            assertTrue(pipeline.refused() > 0);
            pipeline.retire(1, swept::countDown); // returns, although nothing fits
            release.countDown();
            assertTrue(swept.await(1, TimeUnit.MINUTES));
            Eventually.holds(() -> pipeline.backlog() == 0);
            assertEquals(0, index.heldBlocks(1));
        }
    }

    @Test
    void everyRetirementIsRunHoweverItMeetsAWaitingWriter() throws InterruptedException {
        try (IndexPipeline pipeline = new IndexPipeline(small(2), index)) {
            for (int i = 0; i < 5_000; i++) {
                final CountDownLatch swept = new CountDownLatch(1);
                pipeline.retire(i % 16, swept::countDown);
                if (i % 50 == 0) {
                    assertTrue(swept.await(1, TimeUnit.MINUTES), "retirement " + i);
                }
            }
        }
    }

    @Test
    void anErrorWhileAnErrorIsHandledDoesNotEndTheWriter() {
        try (IndexPipeline pipeline = new IndexPipeline(small(64), index)) {
            final ApplyListener broken =
                    new ApplyListener() {
                        @Override
                        public void applied(int operations) {
                            throw new OutOfMemoryError("made up by the test");
                        }

                        @Override
                        public void failed() {
                            throw new OutOfMemoryError("made up by the test, again");
                        }
                    };
            offer(pipeline, 1, broken, false);
            Eventually.holds(() -> pipeline.quarantinedSlots() == 1);
            final EngineStream good = pipeline.openDirect(SourceConfig.of("good", 2, BLOCK, ""));
            good.onMessage(0, store(3));
            Eventually.holds(() -> index.heldBlocks(2) == 1);
            assertTrue(pipeline.isWriterAlive());
            assertTrue(pipeline.failures() >= 2);
        }
    }

    @Test
    void anErrorInTheIndexSetsOnlyItsSlotAsideAndTheStreamLoadsAgain() {
        try (IndexPipeline pipeline = new IndexPipeline(small(64), index)) {
            final EngineStream good = pipeline.openDirect(SourceConfig.of("good", 1, BLOCK, ""));
            final EngineStream bad =
                    pipeline.openDirect(
                            SourceConfig.of("bad", 99, BLOCK, "").withReplayEndpoint("direct"));
            bad.onMessage(0, store(1)); // the index has 16 slots
            Eventually.holds(() -> bad.status().failures() == 1);
            bad.onMessage(1, store(2));
            good.onMessage(0, store(3));
            Eventually.holds(() -> good.state() == IndexState.EXACT);
            assertEquals(1, index.heldBlocks(1));
            assertTrue(bad.status().failures() >= 1);
            assertEquals(1, pipeline.quarantinedSlots());
            assertEquals(0, bad.replayFrom());
            assertTrue(bad.state() == IndexState.LOADING || bad.state() == IndexState.DEGRADED);
        }
    }

    @Test
    void aSlotSetAsideIsUsedAgainAfterAClear() {
        final List<String> errors = new CopyOnWriteArrayList<>();
        try (IndexPipeline pipeline =
                new IndexPipeline(small(64), index, error -> errors.add(error.getMessage()))) {
            final AtomicReference<Boolean> poisoned = new AtomicReference<>(true);
            final ApplyListener listener =
                    new ApplyListener() {
                        @Override
                        public void applied(int operations) {
                            if (poisoned.get()) {
                                throw new IllegalStateException("made up by the test");
                            }
                        }
                    };
            offer(pipeline, 1, listener, false);
            Eventually.holds(() -> pipeline.quarantinedSlots() == 1);
            poisoned.set(false);
            Eventually.holds(() -> index.heldBlocks(1) == 0); // emptied after it was set aside
            offer(pipeline, 2, listener, false);
            Eventually.holds(() -> pipeline.skipped() == 1);
            assertEquals(0, index.heldBlocks(1));
            offer(pipeline, 3, listener, true);
            Eventually.holds(() -> index.heldBlocks(1) == 1);
            assertEquals(List.of("made up by the test"), errors);
            assertEquals(0, pipeline.quarantinedSlots());
        }
    }

    private static void offer(
            IndexPipeline pipeline, long sequence, ApplyListener listener, boolean clear) {
        final KvBatch batch = new KvBatch();
        batch.reset(1, sequence, CopyRule.PHYSICAL, false, listener);
        if (clear) {
            batch.addCleared();
        }
        batch.addStored(true, 0, new long[] {sequence}, new long[] {sequence}, 1);
        assertTrue(pipeline.sink().offer(batch));
    }

    @Test
    void largeMessagesDoNotStayInTheRing() {
        final int blocks = 3_000;
        final List<Integer> hashes = range(1, blocks);
        try (IndexPipeline pipeline = new IndexPipeline(small(4), index)) {
            final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, ""));
            for (int i = 0; i < 16; i += 2) {
                final int next = i;
                Eventually.holds(() -> pipeline.backlog() == 0);
                stream.onMessage(
                        next, batch(stored(hashes, null, range(1, blocks * BLOCK), BLOCK)));
                stream.onMessage(next + 1, batch(removed(hashes)));
            }
            Eventually.holds(() -> index.appliedSequence(1) == 15);
            assertEquals(0, index.heldBlocks(1));
            assertEquals(8L * blocks, stream.status().blocksStored());
        }
    }

    @Test
    void closingEndsTheWriterAtTheNextEventAndKeepsItsMemoryUntilThen()
            throws InterruptedException {
        final CountDownLatch blocked = new CountDownLatch(1);
        final CountDownLatch release = new CountDownLatch(1);
        final IndexPipeline pipeline = new IndexPipeline(small(256), index);
        final EngineStream stream = pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, ""));
        pipeline.retire(
                5,
                () -> {
                    blocked.countDown();
                    Latches.await(release);
                });
        assertTrue(blocked.await(1, TimeUnit.MINUTES));
        for (int i = 0; i < 100; i++) {
            stream.onMessage(i, store(i + 1));
        }
        pipeline.close(); // does not wait for the end of the event
        pipeline.close();
        index.close();

        assertFalse(index.gate().isReleased());
        assertEquals(IndexState.GONE, stream.state());
        assertFalse(pipeline.sink().offer(new KvBatch()));
        assertThrows(ClosedException.class, () -> pipeline.retire(1, () -> {}));
        assertThrows(
                ClosedException.class,
                () -> pipeline.openDirect(SourceConfig.of("w", 1, BLOCK, "")));
        release.countDown();
        Eventually.holds(() -> index.gate().isReleased());
        assertEquals(0, index.heldBlocks(1), "what was in the ring is left");
    }

    @Test
    void anIndexHasOneWriter() {
        final IndexPipeline first = new IndexPipeline(small(8), index);
        assertThrows(IllegalStateException.class, () -> new IndexPipeline(small(8), index));
        first.close();
        new IndexPipeline(small(8), index).close();
        index.close();
        assertThrows(ClosedException.class, () -> new IndexPipeline(small(8), index));
        assertTrue(index.gate().isReleased());
    }
}
