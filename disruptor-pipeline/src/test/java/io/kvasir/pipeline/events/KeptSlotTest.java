package io.kvasir.pipeline.events;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** What the pipeline of a later process finds in the memory of an index. */
class KeptSlotTest {
    private static final PrefixIndexConfig CONFIG = new PrefixIndexConfig(4, 1_000, 2_000);
    private static final byte[] LABEL = "0/w".getBytes(StandardCharsets.UTF_8);

    @TempDir Path folder;

    /** An index in a file and its pipeline. */
    private final class Running implements AutoCloseable {
        final IndexMemory memory;
        final PrefixIndex index;
        final IndexPipeline pipeline;

        Running() throws IOException {
            this(0);
        }

        Running(long savedMs) throws IOException {
            memory = IndexMemory.open(folder.resolve("index"), CONFIG, 16, 1L, 0, savedMs);
            index = new PrefixIndex(CONFIG, new MemoryGate("a test"), memory);
            pipeline = new IndexPipeline(IndexPipelineConfig.defaults(), index);
        }

        void apply(KvBatch batch) {
            final long before = pipeline.applied();
            Eventually.holds(() -> pipeline.sink().offer(batch));
            Eventually.holds(() -> pipeline.applied() == before + batch.operations());
        }

        @Override
        public void close() {
            pipeline.close();
            index.close();
        }
    }

    private static KvBatch message(int slot, long sequence, CopyRule rule) {
        final KvBatch batch = new KvBatch();
        batch.reset(slot, sequence, rule, false, ApplyListener.NONE);
        final long[] hashes = {100 * sequence + 1, 100 * sequence + 2};
        batch.addStored(true, 0, hashes, hashes, 2);
        batch.ofMessage(7 * sequence, true);
        return batch;
    }

    @Test
    void aSlotIsAsFarAsItsLastMessageAndKnowsWhatItsStreamHadLearned() throws Exception {
        try (Running running = new Running()) {
            assertEquals(List.of(), running.pipeline.keptSlots());
            running.pipeline.label(2, LABEL);
            running.apply(message(2, 0, CopyRule.PHYSICAL));
            final KvBatch last = message(2, 1, CopyRule.LAST_COPY);
            last.learned(5, true, false);
            running.apply(last);
        }
        try (Running running = new Running()) {
            assertTrue(running.memory.isReopened());
            final KeptSlot kept = running.pipeline.keptSlots().getFirst();
            assertEquals(1, running.pipeline.keptSlots().size());
            assertEquals(2, kept.slot());
            assertArrayEquals(LABEL, kept.label());
            assertTrue(kept.isResumable());
            assertEquals(new SlotMark(1, 7, true, 4, 0, 0), kept.markOrNull());
            assertEquals(
                    new StreamMemory(
                            RemovalRule.LAST_COPY, new DecoderMemory(5, true, new long[0])),
                    kept.memoryOrNull());
            assertEquals(4, running.index.heldBlocks(2));
        }
    }

    @Test
    void aSlotWithSaltedChainsOrWithoutLabelOrMarkCannotBeGoneOnWith() throws Exception {
        try (Running running = new Running()) {
            running.pipeline.label(0, LABEL);
            final KvBatch salted = message(0, 0, CopyRule.PHYSICAL);
            salted.learned(-1, false, true);
            running.apply(salted);
            running.apply(message(1, 0, CopyRule.PHYSICAL)); // no label
            running.pipeline.label(2, LABEL);
            final KvBatch noMessage = new KvBatch();
            noMessage.reset(2, 3, CopyRule.PHYSICAL, false, ApplyListener.NONE);
            noMessage.addStored(true, 0, new long[] {1}, new long[] {1}, 1);
            running.apply(noMessage);
        }
        try (Running running = new Running()) {
            final List<KeptSlot> kept = running.pipeline.keptSlots();
            assertEquals(3, kept.size());
            assertNull(kept.get(0).memoryOrNull());
            assertEquals(0, kept.get(1).label().length);
            assertNull(kept.get(2).markOrNull());
            kept.forEach(slot -> assertFalse(slot.isResumable()));
        }
    }

