package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.BuddyArena;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

import java.util.stream.LongStream;

/** Undoing a split, alone and under a reader. */
class RadixTreeJoinTest {
    private static final int SLOTS = 3;
    private static final long[] PROMPT = LongStream.range(100, 112).toArray();

    private final BuddyArena arena = new BuddyArena(64 << 10);
    private final RadixTree tree = new RadixTree(arena, SLOTS);
    private final OverlapScores scores = new OverlapScores(SLOTS);
    private final int upper = tree.addChild(tree.root(), PROMPT, 0, 8);

    @AfterEach
    void close() {
        arena.close();
    }

    /** Slots 0 and 1 hold the run, slot 1 its child too; a branch makes the children a table. */
    private void splitRun() {
        tree.addHolder(upper, 0, 8, 1);
        tree.addHolder(upper, 1, 8, 2);
        final int child = tree.addChild(upper, PROMPT, 8, 4);
        tree.addHolder(child, 1, 4, 3);
        tree.addHolder(tree.addChild(upper, new long[] {7, 8}, 0, 2), 0, 2, 4);
        final int lower = tree.beginSplit(upper, 5);
        tree.addHolder(lower, 0, 3, 1);
        tree.addHolder(lower, 1, 3, 2);
        tree.finishSplit(upper, lower);
    }

    @Test
    void aJoinedRunIsAsItWasBeforeTheSplit() {
        splitRun();
        final long runs = tree.runs();
        tree.join(upper);

        assertEquals(runs - 1, tree.runs());
        assertEquals(8, tree.length(upper));
        assertEquals(2, tree.childCount(upper));
        assertEquals(RadixTree.NO_RUN, tree.nextSegment(upper));
        assertEquals(upper, tree.parent(tree.child(upper, PROMPT[8])));
        tree.match(PROMPT, 12, scores);
        assertEquals("{0=8, 1=12}", scores.toString());
    }

    @Test
    void aSegmentInTheMiddleIsJoinedToo() {
        splitRun();
        final int end = tree.beginSplit(tree.nextSegment(upper), 1);
        tree.addHolder(end, 0, 2, 1);
        tree.addHolder(end, 1, 2, 2);
        tree.finishSplit(tree.nextSegment(upper), end);
        tree.join(upper);

        assertEquals(6, tree.length(upper));
        assertEquals(end, tree.nextSegment(upper));
        assertEquals(upper, tree.previousSegment(end));
        assertEquals(end, tree.segmentAt(upper, 7));
        tree.match(PROMPT, 12, scores);
        assertEquals("{0=8, 1=12}", scores.toString());
    }

    @Test
    void theSegmentThatIsLeftOverHasNoChildrenWhenItIsUsedAgain() {
        splitRun();
        final int lower = tree.nextSegment(upper);
        tree.join(upper);

        assertEquals(lower, tree.addChild(tree.root(), new long[] {5, 6}, 0, 2));
        assertEquals(RadixTree.NO_RUN, tree.child(lower, PROMPT[8]));
        tree.addHolder(lower, 1, 2, 5);
        tree.match(new long[] {5, 6, PROMPT[8], PROMPT[9]}, 4, scores);
        assertEquals("{1=2}", scores.toString());
    }

    @ParameterizedTest
    @EnumSource(value = RadixMatcher.Step.class, mode = Mode.EXCLUDE, names = "PARTIAL_READ")
    void aReaderNoticesTheJoinAndSeesAllThatIsThere(RadixMatcher.Step step) {
        splitRun();
        int moments = 0;
        boolean joined = true;
        while (joined) {
            final int moment = moments++;
            final boolean[] done = {false};
            final RadixMatcher reader =
                    new RadixMatcher(
                            arena.memory(), tree.root(), SLOTS, tree.runChildren().secret()) {
                        private int seen;

                        @Override
                        void at(Step now) {
                            if (now == step && seen++ == moment) {
                                tree.join(upper);
                                done[0] = true;
                            }
                        }
                    };
            reader.match(PROMPT, 12, scores);
            assertEquals("{0=8, 1=12}", scores.toString());
            joined = done[0];
            if (joined) {
                final int lower = tree.beginSplit(upper, 5);
                assertNotEquals(RadixTree.NO_RUN, lower);
                tree.addHolder(lower, 0, 3, 1);
                tree.addHolder(lower, 1, 3, 2);
                tree.finishSplit(upper, lower);
            }
        }
        assertTrue(moments > 2, "joined at " + moments + " moments");
    }
}
