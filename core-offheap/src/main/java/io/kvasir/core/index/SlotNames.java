package io.kvasir.core.index;

import static io.kvasir.core.index.Holdings.NONE;

/**
 * Finds the names of one worker slot. Writer thread only.
 *
 * <p>Engines use names in two patterns: a store goes on behind the last block of one before it, and
 * removals take a prompt block by block from its end. Both are followed here; any other name is
 * searched for among all holdings.
 */
final class SlotNames {
    private final Holdings holdings;
    private int expected = NONE;
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
        return expected != NONE && holdings.isHeld(expected) && holdings.name(expected) == name
                ? expected
                : find(name);
    }

    /** Notes where the next name to be removed probably is. */
    void expect(int position) {
        expected = position;
    }
}
