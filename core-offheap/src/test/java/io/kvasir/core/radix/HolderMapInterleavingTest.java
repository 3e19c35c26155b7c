package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.IndexInvariants;
import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.RadixMatcher.Step;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

/**
 * As {@link RadixMatcherInterleavingTest}, with a run that so many slots hold that its holders are
 * a map. Each test fails without the protection beside it:
 *
 * <pre>
 *   what happens under the reader         protection                       without it the reader says
 *   ------------------------------------- -------------------------------- ------------------------------
 *   blocks stored behind full holders     no append to a run with a map    they hold those blocks
 *   a full holder drops its last block    version behind the partial bit   it holds nothing
 *   a partial holder gets the rest        full first, partial read first   it holds nothing
 *   list becomes map, map becomes list    version before memory goes back  slots that hold another run
 *   sets are parted, then the run is cut  takeBack                         a slot in no set, or in two
 * </pre>
 */
class HolderMapInterleavingTest {
    private static final int SLOTS = 55;
    private static final int LIST = 16; // holders that are still a list
    private static final int MANY = 40;

    private final WatchedIndex index = new WatchedIndex(SLOTS, 128 << 10);
    private final List<Integer> imitations = new ArrayList<>();

    @AfterEach
    void everythingAgreesAfterwards() {
        imitations.forEach(index.arena()::free);
        IndexInvariants.check(index.index());
        index.close();
    }

    @Test
    void aListBecomesAMapAndAListAgain() {
        store(0, LIST, "abcd");
        assertFalse(isMap("a"));
        store(LIST, LIST + 1, "abcd");
        assertTrue(isMap("a"));
        assertEquals(LIST + 1, index.match("abcd").matchedSlots());
        drop(LIST / 2 + 1, LIST + 1, "abcd", 0);
        assertTrue(isMap("a"));
        drop(LIST / 2, LIST / 2 + 1, "abcd", 0);
        assertFalse(isMap("a"));
        assertEquals(LIST / 2, index.match("abcd").matchedSlots());
    }

    @Test
    void aMapBecomesAListInTheHeaderWhereNoMemoryIsLeft() {
        final int fit = RunDescriptor.INLINE_HOLDERS;
        store(0, MANY, "abcd");
        store(0, MANY, "wxyz"); // tables of a slot that still holds something are not given back
        for (int left = MANY - 1; left >= fit; left--) {
            assertTrue(isMap("a"));
            imitations.addAll(ArenaBlocks.takeAll(index.arena(), 0));
            drop(left, left + 1, "abcd", 0);
        }
        assertFalse(isMap("a"));
        assertEquals(fit, index.match("abcd").matchedSlots());
        store(fit, fit + 1, "abcd");
        assertEquals(fit + 1, index.match("abcd").matchedSlots());
    }

    @Test
    void slotsThatHoldTheSameAreOneSet() {
        store(0, MANY, "abcd");
        index.store(3, "abcdef");
        final OverlapScores found = index.match("abcdef");
        // asking for slots lists them all; so the sets are looked at in a match of their own
        index.index().match(WatchedIndex.prompt("abcdef"), 6, found);
        assertEquals(1, found.sets());
        assertEquals(4, found.setDepth(0));
        assertEquals(((1L << MANY) - 1) & ~(1L << 3), found.setSlots(0, 0));
        assertEquals(1, found.listedSlots());
        assertEquals(3, found.slotAt(0));
        assertEquals(MANY, found.matchedSlots());
        assertEquals(6, found.depth(3));
        assertEquals(4, found.depth(4));
        assertEquals(0, found.depth(MANY));
    }

    @Test
    void eachSegmentOfASharedPromptThatManyLeaveEndsASet() {
        store(0, SLOTS, "abcd");
        store(0, 43, "abcdefgh");
        store(0, 30, "abcdefghijkl");
        store(0, 29, "abcdefghijklmnop");
        final OverlapScores found = index.match("abcdefghijklmnop");
        index.index().match(WatchedIndex.prompt("abcdefghijklmnop"), 16, found);
        assertEquals(3, found.sets());
        assertEquals(1, found.listedSlots(), "one slot is listed, not a set");
        assertEquals(SLOTS, found.matchedSlots());
        assertEquals(4, found.depth(SLOTS - 1));
        assertEquals(8, found.depth(42));
        assertEquals(12, found.depth(29));
        assertEquals(16, found.depth(28));
    }

    @Test
    void blocksStoredBehindOtherHoldersAreNotTheirs() {
        for (Step step :
                new Step[] {
                    Step.IDENTIFIED, Step.EXTENT_READ, Step.HOLDERS_LOCATED, Step.PARTIAL_READ
                }) {
            final String root = step.name().charAt(0) + (step.name().charAt(2) + "cd");
            store(0, MANY, root);
            final OverlapScores found =
                    index.match(root + "efgh", step, 1, () -> index.store(1, root + "efgh"));
            assertEquals(MANY, found.matchedSlots(), step.name());
            assertEquals(4, found.depth(0));
        }
    }

    @Test
    void aFullHolderThatDropsItsLastBlockStillHoldsTheOthers() {
        store(0, MANY, "abcd");
        final OverlapScores found =
                index.match("abcd", Step.PARTIAL_READ, 1, () -> drop(7, 8, "abcd", 3));
        assertEquals(3, found.depth(7));
        assertEquals(2, index.taken(Step.IDENTIFIED));
        assertEquals(MANY, found.matchedSlots());
    }