    private static KvBatch planeMessage(int slot, long sequence, long position) {
        final KvBatch batch = message(slot, sequence, CopyRule.LAST_COPY);
        batch.at(position);
        return batch;
    }

    @Test
    void howFarAnEventPlaneIsIsKeptAsAWholeAndForEachSlot() throws Exception {
        try (Running running = new Running()) {
            assertNull(running.pipeline.keptPositionOrNull());
            running.pipeline.keepPosition(new PlanePosition(5, 0));
            running.pipeline.label(1, LABEL);
            running.apply(planeMessage(1, 0, 21));
            running.pipeline.keepPosition(new PlanePosition(5, 20));
            running.apply(planeMessage(2, 0, 22)); // behind the position, so that it is there
        }
        try (Running running = new Running()) {
            assertEquals(new PlanePosition(5, 20), running.pipeline.keptPositionOrNull());
            assertEquals(21, running.pipeline.keptSlots().getFirst().markOrNull().position());
            running.pipeline.keepPosition(new PlanePosition(6, 0)); // its stream was made anew
            running.apply(planeMessage(2, 1, 1));
        }
        try (Running running = new Running()) {
            assertEquals(new PlanePosition(6, 0), running.pipeline.keptPositionOrNull());
            assertEquals(
                    0,
                    running.pipeline.keptSlots().getFirst().markOrNull().position(),
                    "of the former stream");
            assertEquals(1, running.pipeline.keptSlots().get(1).markOrNull().position());
        }
    }

    @Test
    void anIndexIsNotFoundAgainIfSomethingNewerWasSaved() throws Exception {
        try (Running running = new Running()) {
            running.apply(message(0, 0, CopyRule.PHYSICAL));
        }
        try (Running running = new Running(500)) {
            assertTrue(running.memory.isReopened(), "nothing says from when it is");
            running.pipeline.followed(700);
            running.pipeline.followed(600); // by a clock that was set back
            running.apply(message(0, 1, CopyRule.PHYSICAL));
        }
        try (Running running = new Running(700)) {
            assertTrue(running.memory.isReopened(), "saved of the same process");
            assertEquals(4, running.index.heldBlocks());
        }
        try (Running running = new Running(701)) {
            assertFalse(running.memory.isReopened());
            assertTrue(
                    running.memory.discardedOrNull().contains("1 ms newer"),
                    running.memory.discardedOrNull());
            assertEquals(0, running.index.heldBlocks());
        }
        try (Running running = new Running(701)) {
            assertTrue(running.memory.isReopened());
        }
    }

    @Test
    void nothingIsKeptOfASlotThatWasRetired() throws Exception {
        try (Running running = new Running()) {
            running.pipeline.label(0, LABEL);
            running.apply(message(0, 0, CopyRule.PHYSICAL));
            final CountDownLatch swept = new CountDownLatch(1);
            running.pipeline.retire(0, swept::countDown);
            assertTrue(swept.await(1, TimeUnit.MINUTES));
        }
        try (Running running = new Running()) {
            assertTrue(running.memory.isReopened());
            assertEquals(List.of(), running.pipeline.keptSlots());
            assertEquals(0, running.index.heldBlocks());
        }
    }

    @Test
    void anIndexInWhichAnErrorHappenedIsNotFoundAgain() throws Exception {
        try (Running running = new Running()) {
            running.pipeline.label(0, LABEL);
            running.apply(message(0, 0, CopyRule.PHYSICAL));
            final KvBatch bad = new KvBatch();
            bad.reset(
                    1,
                    0,
                    CopyRule.PHYSICAL,
                    false,
                    new ApplyListener() {
                        @Override
                        public void cleared() {
                            throw new IllegalStateException("on purpose");
                        }
                    });
            bad.addCleared();
            Eventually.holds(() -> running.pipeline.sink().offer(bad));
            Eventually.holds(() -> running.pipeline.failures() > 0);
        }
        try (Running running = new Running()) {
            assertFalse(running.memory.isReopened());
            assertNotNull(running.memory.discardedOrNull());
            assertEquals(0, running.index.heldBlocks());
        }
    }
}
