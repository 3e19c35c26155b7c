package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.RecoverableMemory;
import io.kvasir.core.memory.StoreCounter;
import io.kvasir.core.memory.StoreRecorder;
import io.kvasir.core.radix.RadixTree;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * The writer is killed after each of its stores: the next process finds the index as it was before
 * the event, or, after the last store, with all of it. The stores are those that the index makes;
 * there is no list of moments.
 */
class KilledWriterTest {
    private static final int SLOTS = 24; // more than a list of holders has room for
    private static final int MESSAGES = Trials.of(6, 150);
    private static final int REOPENED_PER_MESSAGE = 3;

    private static RecoverableMemory.Shape shape(PrefixIndexConfig config) {
        final RecoverableMemory.Shape large = IndexMemory.shape(config, 16);
        return new RecoverableMemory.Shape(96 << 10, large.areaLengths(), large.words());
    }

    private static PrefixIndex indexIn(PrefixIndexConfig config, RecoverableMemory memory) {
        return new PrefixIndex(config, new MemoryGate("a test"), IndexMemory.of(memory));
    }

    /** An index whose stores are recorded, some of it full. */
    private static final class Recorded implements AutoCloseable {
        final PrefixIndexConfig config;
        final RecoverableMemory.Shape shape;
        final OffHeap scratch;
        final PrefixIndex index;
        final SlotEvents events;
        final StoreRecorder recorder;

        Recorded(Random random, CapacityRule rule) {
            config = new PrefixIndexConfig(SLOTS, 60, 400, 64 << 10, rule);
            shape = shape(config);
            final OffHeap whole = OffHeap.allocate(shape.length());
            final RecoverableMemory memory =
                    StoreRecorder.create(whole, shape, IndexMemory.constants(1337));
            scratch = OffHeap.allocate(shape.length());
            index = indexIn(config, memory);
            events = new SlotEvents(random, SLOTS);
            for (int i = 0; i < 300; i++) {
                events.next(index, random.nextInt(SLOTS));
            }
            for (int i = 0; i < 10_000 && !missesBlocks(); i++) {
                events.next(index, random.nextInt(SLOTS));
            }
            index.commit();
            recorder = new StoreRecorder(whole, memory);
        }

        private boolean missesBlocks() {
            return IntStream.range(0, SLOTS).anyMatch(slot -> index.missingBlocks(slot) > 0);
        }

        byte[] areas(byte[] image) {
            return Arrays.copyOfRange(image, StoreRecorder.areas(shape), image.length);
        }

        /** What the next process has of the memory that is left; null if it cannot be used. */
        byte[] areasAfterRestart(byte[] image) {
            StoreRecorder.load(scratch, image);
            return StoreRecorder.reopen(scratch, shape) == null
                    ? null
                    : areas(StoreRecorder.image(scratch));
        }

        /** The index of the next process. */
        PrefixIndex reopen(byte[] image) {
            final OffHeap left = OffHeap.allocate(shape.length());
            StoreRecorder.load(left, image);
            return indexIn(config, StoreRecorder.reopen(left, shape));
        }

        @Override
        public void close() {
            index.close();
            scratch.close();
        }
    }

    @Tag("trials")
    @ParameterizedTest
    @EnumSource(CapacityRule.class)
    void aWriterKilledAfterAnyOfItsStoresLeavesTheIndexBeforeOrAfterTheMessage(CapacityRule rule) {
        killAfterEachStore(rule);
    }

    private static void killAfterEachStore(CapacityRule rule) {
        if (!StoreCounter.isPossible()) {
            return;
        }
        final Random random = new Random(Seeds.next("KilledWriterTest " + rule));
        long points = 0;
        long full = 0;
        long maps = 0;
        int m = 0;
        try (Recorded all = new Recorded(random, rule)) {
            for (; m < MESSAGES || full == 0 || maps == 0; m++) {
                assertTrue(m < 3_000, full + " times full, " + maps + " maps");
                final SlotMessage message = SlotMessage.next(all.events, SLOTS, m);
                final IndexAnswers before = IndexAnswers.of(all.index, all.events);
                final byte[] image = all.recorder.image();
                final byte[] areasBefore = all.areas(image);
                all.recorder.clear();
                message.apply(all.index);
                final byte[] areasAfter = all.areas(all.recorder.image());
                final int stores = all.recorder.count();
                for (int n = 0; n < stores; n++) {
                    final String when = "message " + m + ", killed after store " + n;
                    assertArrayEquals(areasBefore, all.areasAfterRestart(image), when);
                    if (random.nextInt(stores) < REOPENED_PER_MESSAGE) {
                        goOn(all, image, before, message, when);
                    }
                    all.recorder.apply(n, image);
                }
                assertArrayEquals(areasAfter, all.areasAfterRestart(image), "message " + m);
                try (PrefixIndex next = all.reopen(image)) {
                    assertEquals(
                            IndexAnswers.of(all.index, all.events),
                            IndexAnswers.of(next, all.events));
                    IndexInvariants.check(next);
                }
                points += stores;
                maps += hasHolderMap(all.index.tree()) ? 1 : 0;
                full += all.index.missingBlocks(message.slot()) > 0 ? 1 : 0;
            }
        }
        assertTrue(points > 10L * m, "too few stores: " + points);
        System.out.println("killed after each of " + points + " stores, " + rule);
    }