    @Test
    void aPartialHolderThatGetsTheRestIsSeen() {
        store(0, MANY, "abcd");
        drop(7, 8, "abcd", 2);
        for (Step step : new Step[] {Step.HOLDERS_LOCATED, Step.PARTIAL_READ}) {
            final OverlapScores found = index.match("abcd", step, 1, () -> index.store(7, "abcd"));
            assertEquals(4, found.depth(7));
            assertEquals(1, index.taken(Step.IDENTIFIED));
            drop(7, 8, "abcd", 2);
        }
    }

    @Test
    void aListedSlotIsSeenWhateverItDropsAndGets() {
        // few hold the beginning and are a list; many hold what follows and are a map
        store(0, MANY, "abcdefgh");
        index.store(0, "abcd-");
        for (int slot = LIST / 2; slot < MANY; slot++) {
            index.remove(slot, WatchedIndex.prompt("abcdefgh"), 0, 4, 0, CopyRule.LAST_COPY);
        }
        assertFalse(isMap("a"));
        for (int listed = 1; listed <= LIST / 2; listed++) {
            final OverlapScores less =
                    index.match(
                            "abcdefgh",
                            Step.PARTIAL_READ,
                            listed,
                            () -> index.drop(5, "abcdefgh", 6));
            assertTrue(less.depth(5) >= 6, "full, then partial");
            final OverlapScores more =
                    index.match(
                            "abcdefgh",
                            Step.PARTIAL_READ,
                            listed,
                            () -> index.store(5, "abcdefgh"));
            assertTrue(more.depth(5) >= 6, "partial, then full");
        }
    }

    @Test
    void slotsThatJoinAndLeaveMakeNoReaderReadAgain() {
        store(0, MANY, "abcd");
        for (Step step : Step.values()) {
            final OverlapScores found =
                    index.match(
                            "abcd",
                            step,
                            1,
                            () -> {
                                store(50, 52, "abcd");
                                drop(50, 51, "abcd", 0);
                            });
            assertTrue(found.matchedSlots() >= MANY, step::name);
            assertEquals(1, index.taken(Step.IDENTIFIED), step::name);
            drop(51, 52, "abcd", 0);
        }
    }

    @Test
    void aListThatBecameAMapAndIsOtherMemoryNowIsReadAgain() {
        store(0, LIST, "abcd");
        final OverlapScores found =
                index.match(
                        "abcd",
                        Step.HOLDERS_LOCATED,
                        1,
                        () -> {
                            store(LIST, LIST + 1, "abcd");
                            imitate(RunDescriptor.holder(50, 4, 0), RunDescriptor.holder(51, 4, 0));
                        });
        assertEquals(LIST + 1, found.matchedSlots());
        assertEquals(2, index.taken(Step.IDENTIFIED));
    }

    @Test
    void aMapThatBecameAListAndIsOtherMemoryNowIsReadAgain() {
        // with a slot beyond the last one among the full, and one among the partial
        for (long other : new long[] {-1, 1L << 60, 0x0002_0002_0002_0002L}) {
            store(0, MANY, "abcd");
            final OverlapScores found =
                    index.match(
                            "abcd",
                            Step.HOLDERS_LOCATED,
                            1,
                            () -> {
                                drop(3, MANY, "abcd", 0);
                                imitate(0x0001_0001_0001_0001L, other);
                            });
            assertEquals("{0=4, 1=4, 2=4}", found.toString());
            assertEquals(2, index.taken(Step.IDENTIFIED));
            imitations.forEach(index.arena()::free);
            imitations.clear();
        }
    }

    @Test
    void aRunCutUnderTheReaderTakesNoneOutOfTheSetsBefore() {
        for (int last : new int[] {MANY, 12}) { // the second run is a map, and a list
            final String first = last + "cd";
            final String both = first + "efgh";
            store(0, MANY, first);
            index.store(MANY, first + "-");
            store(0, last, both);
            drop(2, 3, both, 6);
            final OverlapScores found =
                    index.match(both, Step.CREDITED, 2, () -> drop(0, last, both, 6));
            assertEquals(3, index.taken(Step.IDENTIFIED));
            assertEquals(MANY + 1, found.matchedSlots());
            assertEquals(6, found.depth(2));
            assertEquals(6, found.depth(last - 1));
            assertEquals(4, found.depth(MANY));
        }
    }

    // -- helpers ----------------------------------------------------------------------------

    private void store(int fromSlot, int toSlot, String prompt) {
        for (int slot = fromSlot; slot < toSlot; slot++) {
            index.store(slot, prompt);
        }
    }

    /** Lets slots go of what they hold of a prompt from one block on. */
    private void drop(int fromSlot, int toSlot, String prompt, int from) {
        for (int slot = fromSlot; slot < toSlot; slot++) {
            final int held = index.heldLength(slot, WatchedIndex.prompt(prompt));
            index.drop(slot, prompt.substring(0, held), Math.min(from, held));
        }
    }

    private boolean isMap(String prompt) {
        final RadixTree tree = index.tree();
        return tree.hasHolderMap(tree.child(tree.root(), prompt.charAt(0)));
    }

    /** Uses all free lines for something that reads as holders. */
    private void imitate(long even, long odd) {
        final BuddyArena arena = index.arena();
        final long[] words = {even, odd, even, odd, even, odd, even, odd};
        for (int line : ArenaBlocks.takeAll(arena, 0)) {
            arena.memory().putLongs(BuddyArena.offset(line), words, 0, words.length);
            imitations.add(line);
        }
    }
}
