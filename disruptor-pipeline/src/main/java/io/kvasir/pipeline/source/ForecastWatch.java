package io.kvasir.pipeline.source;

import java.util.function.LongSupplier;

/**
 * Judges by what an engine states of its cache hits whether the forecasts of them can be trusted.
 * They are wrong from too many wrong ones among the last 32 on, and right again after enough right
 * ones. A difference of less than a block is none: engines round, and some count a partial block.
 * Nor is one of a single token, where a block is one: SGLang that drafts with EAGLE computes two
 * tokens of each prompt that it has whole, others one.
 *
 * <table>
 * <caption>What begins and ends it</caption>
 * <tr><th>compared</th><th>begins with</th><th>ends with</th></tr>
 * <tr><td>requests that had the worker to themselves</td><td>8 forecasts that were too high, or 16
 * that were too low, of the last 32</td><td>15 right ones of the last 16, or 31 of 32 requests of
 * any kind</td></tr>
 * <tr><td>all requests: a neighbour's blocks push out or bring in others between decision and
 * admission, which says nothing of the index</td><td>24 wrong ones of the last 32, unless those that
 * had the worker to themselves were right</td><td>24 right ones of 32, or the end of the row
 * above</td></tr>
 * </table>
 *
 * <p>A request now and then that overtakes the events of the one before is below all of these. A
 * judgement also ends when nothing has been compared for 10 minutes: what an engine stopped to
 * state cannot become right again. Engines that state nothing are never judged. Any thread; readers
 * of {@link #isWrong} and {@link #why} take no lock.
 */
public final class ForecastWatch {
    static final int WINDOW = LastComparisons.WINDOW;
    static final int TOO_HIGH = 8;
    static final int TOO_LOW = 16;
    static final int MOST_WRONG = 24;
    static final int RECENT = 16;
    static final int RECENT_WRONG = 1;
    static final int LEAST_WRONG = 2; // tokens

    /** How long a judgement holds without another comparison. */
    static final long KEPT_NS = 600_000_000_000L;

    private final int blockSize;
    private final int leastWrong; // difference, in tokens
    private final LongSupplier nanoClock;
    private final Outcomes alone = new Outcomes();
    private final Outcomes all = new Outcomes();
    private long lastNs; // of the last comparison
    private long lastAloneNs; // of the last one of a request that had the worker to itself
    private int since; // comparisons since the judgement began
    private boolean byAlone; // which comparisons began it
    private boolean resyncWanted;
    private volatile String why; // null while they are right

    /** The last outcomes; a forecast is too high or too low, not both. */
    private static final class Outcomes {
        private final LastComparisons high = new LastComparisons();
        private final LastComparisons low = new LastComparisons();

        void add(boolean tooHigh, boolean tooLow) {
            high.add(tooHigh);
            low.add(tooLow);
        }

        int count() {
            return high.compared();
        }

        int tooHigh() {
            return high.count();
        }

        int tooLow() {
            return low.count();
        }

        int wrong() {
            return high.count() + low.count();
        }

        int recentlyWrong() {
            return high.count(RECENT) + low.count(RECENT);
        }

        void clear() {
            high.clear();
            low.clear();
        }
    }

    /**
     * Nothing is judged yet.
     *
     * @param blockSize tokens of a block
     * @param nanoClock in ns, from any origin
     */
    public ForecastWatch(int blockSize, LongSupplier nanoClock) {
        this.blockSize = blockSize;
        this.leastWrong = Math.max(blockSize, LEAST_WRONG);
        this.nanoClock = nanoClock;
    }

    /**
     * Takes one comparison.
     *
     * @param believed prompt tokens that the engine was taken to have cached, in full
     * @param stated those that it says it had
     * @param hadWorkerAlone whether no other request was there from the decision to the answer
     * @return whether the judgement has changed
     */
    public synchronized boolean compare(int believed, int stated, boolean hadWorkerAlone) {
        if (Math.max(believed, stated) < blockSize) {
            return false; // nothing was to be had, which any forecast gets right
        }
        final boolean before = isWrong();
        final long now = nanoClock.getAsLong();
        lastNs = now;
        if (now - lastAloneNs >= KEPT_NS) {
            alone.clear(); // they tell nothing of now
        }
        final boolean tooHigh = isTooHigh(believed, stated);
        final boolean tooLow = isTooHigh(stated, believed);
        all.add(tooHigh, tooLow);
        if (hadWorkerAlone) {
            lastAloneNs = now;
            alone.add(tooHigh, tooLow);
        }
        if (before) {
            since++;
            look();
        } else {
            judge();
        }
        return before != isWrong();
    }

    /** Whether one number of tokens is so much higher than another that this is no rounding. */
    boolean isTooHigh(int tokens, int others) {
        return tokens - others >= leastWrong;
    }

    private void judge() {
        byAlone = alone.tooHigh() >= TOO_HIGH || alone.tooLow() >= TOO_LOW;
        if (byAlone) {
            wrong(alone);
        } else if (all.wrong() >= MOST_WRONG && !isAloneRight()) {
            wrong(all);
        }
    }

    private boolean isAloneRight() {
        return alone.count() >= RECENT && alone.recentlyWrong() <= RECENT_WRONG;
    }

    private void wrong(Outcomes of) {
        resyncWanted = true;
        since = 0;
        why =
                "the engine had other tokens cached than predicted in "
                        + of.wrong()
                        + " of the last "
                        + of.count()
                        + " answers: fewer in "
                        + of.tooHigh()
                        + ", more in "
                        + of.tooLow()
                        + "; check that events, tokens and block size are this engine's, or set"
                        + " prediction-check";
    }

    private void look() {
        final int wrongAtMost = byAlone ? RECENT_WRONG : WINDOW - MOST_WRONG;
        if (isAloneRight() || (since >= WINDOW && all.wrong() <= wrongAtMost)) {
            forget();
        }
    }

    /**
     * Ends a judgement that nothing has confirmed for long.
     *
     * @return whether there was one
     */
    public synchronized boolean expire() {
        if (!isWrong() || nanoClock.getAsLong() - lastNs < KEPT_NS) {
            return false;
        }
        forget();
        return true;
    }

    /** Whether forecasts are wrong. */
    public boolean isWrong() {
        return why != null;
    }

    /** Why they are wrong, in words; null while they are not. */
    public String why() {
        return why;
    }

    /**
     * The engine has been emptied: what it held before says nothing any more. It says so with its
     * next step, so that one forecast before that is too high. A judgement stays.
     */
    synchronized void emptied() {
        if (!isWrong()) {
            alone.clear();
            all.clear();
        }
    }

    /** Forgets all comparisons: they were with a view that is no more. */
    public synchronized void forget() {
        alone.clear();
        all.clear();
        resyncWanted = false;
        why = null;
    }

    /** Whether everything is to be asked for again, which is worth a try for each judgement. */
    synchronized boolean wantsResync() {
        return resyncWanted;
    }

    /** It was asked for. */
    synchronized void resynced() {
        resyncWanted = false;
    }

    /** It was not answered. */
    synchronized void unanswered() {
        resyncWanted = isWrong();
    }
}