    private static boolean hasHolderMap(RadixTree tree) {
        return Arrays.stream(tree.children(tree.root())).anyMatch(tree::hasHolderMap);
    }

    /** The next process answers as before the message, and gets it again from the engine. */
    private static void goOn(
            Recorded all, byte[] image, IndexAnswers before, SlotMessage message, String when) {
        try (PrefixIndex next = all.reopen(image)) {
            assertEquals(before, IndexAnswers.of(next, all.events), when);
            IndexInvariants.check(next);
            message.apply(next);
            IndexInvariants.check(next);
            if (all.config.capacityRule() == CapacityRule.REFUSE) { // else others may be evicted
                assertEquals(
                        IndexAnswers.of(all.index, all.events),
                        IndexAnswers.of(next, all.events),
                        when);
            }
        }
    }

    /** What the test above relies on: it would see a change that is not taken back. */
    @Test
    void withoutTheLogAKilledWriterLeavesAnotherIndex() {
        if (!StoreCounter.isPossible()) {
            return;
        }
        final Random random = new Random(Seeds.next("KilledWriterTest without log"));
        int others = 0;
        int stores = 0;
        try (Recorded all = new Recorded(random, CapacityRule.REFUSE)) {
            for (int m = 0; m < 10; m++) {
                final SlotMessage message = SlotMessage.next(all.events, SLOTS, m);
                final byte[] image = all.recorder.image();
                final byte[] areasBefore = all.areas(image);
                all.recorder.clear();
                message.apply(all.index);
                stores += all.recorder.count();
                for (int n = 0; n < all.recorder.count(); n++) {
                    all.recorder.apply(n, image);
                    others += Arrays.equals(areasBefore, all.areas(image)) ? 0 : 1;
                }
            }
        }
        assertTrue(others > stores / 2, others + " of " + stores);
    }

    /** Else a slot would be restored as it was at an earlier message. */
    @Test
    void nothingIsLeftToBeSavedOfSlotsThatNoEventHasNamed() {
        if (!StoreCounter.isPossible()) {
            return;
        }
        final Random random = new Random(Seeds.next("KilledWriterTest saved"));
        for (CapacityRule rule : CapacityRule.values()) {
            try (Recorded all = new Recorded(random, rule)) {
                for (int m = 0; m < 400; m++) {
                    SlotMessage.next(all.events, SLOTS, m).apply(all.index);
                    all.recorder.clear();
                    all.index.checkpoint().touchAll();
                    all.index.commit();
                    assertEquals(0, all.recorder.count(), "message " + m);
                }
            }
        }
    }

    @Test
    void anIndexThatIsNotKeptCommitsNothingAndHasNoLabels() {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 10, 10))) {
            index.commit();
            index.keptWord(0, 1, 5);
            assertEquals(0, index.keptWord(0, 1));
            assertFalse(index.keptLabel(0, new byte[] {1}));
            assertEquals(0, index.keptLabel(0).length);
            assertFalse(index.isKept());
        }
    }

    @Test
    void labelsAreKeptUnlessTheyAreTooLong() {
        final PrefixIndexConfig config = new PrefixIndexConfig(2, 10, 10);
        final RecoverableMemory.Shape shape = shape(config);
        final OffHeap whole = OffHeap.allocate(shape.length());
        final byte[] label = "worker/1".getBytes(StandardCharsets.UTF_8);
        final OffHeap left = OffHeap.allocate(shape.length());
        try (PrefixIndex index =
                indexIn(config, StoreRecorder.create(whole, shape, IndexMemory.constants(1)))) {
            assertTrue(index.keptLabel(0, label));
            assertTrue(index.keptLabel(1, label));
            assertFalse(index.keptLabel(1, new byte[500]));
            index.commit();
            index.keptLabel(0, new byte[] {1});
            StoreRecorder.load(left, StoreRecorder.image(whole));
        }
        try (PrefixIndex next = indexIn(config, StoreRecorder.reopen(left, shape))) {
            assertArrayEquals(label, next.keptLabel(0));
            assertEquals(0, next.keptLabel(1).length);
        }
    }
}
