package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Random operations on an {@link EngineHashIndex} and on a map. */
class EngineHashIndexTest {
    private static final EngineHashIndex.Key KEY =
            new EngineHashIndex.Key(0x0123_4567_89AB_CDEFL, 0x9E37_79B9_7F4A_7C15L);

    private final BuddyArena arena = new BuddyArena(4 << 20);
    private final Map<Long, Integer> entries = new HashMap<>();
    private final Map<Integer, Long> names = new HashMap<>();
    private final List<Long> known = new ArrayList<>();
    private final EngineHashIndex index =
            new EngineHashIndex(arena, KEY, new EngineHashIndex.Batch(), names::get);
    private int lastEntry;

    @AfterEach
    void close() {
        arena.close();
    }

    @ParameterizedTest
    @ValueSource(ints = {3, 40, 700, 20_000})
    void findsWhatAMapFindsWhileItGrowsAndShrinks(int most) {
        final Random random = new Random(Seeds.next("EngineHashIndexTest " + most));
        for (int round = 0; round < 6; round++) {
            final int target = round % 2 == 0 ? most : random.nextInt(most);
            for (int i = 0; i < 3 * most && entries.size() != target; i++) {
                step(random, entries.size() < target ? 3 : 1);
            }
            check();
        }
        while (!known.isEmpty()) {
            removeAt(known.size() - 1);
        }
        check();
        assertEquals(0, arena.usedLines());
    }

    private void step(Random random, int insertions) {
        if (random.nextInt(4) < insertions || known.isEmpty()) {
            insert(random.nextLong());
        } else {
            final int at = random.nextInt(known.size());
            switch (random.nextInt(8)) {
                case 0 -> assertInsertion(EngineHashIndex.Insertion.KNOWN, known.get(at));
                case 1 -> replace(known.get(at));
                default -> removeAt(at);
            }
        }
    }

    private void insert(long name) {
        assertInsertion(EngineHashIndex.Insertion.DONE, name);
        entries.put(name, lastEntry);
        known.add(name);
    }

    private void assertInsertion(EngineHashIndex.Insertion expected, long name) {
        names.put(++lastEntry, name);
        assertEquals(expected, index.insert(name, lastEntry));
    }

    private void replace(long name) {
        names.put(++lastEntry, name);
        index.replace(name, entries.get(name), lastEntry);
        names.remove(entries.put(name, lastEntry));
    }

    private void removeAt(int at) {
        final long name = known.set(at, known.getLast());
        known.removeLast();
        final int entry = entries.remove(name);
        index.remove(name, entry);
        names.remove(entry);
    }

    private void check() {
        assertEquals(entries.size(), index.size());
        entries.forEach((name, entry) -> assertEquals(entry, index.find(name)));
        final Random random = new Random(entries.size());
        for (int i = 0; i < 1_000; i++) {
            final long name = random.nextLong();
            assertEquals(entries.getOrDefault(name, EngineHashIndex.NO_ENTRY), index.find(name));
        }
        final int enough = Math.max(1, entries.size() / 2);
        assertTrue(index.bucketCount() <= enough, () -> "buckets=" + index.bucketCount());
    }

    @Test
    void anEngineHashThatIsNotThereCannotBeTakenAway() {
        insert(7);
        assertThrows(IllegalStateException.class, () -> index.remove(8, lastEntry));
        assertThrows(IllegalStateException.class, () -> index.remove(7, lastEntry + 1));
        assertEquals(lastEntry, index.find(7));
    }

    private int insertBatch(EngineHashIndex.Insertion expected, long... batch) {
        final int first = lastEntry + 1;
        for (long name : batch) {
            names.put(++lastEntry, name);
        }
        assertEquals(expected, index.insert(batch, 0, batch.length, first));
        return first;
    }

    @Test
    void batchesThatAreTakenAwayGiveTheirBucketsBack() {
        final Random random = new Random(Seeds.next("EngineHashIndexTest.batches"));
        final List<long[]> batches = new ArrayList<>();
        final List<Integer> firsts = new ArrayList<>();
        while (batches.size() < 100) {
            batches.add(random.longs(EngineHashIndex.Batch.LENGTH).toArray());
            firsts.add(insertBatch(EngineHashIndex.Insertion.DONE, batches.getLast()));
        }
        while (batches.size() > 1) {
            takeAway(batches.removeLast(), firsts.removeLast());
        }
        for (int i = 0; i < EngineHashIndex.Batch.LENGTH; i++) {
            entries.put(batches.getFirst()[i], firsts.getFirst() + i);
        }
        check();
        takeAway(batches.getFirst(), firsts.getFirst());
        assertEquals(0, arena.usedLines());
    }

