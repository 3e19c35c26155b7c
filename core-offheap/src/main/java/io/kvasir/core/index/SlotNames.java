package io.kvasir.core.index;

import static io.kvasir.core.index.Holdings.NONE;

import java.util.Arrays;

/**
 * Where the next name of one worker slot that is asked for probably is. Writer thread only.
 *
 * <p>Engines name blocks in two patterns: a store goes on behind the last block of one before it,
 * and removals take a prompt block by block from its end. Both are followed here; any other name is
 * searched for among all holdings.
 */
final class SlotNames {
    /** Ends of prompts remembered: more requests than run on a worker at once, in most engines. */
    private static final int RECENT = 64;

    private final Holdings holdings;
    private final int[] recent = new int[RECENT];
    private int expected = NONE;
    private int further;

    SlotNames(Holdings holdings) {
        this.holdings = holdings;
        Arrays.fill(recent, NONE);
    }

    /** Names beside the first of a position; kept by the owner. */
    int further() {
        return further;
    }

    /** Adds to {@link #further()}. */
    void further(int change) {
        further += change;
    }

    /** Position of a held name, or {@link Holdings#NONE}; looks first where it was stored last. */
    int find(long name) {
        final int guess = recent[place(name)];
        return isAt(guess, name) ? guess : holdings.find(name);
    }

    /** Remembers the last block of a store: the next one of the request names it as its parent. */
    void remember(long name, int position) {
        recent[place(name)] = position;
    }

    /**
     * Position of a held name; looks first where {@link #expect} said: engines let go of a prompt
     * block by block, from its end.
     */
    int findExpected(long name) {
        return isAt(expected, name) ? expected : holdings.find(name);
    }

    /** Notes where the next name to be removed probably is. */
    void expect(int position) {
        expected = position;
    }

    private boolean isAt(int position, long name) {
        return position != NONE && holdings.isHeld(position) && holdings.name(position) == name;
    }

    private static int place(long name) {
        return (int) (name ^ (name >>> 32)) & (RECENT - 1);
    }
}
