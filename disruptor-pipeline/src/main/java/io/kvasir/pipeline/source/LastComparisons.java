package io.kvasir.pipeline.source;

/**
 * Which of the last {@value #WINDOW} comparisons, of what was believed of an engine with what it
 * states, had one result. Not thread-safe.
 */
public final class LastComparisons {
    /** Comparisons that are remembered. */
    public static final int WINDOW = Integer.SIZE;

    private int had; // one bit each; the last one is the lowest
    private int compared;

    /** Takes one comparison, which pushes out the oldest. */
    public void add(boolean hadIt) {
        had = had << 1 | (hadIt ? 1 : 0);
        compared = Math.min(WINDOW, compared + 1);
    }

    /** How many had the result. */
    public int count() {
        return Integer.bitCount(had);
    }

    /**
     * How many of the last ones had it.
     *
     * @param last 1 to {@value #WINDOW}
     */
    int count(int last) {
        return Integer.bitCount(had << (WINDOW - last));
    }

    /** How many are remembered. */
    public int compared() {
        return compared;
    }

    /** Forgets all. */
    public void clear() {
        had = 0;
        compared = 0;
    }
}
