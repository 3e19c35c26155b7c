package io.kvasir.pipeline.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** Snapshots of slots whose events go on, and slots that are loaded from them. */
class SlotSnapshotTest {
    private static final int SLOTS = 3;
    private static final int SLOT = 1;

    private final PrefixIndex index =
            new PrefixIndex(new PrefixIndexConfig(SLOTS, 100_000, 300_000));
    private final IndexPipeline pipeline =
            new IndexPipeline(IndexPipelineConfig.defaults().withSnapshotBatches(64), index);

    @AfterEach
    void close() {
        pipeline.close();
        index.close();
    }

    /** Applies the batch of one message, whatever waits before it. */
    private static void offer(IndexPipeline to, KvBatch batch) {
        while (!to.sink().offer(batch)) {
            Thread.onSpinWait();
        }
    }

    /** The message of a number: stores or removes something that follows from it and a seed. */
    private static KvBatch message(int slot, long sequence, long seed) {
        final Random random = new Random(seed + 31 * sequence);
        final KvBatch batch = new KvBatch();
        batch.reset(slot, sequence, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        final int prompt = random.nextInt(20);
        final int count = 1 + random.nextInt(40);
        final long[] names = new long[count];
        final long[] locals = new long[count];
        Arrays.setAll(names, i -> 1_000L * prompt + i);
        Arrays.setAll(locals, i -> i < 5 ? i : 1_000L * prompt + i);
        if (random.nextInt(4) == 0) {
            batch.addRemoved(new long[] {names[random.nextInt(count)]}, 1);
        } else {
            batch.addStored(true, 0, names, locals, count);
        }
        batch.ofMessage(sequence * 7, true);
        return batch;
    }

    private static Set<List<Long>> contents(PrefixIndex of, int slot) {
        final Set<List<Long>> found = new HashSet<>();
        of.forEach(
                (s, name, sequenceHash, copies) -> {
                    if (s == slot) {
                        found.add(List.of(name, sequenceHash, (long) copies));
                    }
                });
        return found;
    }

    private static List<byte[]> takeAll(SlotSnapshot snapshot) throws InterruptedException {
        final List<byte[]> chunks = new ArrayList<>();
        for (byte[] chunk = snapshot.take(); chunk != null; chunk = snapshot.take()) {
            chunks.add(chunk);
        }
        return chunks;
    }

    private void storeMany(int slot, int prompts, int blocks) {
        storeMany(slot, prompts, blocks, 0);
    }

    /** Stores prompts of blocks of their own after some that all of them share. */
    private void storeMany(int slot, int prompts, int blocks, int shared) {
        for (int p = 0; p < prompts; p++) {
            final KvBatch batch = new KvBatch();
            batch.reset(slot, p, CopyRule.PHYSICAL, false, ApplyListener.NONE);
            final long first = 1_000_000L * slot + (long) blocks * p;
            final long[] hashes = new long[shared + blocks];
            Arrays.setAll(hashes, i -> i < shared ? -1 - i : first + i);
            batch.addStored(true, 0, hashes, hashes, shared + blocks);
            batch.ofMessage(p, true);
            offer(pipeline, batch);
        }
        awaitApplied(slot, prompts - 1L);
    }

    private void awaitApplied(int slot, long sequence) {
        Eventually.holds(() -> index.appliedSequence(slot) >= sequence);
    }

    /** Holds the writer until the latch falls. */
    private CountDownLatch holdWriter() {
        final CountDownLatch hold = new CountDownLatch(1);
        pipeline.retire(
                2,
                () -> {
                    try {
                        hold.await();
                    } catch (InterruptedException e) {
                        Thread.currentThread().interrupt();
                    }
                });
        return hold;
    }

    @Test
    void aSnapshotIsExactAtItsMessageWhileEventsGoOn() throws Exception {
        final long seed = Seeds.next("SlotSnapshotTest");
        final Random random = new Random(seed);
        long sequence = 0;
        for (int round = 0; round < 30; round++) {
            for (int i = random.nextInt(60); i >= 0; i--) {
                offer(pipeline, message(SLOT, sequence++, seed));
                offer(pipeline, message(0, sequence, seed + 1));
            }
            final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
            for (int i = random.nextInt(40); i >= 0; i--) {
                offer(pipeline, message(SLOT, sequence++, seed));
                offer(pipeline, message(0, sequence, seed + 1));
            }
            final List<byte[]> chunks = takeAll(snapshot);
            final SlotMark mark = snapshot.mark();
            if (snapshot.outcome() == SlotSnapshot.Outcome.OVERTAKEN) {
                continue;
            }
            assertEquals(SlotSnapshot.Outcome.WHOLE, snapshot.outcome());
            assertEquals(7 * mark.sequence(), mark.content());
            assertTrue(mark.complete());
            try (PrefixIndex plain = new PrefixIndex(index.config());
                    PrefixIndex restored = new PrefixIndex(index.config());
                    IndexPipeline other =
                            new IndexPipeline(IndexPipelineConfig.defaults(), restored)) {
                final IndexApplier applier = new IndexApplier(plain);
                for (long s = 0; s <= mark.sequence(); s++) {
                    applier.offer(message(SLOT, s, seed));
                }
                try (SlotLoad load = other.load(2)) {
                    for (byte[] chunk : chunks) {
                        assertTrue(load.records(chunk));
                    }
                    assertTrue(load.finish(mark, RemovalRule.PHYSICAL));
                }
                assertEquals(mark.sequence(), restored.appliedSequence(2));
                assertEquals(contents(plain, SLOT), contents(restored, 2));
                assertEquals(mark.heldBlocks(), restored.heldBlocks(2));
                // and a snapshot of what was restored is of the same message
                final SlotSnapshot again = other.snapshot(2);
                takeAll(again);
                assertEquals(mark, again.mark());
            }
        }
        awaitApplied(SLOT, sequence - 1);
        try (PrefixIndex plain = new PrefixIndex(index.config())) {
            final IndexApplier applier = new IndexApplier(plain);
            for (long s = 0; s < sequence; s++) {
                applier.offer(message(SLOT, s, seed));
            }
            assertEquals(contents(plain, SLOT), contents(index, SLOT), "an event was lost");
        }
    }

    @ParameterizedTest(name = "{0} prompts of {1} blocks after {2} shared ones")
    @CsvSource({
        "400, 8, 0",
        "400, 16, 0",
        "1000, 1, 64",
        "400, 8, 64",
        "500, 40, 64",
        "3000, 3, 1",
        "90, 511, 0",
        "90, 513, 1",
        "9000, 1, 0"
    })
    void promptsOfAnyLengthAreInTheSnapshot(int prompts, int blocks, int shared) throws Exception {
        storeMany(SLOT, prompts, blocks, shared);
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        final List<byte[]> chunks = takeAll(snapshot);
        assertEquals(SlotSnapshot.Outcome.WHOLE, snapshot.outcome());
        try (SlotLoad load = pipeline.load(2)) {
            for (byte[] chunk : chunks) {
                assertTrue(load.records(chunk));
            }
            assertTrue(load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
        }
        assertEquals(contents(index, SLOT), contents(index, 2));
    }

    @Test
    void eventsBeyondTheRoomGiveTheSnapshotUpAndAreNotLost() throws Exception {
        storeMany(SLOT, 100, 500);
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT); // nothing is taken of it
        assertNotNull(snapshot.mark());
        final long seed = 4711;
        for (long s = 100; s < 400; s++) {
            offer(pipeline, message(SLOT, s, seed));
        }
        awaitApplied(SLOT, 399);
        takeAll(snapshot);
        assertEquals(SlotSnapshot.Outcome.OVERTAKEN, snapshot.outcome());
        assertEquals(0, pipeline.failures());
    }

    @Test
    void otherWorkersGoOnWhileNothingIsTakenOfASnapshot() throws Exception {
        storeMany(SLOT, 100, 500);
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        assertNotNull(snapshot.mark());
        storeMany(0, 50, 10); // waits until they are applied
        assertNull(snapshot.outcome());
        assertEquals(500 * 100, snapshot.mark().heldBlocks());
        takeAll(snapshot);
        assertEquals(SlotSnapshot.Outcome.WHOLE, snapshot.outcome());
    }

    @Test
    void aSlotThatIsRetiredMeanwhileHasNoSnapshotAndItsWaitingEventsMeanNothing() throws Exception {
        storeMany(SLOT, 100, 500);
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        final SlotSnapshot asked = pipeline.snapshot(SLOT);
        assertNotNull(snapshot.mark());
        offer(pipeline, message(SLOT, 100, 1));
        final CountDownLatch swept = new CountDownLatch(1);
        pipeline.retire(SLOT, swept::countDown);
        swept.await();
        takeAll(snapshot);
        takeAll(asked);
        assertEquals(SlotSnapshot.Outcome.RETIRED, snapshot.outcome());
        assertEquals(SlotSnapshot.Outcome.RETIRED, asked.outcome());
        assertEquals(0, index.heldBlocks(SLOT));
        storeMany(SLOT, 1, 3);
        assertEquals(3, index.heldBlocks(SLOT));
    }

    @Test
    void aSnapshotThatIsClosedLetsTheEventsGoOn() throws Exception {
        storeMany(SLOT, 100, 500);
        try (SlotSnapshot snapshot = pipeline.snapshot(SLOT)) {
            assertNotNull(snapshot.mark());
            offer(pipeline, message(SLOT, 100, 1));
        }
        awaitApplied(SLOT, 100);
    }

    @Test
    void aClosedPipelineEndsASnapshot() throws Exception {
        storeMany(SLOT, 100, 500);
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        assertNotNull(snapshot.mark());
        pipeline.close();
        takeAll(snapshot);
        assertEquals(SlotSnapshot.Outcome.CLOSED, snapshot.outcome());
    }

    @Test
    void aSlotWithoutAMessageHasNoSnapshot() throws Exception {
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        assertNull(snapshot.mark());
        assertNull(snapshot.take());
        assertEquals(SlotSnapshot.Outcome.NO_MESSAGE, snapshot.outcome());
    }

    @Test
    void aViewThatIsNotCompleteSaysSoUntilItIsCleared() throws Exception {
        final KvBatch batch = new KvBatch();
        batch.reset(SLOT, 5, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.addStored(false, 4711, new long[] {1}, new long[] {1}, 1); // an unknown parent
        batch.ofMessage(50, true);
        offer(pipeline, batch);
        SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        assertFalse(snapshot.mark().complete());
        takeAll(snapshot);
        batch.reset(SLOT, 6, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.addCleared();
        batch.ofMessage(60, true);
        offer(pipeline, batch);
        awaitApplied(SLOT, 6);
        snapshot = pipeline.snapshot(SLOT);
        assertTrue(snapshot.mark().complete());
        takeAll(snapshot);
        batch.reset(SLOT, 7, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.ofMessage(70, false); // messages before it are missing
        offer(pipeline, batch);
        awaitApplied(SLOT, 7);
        snapshot = pipeline.snapshot(SLOT);
        assertFalse(snapshot.mark().complete());
        takeAll(snapshot);
    }

    /** As a stream sends it that has found the ring full before. */
    @Test
    void aSlotThatWasClearedBesideItsMessagesIsAtNone() throws Exception {
        storeMany(SLOT, 2, 3);
        final KvBatch clear = new KvBatch();
        clear.reset(SLOT, 1, CopyRule.PHYSICAL, false, ApplyListener.NONE); // the last one
        clear.addCleared();
        offer(pipeline, clear);
        Eventually.holds(() -> pipeline.backlog() == 0);
        assertEquals(SlotSnapshot.Outcome.NO_MESSAGE, outcomeOfSnapshot());
        offer(pipeline, message(SLOT, 2, 1));
        awaitApplied(SLOT, 2);
        assertEquals(SlotSnapshot.Outcome.WHOLE, outcomeOfSnapshot());
    }

    /** The part that was applied last may have brought the slot to its message. */
    @Test
    void aSlotWhoseLoadIsDroppedIsAtNoMessage() throws Exception {
        storeMany(0, 1, 300);
        final SlotSnapshot snapshot = pipeline.snapshot(0);
        final List<byte[]> chunks = takeAll(snapshot);
        final CountDownLatch hold = holdWriter();
        try (SlotLoad load = pipeline.load(SLOT)) {
            for (byte[] chunk : chunks) {
                load.records(chunk);
            }
            Thread.currentThread().interrupt();
            assertThrows(
                    InterruptedException.class,
                    () -> load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
            hold.countDown();
            awaitApplied(SLOT, 0);
        }
        assertEquals(SlotSnapshot.Outcome.NO_MESSAGE, outcomeOfSnapshot());
        assertEquals(0, index.heldBlocks(SLOT));
    }

    @Test
    void ofADamagedIndexNothingIsCompleteUntilItIsCleared() throws Exception {
        storeMany(SLOT, 2, 3);
        pipeline.damaged();
        SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        assertFalse(snapshot.mark().complete());
        takeAll(snapshot);
        final KvBatch clear = new KvBatch();
        clear.reset(SLOT, 2, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        clear.addCleared();
        clear.ofMessage(7, true);
        offer(pipeline, clear);
        awaitApplied(SLOT, 2);
        snapshot = pipeline.snapshot(SLOT);
        assertTrue(snapshot.mark().complete());
        takeAll(snapshot);
    }

    private SlotSnapshot.Outcome outcomeOfSnapshot() throws InterruptedException {
        final SlotSnapshot snapshot = pipeline.snapshot(SLOT);
        takeAll(snapshot);
        return snapshot.outcome();
    }

    @Test
    void aLoadThatContradictsItselfLeavesTheSlotEmpty() throws Exception {
        storeMany(0, 1, 300);
        final SlotSnapshot snapshot = pipeline.snapshot(0);
        final List<byte[]> chunks = takeAll(snapshot);
        try (SlotLoad load = pipeline.load(SLOT)) {
            load.records(chunks.getFirst());
            load.records(new byte[] {1, 1, 1, 0, 0, 0, 9, 9});
            assertFalse(load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
        }
        assertEquals(0, index.heldBlocks(SLOT));
        try (SlotLoad load = pipeline.load(SLOT)) { // without its records
            assertFalse(load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
        }
        assertEquals(-1, index.appliedSequence(SLOT));
        try (SlotLoad load = pipeline.load(SLOT)) { // given up by the one that loads
            load.records(chunks.getFirst());
        }
        try (SlotLoad load = pipeline.load(SLOT)) {
            for (byte[] chunk : chunks) {
                load.records(chunk);
            }
            assertTrue(load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
        }
        assertEquals(300, index.heldBlocks(SLOT));
        assertEquals(0, pipeline.failures());
    }

    @ParameterizedTest
    @CsvSource({"PHYSICAL, PHYSICAL", "LAST_COPY, LAST_COPY", "AUTO, PHYSICAL"})
    void aLoadedSlotRemovesByTheRuleOfItsStream(RemovalRule removals, CopyRule rule)
            throws Exception {
        storeMany(0, 1, 300);
        final SlotSnapshot snapshot = pipeline.snapshot(0);
        final List<byte[]> chunks = takeAll(snapshot);
        try (SlotLoad load = pipeline.load(SLOT)) {
            for (byte[] chunk : chunks) {
                load.records(chunk);
            }
            assertTrue(load.finish(snapshot.mark(), removals));
        }
        assertEquals(rule, index.removalRule(SLOT));
    }

    @Test
    void aLoadWaitsWhileTheRingIsFull() throws Exception {
        storeMany(0, 1, 300);
        final SlotSnapshot snapshot = pipeline.snapshot(0);
        final List<byte[]> chunks = takeAll(snapshot);
        final CountDownLatch hold = holdWriter();
        final KvBatch batch = message(0, 1, 1);
        while (pipeline.sink().offer(batch)) {} // until it is full
        final Thread release = Thread.ofPlatform().start(hold::countDown);
        try (SlotLoad load = pipeline.load(SLOT)) {
            for (byte[] chunk : chunks) {
                load.records(chunk);
            }
            assertTrue(load.finish(snapshot.mark(), RemovalRule.PHYSICAL));
        }
        release.join();
        assertEquals(300, index.heldBlocks(SLOT));
    }
}