    private void takeAway(long[] batch, int first) {
        index.remove(batch, 0, batch.length, first, 1);
    }

    @Test
    void aBatchWithAnEngineHashThatIsThereLeavesNothingBehind() {
        insertBatch(EngineHashIndex.Insertion.KNOWN, 5, 6, 5);
        assertEquals(0, index.size());
        assertEquals(0, arena.usedLines());
    }

    @Test
    void aBatchWithoutMemoryGivesBackTheBucketsMadeForIt() {
        final List<Integer> taken = ArenaBlocks.takeAll(arena, 0);
        for (int i = 0; i < 8; i++) { // room for buckets of some of the batch
            arena.free(taken.removeLast());
        }
        final long before = arena.usedLines();
        final long[] batch = new Random(1).longs(EngineHashIndex.Batch.LENGTH).toArray();
        insertBatch(EngineHashIndex.Insertion.NO_MEMORY, batch);
        assertEquals(0, index.size());
        assertEquals(before, arena.usedLines());
        insertBatch(EngineHashIndex.Insertion.DONE, 1, 2, 3);
    }

    @Test
    void clearingGivesAllMemoryBack() {
        for (long name = 0; name < 10_000; name++) {
            insert(name);
        }
        assertNotEquals(0, arena.usedLines());
        index.clear();
        assertEquals(0, arena.usedLines());
        assertEquals(0, index.size());
        assertEquals(EngineHashIndex.NO_ENTRY, index.find(5));
    }

    @Test
    void withoutMemoryToGrowItFillsUpAndRefusesAndLosesNothing() {
        for (long name = 0; name < 1_000; name++) {
            insert(name);
        }
        final List<Integer> taken = ArenaBlocks.takeAll(arena, 0);
        long name = 1_000;
        names.put(++lastEntry, name);
        while (index.insert(name, lastEntry) == EngineHashIndex.Insertion.DONE) {
            entries.put(name, lastEntry);
            known.add(name);
            name++;
            names.put(++lastEntry, name);
        }
        assertTrue(name > 1_000, "room in buckets that there are");
        check();
        taken.forEach(arena::free);
        insert(name);
        check();
    }

    /** A bucket of 4 with all entries, all of which stay in it when it is split. */
    @Test
    void aSplitNeedsNoMemoryBeyondThatOfTheNewBucket() {
        long name = 0;
        for (; index.bucketCount() < 4 || index.size() < 4 * 7; name++) {
            if (lowBits(name) == 0) {
                insert(name);
            }
        }
        final List<Integer> taken = ArenaBlocks.takeAll(arena, 2);
        ArenaBlocks.takeAll(arena, 0);
        for (; index.overflowUsed() < 2; name++) {
            if (lowBits(name) == 0) {
                insert(name);
            }
        }
        arena.free(taken.getFirst());
        while (lowBits(name) != 0) {
            name++;
        }
        insert(name);
        assertTrue(index.bucketCount() > 4, "there was room for another bucket");
        check();
    }

    /** The bits of the hash that choose one of 8 buckets. */
    private static int lowBits(long name) {
        final long keyed = name ^ KEY.mask();
        return (int) (keyed * KEY.factor() ^ Math.unsignedMultiplyHigh(keyed, KEY.factor())) & 7;
    }

    @Test
    void whatOperationsCostDoesNotGrowWithWhatIsThere() {
        final double small = stepsPerOperation(1_000);
        final double large = stepsPerOperation(50_000);
        assertTrue(large < 4, () -> "steps per operation: " + small + ", " + large);
    }

    private double stepsPerOperation(int size) {
        final Random random = new Random(size);
        while (entries.size() < size) {
            insert(random.nextLong());
        }
        final long before = index.steps();
        final int operations = 10_000;
        for (int i = 0; i < operations; i++) {
            index.find(random.nextLong());
            insert(random.nextLong());
            final int at = random.nextInt(known.size());
            index.find(known.get(at));
            removeAt(at);
        }
        return (index.steps() - before) / (4.0 * operations);
    }

    @Test
    void aGrowingTableMovesNoMoreThanTwoBucketsAtATime() {
        long most = 0;
        for (long name = 0; name < 100_000; name++) {
            final long before = index.steps();
            insert(name * 0x9E37_79B9L);
            most = Math.max(most, index.steps() - before);
        }
        final long steps = most;
        assertTrue(steps <= 80, () -> "steps of one insertion: " + steps);
    }
}
