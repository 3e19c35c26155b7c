package io.kvasir.router;

/**
 * How fast one worker computes prompts beside the others, and how much it has done of those that
 * are booked on it. Learned from the first tokens that callers see ({@link Lease#prefillComplete}).
 * Any thread; allocates nothing.
 *
 * <p>Engines compute prompts one after the other, so since the last end of a prompt, or since one
 * was booked that found none before it, the worker has worked on those that are booked. An end is a
 * first token, or for a prompt whose first token is not seen what the router finds it by, or that
 * it was given up: nothing is learned from that, but what the prompt has taken is not the next
 * one's. That is an estimate: it never takes more than half of what is booked, so a pace that is
 * far too high costs little, and one that is unknown nothing.
 */
final class PrefillPace {
    /** A sample weighs so much of the one after it. */
    static final double KEPT = 0.98;

    /**
     * Tokens at the pace of all workers that a worker's own samples stand beside: about as many as
     * these have, since among equal workers a factor is noise that sends prompts astray.
     */
    private static final double ALIKE_TOKENS = 500_000;

    /** A worker counts at most so many times as slow, or as fast, as all are. */
    private static final double MOST = 8;

    private static final double MOST_DONE = 0.5;
    private static final double NS_PER_S = 1e9;
    private static final double LONGEST_SECONDS = 3_600; // later tokens say nothing of the pace

    private final Worker worker;
    private final PrefillPaces all;
    private double tokens; // guarded by this
    private double seconds; // likewise
    private volatile long sinceNs;
    private volatile double factor = 1;

    PrefillPace(Worker worker, PrefillPaces all) {
        this.worker = worker;
        this.all = all;
    }

    Worker worker() {
        return worker;
    }

    /** A prompt was booked that found no other one before it. */
    void begins(long nowNs) {
        sinceNs = nowNs;
    }

    /** A prompt was found to be computed whose first token was not seen. */
    void passed(long nowNs) {
        sinceNs = nowNs;
    }

    /**
     * A prompt was given up before its first token. An end where the worker may have computed it:
     * as it found no other one before it, or since one has ended after it was booked.
     */
    void givenUp(long bookedNs, long nowNs) {
        if (sinceNs - bookedNs >= 0) {
            sinceNs = nowNs;
        }
    }

    /**
     * A first token was seen: the worker has computed the prompt since the end of the one before
     * it, or since it was booked.
     *
     * @param computed tokens of the prompt that were not cached; 0 only where they are not known,
     *     as an engine always computes the last one: an end, and no sample
     */
    void completed(double computed, long bookedNs, long nowNs) {
        final double took = (nowNs - Math.max(bookedNs, sinceNs)) / NS_PER_S;
        sinceNs = nowNs;
        if (computed > 0
                && computed < Double.POSITIVE_INFINITY
                && took >= 0
                && took <= LONGEST_SECONDS) {
            final double usual = all.learn(computed, took);
            synchronized (this) {
                tokens = tokens * KEPT + computed;
                seconds = seconds * KEPT + took;
                if (usual > 0) {
                    final double own = (seconds + ALIKE_TOKENS * usual) / (tokens + ALIKE_TOKENS);
                    factor = Math.clamp(own / usual, 1 / MOST, MOST);
                }
            }
        }
    }

    /**
     * How long the worker takes for a prompt beside what all take.
     *
     * @return 1 if as long, 2 if twice as long; 1/8 to 8
     */
    double factor() {
        return factor;
    }

    /**
     * What is left to compute.
     *
     * @param booked tokens of prompts whose first token was not seen, not negative
     * @return tokens; half of it to all of it
     */
    double remaining(long booked, long nowNs) {
        final double secondsPerToken = all.secondsPerToken() * factor;
        if (!(secondsPerToken > 0)) {
            return booked;
        }
        final double done = (nowNs - sinceNs) / NS_PER_S / secondsPerToken;
        return booked - Math.clamp(done, 0, MOST_DONE * booked);
    }
}
