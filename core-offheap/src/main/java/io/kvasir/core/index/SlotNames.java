package io.kvasir.core.index;

import static io.kvasir.core.index.Holdings.NONE;

/**
 * Finds the names of one worker slot. Writer thread only.
 *
 * <p>Engines use names in few patterns: a store goes on behind the last block of one before it;
 * removals take a prompt block by block from its end (vLLM), or what was stored at once from its
 * start (SGLang, a node of its tree). These are followed here, the last one from when it is seen
 * first; any other name is searched for among all holdings.
 */
final class SlotNames {
    private final Holdings holdings;
    private int expected = NONE;
    private int expectedElse = NONE;
    private boolean letsGoFromStarts;
    private int further;

    SlotNames(Holdings holdings) {
        this.holdings = holdings;
    }

    /** Names beside the first of a position; kept by the owner. */
    int further() {
        return further;
    }

    /** Adds to {@link #further()}. */
    void further(int change) {
        further += change;
    }

    /** Position of a held name, or {@link Holdings#NONE}. */
    int find(long name) {
        final int anchored = holdings.findAnchored(name);
        return anchored == NONE ? holdings.search(name) : anchored;
    }

    /** Position of a held name that a store goes on behind; others will do so there. */
    int findParent(long name) {
        final int anchored = holdings.findAnchored(name);
        if (anchored != NONE) {
            return anchored;
        }
        final int found = holdings.search(name);
        if (found != NONE) {
            holdings.anchor(name, found);
        }
        return found;
    }

    /** Position of a held name, looked for first where {@link #expect} said. */
    int findExpected(long name) {
        if (isAt(expected, name)) {
            return expected;
        }
        return isAt(expectedElse, name) ? expectedElse : find(name);
    }

    private boolean isAt(int position, long name) {
        return position != NONE && holdings.isHeld(position) && holdings.name(position) == name;
    }

    /** Notes where the next name to be removed probably is. */
    void expect(int position) {
        expect(position, NONE);
    }

    /** Notes where the next name to be removed probably is: at one of two places. */
    void expect(int position, int otherwise) {
        expected = position;
        expectedElse = otherwise;
    }

    /** Notes that what was stored at once has been removed from its start. */
    void letGoFromStart() {
        letsGoFromStarts = true;
    }

    /** Notes a block that what was stored at once begins with, or will begin with after a split. */
    void startsAt(int position) {
        if (letsGoFromStarts && holdings.isHeld(position)) {
            final long name = holdings.name(position);
            if (holdings.findAnchored(name) == NONE) {
                holdings.anchor(name, position);
            }
        }
    }
}
