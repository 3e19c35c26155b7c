package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.RadixMatcher.Step;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Where a run's hashes begin and how many they are is read as one word. The version tells a reader
 * afterwards that it has put together two lives of a run; but by then it has compared hashes, and
 * the extent of one life with the length of the other can lie outside of the memory.
 *
 * <p>Splitting, cutting and growing a run change the length only, so each half of the word then is
 * as good as the other one; the extent changes when a header is used again for another array.
 */
class ExtentIsOneWordTest {
    private static final int SLOTS = 2;
    private static final long[] LONG = LongStream.range(100, 228).toArray();
    private static final long[] SHORT = Arrays.copyOf(LONG, 8);
    private static final Step[] AROUND_THE_EXTENT = {Step.IDENTIFIED, Step.EXTENT_READ};

    private final BuddyArena arena = new BuddyArena(64 << 10);
    private final RadixTree tree = new RadixTree(arena, SLOTS);
    private final OverlapScores scores = new OverlapScores(SLOTS);

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    void theLengthOfALongRunIsNotPutToTheExtentOfAShortOneAtTheEndOfTheMemory() {
        for (Step step : AROUND_THE_EXTENT) {
            final int run = add(0, LONG);
            final long before = extent(run);
            matchBeside(
                    step,
                    () -> {
                        remove(run);
                        assertEquals(run, addAtTheEnd(1, SHORT));
                    });
            assertEquals("{1=8}", scores.toString());
            final long after = extent(run);
            assertTrue(beyondTheEnd(after, before), "the new extent, the old length");
            remove(run);
        }
    }

    @Test
    void theLengthOfANewRunIsNotPutToTheExtentOfAShortOneAtTheEndOfTheMemory() {
        for (Step step : AROUND_THE_EXTENT) {
            final int run = addAtTheEnd(1, SHORT);
            final long before = extent(run);
            matchBeside(
                    step,
                    () -> {
                        remove(run);
                        assertEquals(run, add(0, LONG));
                    });
            assertEquals("{0=128}", scores.toString());
            final long after = extent(run);
            assertTrue(beyondTheEnd(before, after), "the old extent, the new length");
            remove(run);
        }
    }

    /** Matches the long prompt; the writer acts when the reader first comes to a step. */
    private void matchBeside(Step step, Runnable action) {
        final boolean[] done = {false};
        final RadixMatcher reader =
                new RadixMatcher(arena.memory(), tree.root(), SLOTS, tree.runChildren().secret()) {
                    @Override
                    void at(Step now) {
                        if (now == step && !done[0]) {
                            done[0] = true;
                            action.run();
                        }
                    }
                };
        reader.match(LONG, LONG.length, scores);
        assertTrue(done[0], step::name);
    }

    private int add(int slot, long[] hashes) {
        final int run = tree.addChild(tree.root(), hashes, 0, hashes.length);
        assertEquals(hashes.length, tree.length(run));
        assertTrue(tree.addHolder(run, slot, hashes.length, 0) != RadixTree.NO_HOLDER);
        return run;
    }

    /** Adds a run where all of the memory is in use but the last line. */
    private int addAtTheEnd(int slot, long[] hashes) {
        final List<Integer> lines = ArenaBlocks.takeAll(arena, 0);
        final int last = lines.stream().mapToInt(Integer::intValue).max().orElseThrow();
        assertEquals(arena.capacityLines(), last);
        arena.free(last);
        final int run = add(slot, hashes);
        lines.stream().filter(line -> line != last).forEach(arena::free);
        return run;
    }

    private void remove(int run) {
        tree.removeHolder(run, 0);
        tree.remove(run);
    }

    private long extent(int run) {
        return arena.memory()
                .getLong(RunDescriptor.headerOffset(run) + RunDescriptor.EXTENT_OFFSET);
    }

    private boolean beyondTheEnd(long extent, long length) {
        return BuddyArena.offset(RunDescriptor.line(extent))
                        + (long) (RunDescriptor.first(extent) + RunDescriptor.length(length))
                                * Long.BYTES
                > BuddyArena.offset(arena.capacityLines() + 1);
    }
}
