package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.ArenaClaims;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.core.radix.RadixInvariants;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/** A path that finds no memory leaves all as it was, wherever it comes to. */
class RefCountedPrefixesFullTest {
    private static final int SLOTS = 128;
    private static final int BLOCKS = 64;

    /** More slots than a run may have that is joined. */
    private static final int MANY = 70;

    private final RefCountedPrefixes paths = new RefCountedPrefixes(SLOTS, 1 << 16, 1 << 20);
    private final BuddyArena arena = paths.arena();
    private final long[] prompt = LongStream.range(1_000, 1_000 + BLOCKS).toArray();

    @AfterEach
    void close() {
        paths.close();
    }

    /**
     * Two segments of 32 blocks that need not be two, each with as many holders as headers take.
     */
    private void splitNeedlessly() {
        for (int slot = 0; slot < MANY; slot++) {
            paths.enter(slot, prompt, BLOCKS);
        }
        final int array = paths.endArray();
        final int end = paths.endOffset();
        paths.enter(0, prompt, BLOCKS / 2);
        paths.leave(0, paths.endArray(), paths.endOffset());
        for (int slot = 3; slot < MANY; slot++) {
            paths.leave(slot, array, end);
        }
        paths.enter(3, prompt, BLOCKS);
        paths.enter(4, prompt, BLOCKS);
        assertEquals(2, paths.runs());
    }

    /** Takes the memory but for this many blocks of two lines; what was taken. */
    private List<Integer> exhaust(int blocks) {
        final List<Integer> pairs = new ArrayList<>(ArenaBlocks.takeAll(arena, 1));
        final List<Integer> taken = new ArrayList<>(ArenaBlocks.takeAll(arena, 0));
        for (int i = 0; i < blocks; i++) {
            arena.free(pairs.removeLast());
        }
        taken.addAll(pairs);
        return taken;
    }

    private int[] depths() {
        final OverlapScores scores = new OverlapScores(SLOTS);
        paths.match(prompt, BLOCKS, scores);
        final int[] depths = new int[SLOTS];
        for (int slot = 0; slot < SLOTS; slot++) {
            depths[slot] = scores.depth(slot);
        }
        return depths;
    }

    private void check() {
        final ArenaClaims claims = new ArenaClaims(arena);
        RadixInvariants.check(paths.tree(), arena, SLOTS, claims);
        claims.checkAllClaimed();
    }

    /**
     * Memory is out at the upper segment, at the lower one that is split, at the hashes that differ
     * there, and at the table of two children.
     */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3})
    void aSplitBelowANeedlessOneIsUndone(int blocks) {
        splitNeedlessly();
        final int[] before = depths();
        final long used = paths.used();
        final List<Integer> taken = exhaust(blocks);
        final long[] other = prompt.clone();
        other[48] = 7;
        assertEquals(RefCountedPrefixes.FULL, paths.enter(5, other, BLOCKS));
        taken.forEach(arena::free);
        check();
        assertEquals(used, paths.used());
        assertArrayEquals(before, depths());
    }
}
