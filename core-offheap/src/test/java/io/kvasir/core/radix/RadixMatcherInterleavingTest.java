package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.IndexInvariants;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StoreResult;
import io.kvasir.core.memory.ArenaBlocks;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.radix.RadixMatcher.Step;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * The reader stops at one step, the writer acts, the reader goes on; each letter is a block. What
 * the reader may say is checked by {@link WatchedIndex#match}: only blocks that the slot held at
 * some moment of the call. Each test fails without the protection beside it:
 *
 * <pre>
 *   what happens under the reader         protection                       without it the reader says
 *   ------------------------------------- -------------------------------- ------------------------------
 *   run used again under another parent   parent word of the run           blocks of another prompt
 *   run used again under the same parent  version at freeRun               blocks of another prompt
 *   run split, its rest given up, other   version at finishSplit           the new blocks' holder has the
 *     blocks appended                                                        old ones
 *   run cut, other blocks appended        version at truncate; takeBack    the same
 *   run cut, grown, child used again      structure version in parent word the child's holder has the path
 *   run and its child freed, used again   structure version at freeRun     the same
 *   run grown, child at the new end       depth of the child               blocks without those between
 *   array grown, its memory used again    version at pagesChanged          blocks of another prompt
 *   append beside other holders           leading blocks in each holder     they hold the appended blocks
 *   append behind what was compared       least of leading and compared    blocks that were not asked for
 *   holder page grown, cut, given back     version at pagesChanged (three)  slots that hold another run
 *   table of children grown, given back   version before the number        an exception, or any memory
 *   slots joining and leaving a run       no version for it                (reads it again each time)
 *   a writer that never rests             bounded tries                    nothing, ever
 * </pre>
 *
 * <p>An extent is one word, so what is compared lies in the array that the run had at one moment;
 * whether it is believed is for the version to say; see {@link ExtentIsOneWordTest}.
 */
class RadixMatcherInterleavingTest {
    /** So many that 20 holders are a list; see {@link HolderMapInterleavingTest} for more. */
    private static final int SLOTS = 256;

    private static final Set<Step> STEPS = EnumSet.complementOf(EnumSet.of(Step.PARTIAL_READ));

    private final WatchedIndex index = new WatchedIndex(SLOTS, 64 << 10);
    private final List<Integer> imitations = new ArrayList<>();

    @AfterEach
    void everythingAgreesAfterwards() {
        giveBackImitations();
        IndexInvariants.check(index.index());
        index.close();
    }

    // -- runs used again --------------------------------------------------------------------

    @Test
    void aRunUsedAgainUnderAnotherParentIsNotBelieved() {
        index.store(0, "abcdefgh");
        index.store(0, "abcpqrst");
        index.store(0, "abc-"); // keeps the split
        index.store(1, "abc");
        index.store(1, "ABCdefgh");
        index.store(1, "ABCxyz");
        final int run = run("abcp");
        final OverlapScores found =
                index.match(
                        "abcpqrst",
                        Step.CHILD_FOUND,
                        2,
                        () -> {
                            index.drop(0, "abcpqrst", 3);
                            index.store(1, "ABCpqrst");
                            assertEquals(run, run("ABCp"));
                        });
        assertEquals("{0=3, 1=3}", found.toString());
    }

    @Test
    void aRunUsedAgainUnderTheSameParentIsReadAgain() {
        index.store(0, "abcdefgh");
        index.store(0, "abcpqrst");
        index.store(1, "abc");
        final int run = run("abcp");
        final OverlapScores found =
                index.match(
                        "abcpqrst",
                        Step.COMPARED,
                        2,
                        () -> {
                            index.drop(0, "abcpqrst", 3);
                            index.store(1, "abcpxyzw");
                            assertEquals(run, run("abcp"));
                        });
        assertEquals("{0=3, 1=4}", found.toString());
    }

    @Test
    void aChildOfARunThatWasFreedAndUsedAgainIsNotBelieved() {
        index.store(2, "abcdefgh");
        index.store(1, "abcpqrstuvw");
        index.store(0, "abcpqrstuvwij");
        final int run = run("abcp");
        final int child = run("abcpqrstuvwi");
        final OverlapScores found =
                index.match(
                        "abcpqrstuvwij",
                        Step.CHILD_FOUND,
                        3,
                        () -> {
                            index.drop(0, "abcpqrstuvwij", 3);
                            index.drop(1, "abcpqrstuvw", 3);
                            index.store(2, "abcxyzuvwst"); // so that the run does not grow
                            index.store(1, "abcxyzuvwst");
                            index.store(1, "abcxyzuvwstij");
                            assertEquals(run, run("abcx"));
                            assertEquals(child, run("abcxyzuvwsti"));
                        });
        assertEquals("{0=3, 1=3, 2=3}", found.toString());
    }

    @Test
    void aRunFreedAfterItWasFoundIsAbsent() {
        index.store(0, "abcdefgh");
        index.store(0, "abcpqrst");
        final OverlapScores found =
                index.match("abcpqrst", Step.IDENTIFIED, 2, () -> index.drop(0, "abcpqrst", 3));
        assertEquals("{0=3}", found.toString());
    }

    // -- splits -----------------------------------------------------------------------------

    @Test
    void aSplitUnderTheReaderHidesNothing() {
        for (Step step : STEPS) {
            final String prompt = mark(step) + "abcdefghijklmno";
            index.store(0, prompt);
            final OverlapScores found =
                    index.match(
                            prompt, step, 1, () -> index.store(1, prompt.substring(0, 8) + "-"));
            assertEquals(prompt.length(), found.depth(0), step.name());
        }
    }

    @Test
    void blocksAppendedWhereTheRestOfASplitRunWasAreNotTheOldOnes() {
        index.store(0, "abcdefghijklmnopqrst");
        index.store(1, "abcdefghij");
        final int run = run("a");
        final OverlapScores found =
                index.match(
                        "abcdefghijklmnopqrst",
                        Step.COMPARED,
                        1,
                        () -> {
                            index.store(1, "abcdefghij-");
                            index.drop(1, "abcdefghij-", 10);
                            index.drop(0, "abcdefghijklmnopqrst", 10);
                            assertEquals(0, index.tree().childCount(run));
                            index.store(1, "abcdefghijKLMNOP");
                            assertEquals(16, index.tree().length(run));
                        });
        assertEquals("{0=10, 1=10}", found.toString());
    }

    @Test
    void blocksAppendedToARunWhoseSplitCameToNothingAreNotTheOldOnes() {
        index.store(0, "abcdefghijklmnopqrst");
        index.store(1, "abcdefghij");
        final RadixTree tree = index.tree();
        final int run = run("a");
        final OverlapScores found =
                index.match(
                        "abcdefghijklmnopqrst",
                        Step.COMPARED,
                        1,
                        () -> {
                            // a split that no child follows, so that no table comes and goes
                            imitateTables('-');
                            final long[] other = WatchedIndex.prompt("abcdefghij-");
                            assertEquals(StoreResult.CAPACITY, index.store(1, other));
                            assertEquals(20, tree.length(run));
                            assertEquals(0, tree.childCount(run));
                            giveBackImitations();
                            index.drop(0, "abcdefghijklmnopqrst", 10);
                            index.store(1, "abcdefghijKLMNOP");
                            assertEquals(16, tree.length(run));
                        });
        assertEquals("{0=10, 1=10}", found.toString());
    }

    // -- lengths ----------------------------------------------------------------------------

    @Test
    void blocksAppendedWhereOthersWereCutAreNotTheOldOnes() {
        for (Step step : new Step[] {Step.EXTENT_READ, Step.COMPARED, Step.HOLDERS_LOCATED}) {
            final String root = mark(step) + "bcd";
            index.store(0, root + "efgh");
            index.store(1, root);
            final OverlapScores found =
                    index.match(
                            root + "efgh",
                            step,
                            1,
                            () -> {
                                index.drop(0, root + "efgh", 4);
                                index.store(1, root + "wxyz");
                                assertEquals(8, index.tree().length(run(root)));
                            });
            assertEquals("{0=4, 1=4}", found.toString());
            assertEquals(2, index.taken(Step.IDENTIFIED));
        }
    }

    @Test
    void aChildOfARunThatWasCutAndGrewOtherwiseIsNotBelieved() {
        index.store(1, "abcdefgh");
        index.store(0, "abcdefghij");
        final int run = run("a");
        final int child = run("abcdefghi");
        final OverlapScores found =
                index.match(
                        "abcdefghij",
                        Step.CHILD_FOUND,
                        2,
                        () -> {
                            index.drop(0, "abcdefghij", 4);
                            index.drop(1, "abcdefgh", 4);
                            index.store(1, "abcdwxyzij");
                            assertEquals(run, run("a"));
                            assertEquals(child, run("abcdwxyzi"));
                        });
        assertEquals("{0=4, 1=4}", found.toString());
    }

    @Test
    void aChildAtTheEndOfARunThatGrewSinceItWasReadIsNotBelieved() {
        index.store(0, "abcd");
        index.store(1, "abcd"); // so that no more is appended than there is room for
        final OverlapScores found =
                index.match("abcdij", Step.CREDITED, 1, () -> index.store(0, "abcdefghij"));
        assertEquals("{0=4, 1=4}", found.toString());
        assertEquals(2, index.taken(Step.CHILD_FOUND));
    }

    @Test
    void aRunWhoseArrayGrewIsReadAgain() {
        char first = 'A';
        for (Step step : EnumSet.of(Step.IDENTIFIED, Step.EXTENT_READ, Step.COMPARED)) {
            final String other = first + "bcd1234";
            final String prompt = first + "bcdefghi";
            index.store(0, prompt.substring(0, 8));
            final int line = RunDescriptor.line(extent(run(prompt.substring(0, 1))));
            final OverlapScores found =
                    index.match(
                            prompt,
                            step,
                            1,
                            () -> {
                                index.store(0, prompt);
                                index.store(1, other); // in the memory given back
                            });
            assertNotEquals(line, RunDescriptor.line(extent(run(prompt.substring(0, 1)))));
            assertTrue(found.depth(0) >= 8, found.toString());
            first++;
        }
    }

    private long extent(int run) {
        return index.arena()
                .memory()
                .getLong(RunDescriptor.headerOffset(run) + RunDescriptor.EXTENT_OFFSET);
    }

    // -- holders -----------------------------------------------------------------------------

    @Test
    void blocksAppendedBesideOtherHoldersAreNotTheirs() {
        index.store(0, "abcd");
        index.store(1, "abcd");
        final OverlapScores found =
                index.match("abcdefgh", Step.IDENTIFIED, 1, () -> index.store(1, "abcdefgh"));
        assertEquals("{0=4, 1=8}", found.toString());
        assertEquals(1, index.taken(Step.IDENTIFIED));
    }

    @Test
    void blocksAppendedBehindWhatWasComparedAreNotCounted() {
        index.store(0, "abcd");
        index.store(1, "abcd");
        final OverlapScores found =
                index.match("abcdwxyz", Step.EXTENT_READ, 1, () -> index.store(1, "abcdefgh"));
        assertEquals("{0=4, 1=4}", found.toString());
        assertEquals(1, index.taken(Step.IDENTIFIED));
    }

    @Test
    void aHolderPageThatGrewAndIsOtherMemoryNowIsReadAgain() {
        store(0, 16, "abcd");
        final OverlapScores found =
                index.match(
                        "abcd",
                        Step.HOLDERS_LOCATED,
                        1,
                        () -> {
                            store(16, 17, "abcd");
                            imitateHolders(4);
                        });
        assertEquals(17, found.matchedSlots());
        assertEquals(2, index.taken(Step.IDENTIFIED));
    }

    @Test
    void theCutPartOfAHolderPageThatIsOtherMemoryNowIsReadAgain() {
        store(0, 20, "abcd");
        final OverlapScores found =
                index.match(
                        "abcd",
                        Step.HOLDERS_LOCATED,
                        1,
                        () -> {
                            drop(8, 20, "abcd");
                            imitateHolders(4);
                        });
        assertEquals(8, found.matchedSlots());
        assertEquals(2, index.taken(Step.IDENTIFIED));
    }

    @Test
    void aHolderPageGivenBackThatServesAnotherRunIsReadAgain() {
        store(40, 45, "ABCD");
        store(0, 8, "abcd");
        final int page = holderPage("a");
        final BuddyArena arena = index.arena();
        final List<Integer> lines = new ArrayList<>();
        for (int i = 0; i < 32; i++) {
            lines.add(arena.allocate(0));
        }
        drop(4, 8, "abcd"); // leaves the first half of the page
        final List<Integer> pages = new ArrayList<>();
        final OverlapScores found =
                index.match(
                        "abcd",
                        Step.HOLDERS_LOCATED,
                        1,
                        () -> {
                            drop(3, 4, "abcd");
                            assertEquals(BuddyArena.NO_LINE, holderPage("a"));
                            // single lines and the page are all that is left
                            pages.addAll(ArenaBlocks.takeAll(arena, 1));
                            lines.stream().filter(line -> line % 2 == 0).forEach(arena::free);
                            assertTrue(pages.remove(Integer.valueOf(page)));
                            arena.free(page);
                            store(45, 46, "ABCD");
                            assertEquals(page, holderPage("A"));
                        });
        assertEquals("{0=4, 1=4, 2=4}", found.toString());
        assertEquals(2, index.taken(Step.IDENTIFIED));
        lines.stream().filter(line -> line % 2 != 0).forEach(arena::free);
        pages.forEach(arena::free);
    }

    @Test
    void aHolderMovedUnderTheReaderIsCountedOnce() {
        store(0, 4, "abcd");
        final OverlapScores found =
                index.match("abcd", Step.HOLDERS_LOCATED, 1, () -> drop(0, 1, "abcd"));
        assertEquals("{1=4, 2=4, 3=4}", found.toString());
        assertEquals(1, index.taken(Step.IDENTIFIED));
    }

    // -- a hot run --------------------------------------------------------------------------

    @Test
    void slotsThatJoinAndLeaveARunMakeNoReaderReadItAgain() {
        for (int holders : new int[] {1, 3, 20}) {
            final String prompt = holders + "bcd";
            store(0, holders, prompt);
            for (Step step : STEPS) {
                final OverlapScores found =
                        index.match(
                                prompt,
                                step,
                                1,
                                () -> {
                                    store(30, 32, prompt);
                                    drop(30, 31, prompt);
                                });
                assertTrue(found.matchedSlots() >= holders, step::name);
                assertEquals(1, index.taken(Step.IDENTIFIED), step::name);
                drop(31, 32, prompt);
            }
        }
    }

    @Test
    void aGrowingPageMakesAReaderReadOnceMoreForEachTimeItDoubles() {
        store(0, 1, "abcd");
        final int[] next = {1};
        index.match(
                WatchedIndex.prompt("abcd"),
                step -> {
                    if (next[0] < 64) {
                        store(next[0], next[0] + 1, "abcd");
                        next[0]++;
                    }
                });
        assertTrue(index.taken(Step.IDENTIFIED) <= 1 + 2, "a list of 16, one of 32, a map");
    }

    @Test
    void aWriterThatNeverLeavesARunAloneCostsAnUndercountAndNotAStall() {
        index.store(0, "abcdefgh");
        final OverlapScores found =
                matchBeside(
                        "abcdefgh",
                        Step.COMPARED,
                        () -> {
                            index.drop(0, "abcdefgh", 4);
                            index.store(0, "abcdefgh");
                        });
        assertEquals("{}", found.toString());
        assertTrue(index.taken(Step.IDENTIFIED) <= 64);
    }

    @Test
    void aWriterThatNeverLeavesATableAloneCostsAnUndercountAndNotAStall() {
        index.store(0, "abcd");
        index.store(0, "bbcd");
        final OverlapScores found =
                matchBeside(
                        "zbcd",
                        Step.CHILDREN_LOCATED,
                        () -> {
                            index.drop(0, "bbcd", 0);
                            index.store(0, "bbcd");
                        });
        assertEquals("{}", found.toString());
        assertTrue(index.taken(Step.CHILDREN_LOCATED) <= 64);
    }

    private OverlapScores matchBeside(String prompt, Step step, Runnable action) {
        return assertTimeoutPreemptively(
                Duration.ofMinutes(1),
                () ->
                        index.match(
                                WatchedIndex.prompt(prompt),
                                at -> {
                                    if (at == step) {
                                        action.run();
                                    }
                                }));
    }

    // -- children ---------------------------------------------------------------------------

    @Test
    void aTableOfChildrenThatGrewAndIsOtherMemoryNowIsNotFollowed() {
        for (String child : new String[] {"p", "q", "r"}) {
            index.store(0, "abcd" + child + "123");
        }
        final OverlapScores found =
                index.match(
                        "abcdp123",
                        Step.CHILDREN_LOCATED,
                        2,
                        () -> {
                            index.store(0, "abcds123");
                            index.drop(0, "abcds123", 4); // what has got the old table's line
                            imitateTables('p');
                        });
        assertEquals("{0=8}", found.toString());
    }

    @Test
    void aTableOfChildrenGivenBackThatIsOtherMemoryNowIsNotFollowed() {
        index.store(0, "abcdp123");
        index.store(0, "abcdq123");
        final OverlapScores found =
                index.match(
                        "abcdp123",
                        Step.CHILDREN_LOCATED,
                        2,
                        () -> {
                            index.drop(0, "abcdq123", 4);
                            imitateTables('p');
                        });
        assertEquals("{0=8}", found.toString());
    }

    @Test
    void aTableOfAllChildrenGivenBackThatIsOtherMemoryNowIsNotFollowed() {
        index.store(0, "abcdp123");
        index.store(0, "abcdq123");
        final OverlapScores found =
                index.match(
                        "abcdp123",
                        Step.CHILDREN_LOCATED,
                        2,
                        () -> {
                            index.drop(0, "abcdq123", 4);
                            index.drop(0, "abcdp123", 4);
                            imitateTables('p');
                        });
        assertEquals("{0=4}", found.toString());
    }

    /** Uses all free lines for what reads as entries of that child, of no run there is. */
    private void imitateTables(long child) {
        final long noRun = Integer.MAX_VALUE;
        imitate(child, noRun, child, noRun, child, noRun, child, noRun);
    }

    /** Uses all free lines for what reads as holders by the slots 40 to 47. */
    private void imitateHolders(int leading) {
        imitate(
                IntStream.range(40, 48)
                        .mapToLong(s -> RunDescriptor.holder(s, leading, 0))
                        .toArray());
    }

    private void imitate(long... words) {
        final BuddyArena arena = index.arena();
        for (int line : ArenaBlocks.takeAll(arena, 0)) {
            arena.memory().putLongs(BuddyArena.offset(line), words, 0, words.length);
            imitations.add(line);
        }
    }

    private void giveBackImitations() {
        imitations.forEach(index.arena()::free);
        imitations.clear();
    }

    // -- slots ------------------------------------------------------------------------------

    @Test
    void aSlotThatGetsANewTenantMayShowBlocksOfBothEachHeldAtItsMoment() {
        index.store(1, "abcdefgh");
        index.store(0, "abcdefghijkl");
        final OverlapScores found =
                index.match(
                        "abcdefghijkl",
                        Step.CHILD_FOUND,
                        2,
                        () -> {
                            index.clear(1);
                            index.index().eventApplied(1, PrefixIndex.NO_EVENT);
                            index.store(1, "abcdefghijkl");
                            assertEquals(
                                    0,
                                    index.remove(
                                            1,
                                            WatchedIndex.prompt("abcdefghijkl"),
                                            0,
                                            8,
                                            0,
                                            CopyRule.PHYSICAL));
                        });
        assertEquals("{0=12, 1=12}", found.toString()); // 8 of the old tenant, 4 of the new one
        assertEquals("{0=12}", index.match("abcdefghijkl").toString());
    }

    // -- helpers ----------------------------------------------------------------------------

    private void store(int fromSlot, int toSlot, String prompt) {
        for (int slot = fromSlot; slot < toSlot; slot++) {
            index.store(slot, prompt);
        }
    }

    private void drop(int fromSlot, int toSlot, String prompt) {
        for (int slot = fromSlot; slot < toSlot; slot++) {
            index.drop(slot, prompt, 0);
        }
    }

    private int holderPage(String prompt) {
        return RunDescriptor.line(
                index.arena()
                        .memory()
                        .getLong(
                                RunDescriptor.headerOffset(run(prompt))
                                        + RunDescriptor.HOLDERS_OFFSET));
    }

    /** Run in which a prompt's last block lies. */
    private int run(String prompt) {
        final RadixTree tree = index.tree();
        final long[] hashes = WatchedIndex.prompt(prompt);
        int run = tree.root();
        int depth = 0;
        while (depth < hashes.length) {
            run = tree.child(run, hashes[depth]);
            assertTrue(run != RadixTree.NO_RUN, prompt);
            final int matched = tree.matching(run, 0, hashes, depth, hashes.length - depth);
            assertTrue(matched > 0, prompt);
            depth += matched;
        }
        return run;
    }

    /** A block of its own for each step. */
    private static char mark(Step step) {
        return (char) ('0' + List.of(Step.values()).indexOf(step));
    }
}
