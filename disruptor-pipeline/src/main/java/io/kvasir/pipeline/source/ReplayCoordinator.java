package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * What a stream wants from its engine's replay buffer, and when it asks again after it could not
 * have it. Not thread-safe.
 */
final class ReplayCoordinator {
    /** What is wanted. */
    enum Wanted {
        NOTHING,
        /** Everything from message 0. */
        LOAD,
        /** The last message, to be compared, and everything behind it. */
        VERIFY,
        /** Everything from message 0, but only if the engine still has all of it. */
        HEAL,
        /** Everything from message 0, beside the live messages, which go on. */
        REFILL
    }

    static final long FIRST_DELAY_NS = TimeUnit.SECONDS.toNanos(5);
    static final long LAST_DELAY_NS = TimeUnit.MINUTES.toNanos(5);

    private Wanted wanted = Wanted.NOTHING;
    private boolean strict;
    private boolean verified;
    private long refillFrom;
    private boolean retrying;
    private long retryAtNs;
    private long delayNs = FIRST_DELAY_NS;

    Wanted wanted() {
        return wanted;
    }

    boolean isIdle() {
        return wanted == Wanted.NOTHING;
    }

    /** Whether live messages have to wait until a replay is over. */
    boolean holdsLive() {
        return wanted != Wanted.NOTHING && wanted != Wanted.REFILL;
    }

    boolean is(Wanted what) {
        return wanted == what;
    }

    /** Whether the absence of the last message means another life of the engine. */
    boolean isStrict() {
        return strict;
    }

    /** Whether the last message was compared and is the same. */
    boolean isVerified() {
        return verified;
    }

    void load() {
        want(Wanted.LOAD, false);
    }

    void heal() {
        want(Wanted.HEAL, false);
    }

    /** Wants messages from one on, and whatever is live meanwhile. */
    void refill(long from) {
        want(Wanted.REFILL, false);
        refillFrom = from;
    }

    /**
     * @param doubted whether it may be another engine life: then the last message must be there
     */
    void verify(boolean doubted) {
        want(Wanted.VERIFY, doubted);
    }

    private void want(Wanted what, boolean doubted) {
        wanted = what;
        strict = doubted;
        verified = false;
    }

    void verified() {
        verified = true;
    }

    void nothing() {
        want(Wanted.NOTHING, false);
    }

    /** Number to ask from. */
    long from(long last) {
        return switch (wanted) {
            case NOTHING -> EngineStream.NO_REPLAY;
            case LOAD -> last + 1;
            case HEAL -> 0;
            case REFILL -> refillFrom;
            case VERIFY -> verified ? last + 1 : last;
        };
    }

    /** Tries again later, after a longer time than before; never gives up. */
    void retryLater(long nowNs) {
        retrying = true;
        retryAtNs = nowNs + delayNs;
        delayNs = Math.min(2 * delayNs, LAST_DELAY_NS);
    }

    boolean isRetrying() {
        return retrying;
    }

    /** Whether the time of a further try has come; one true answer for each. */
    boolean takeRetry(long nowNs) {
        if (!retrying || nowNs - retryAtNs < 0) {
            return false;
        }
        retrying = false;
        return true;
    }

    /** Does not wait for the first try, because what was wrong may have ended. */
    boolean takeFirstRetry() {
        if (!retrying || delayNs > 2 * FIRST_DELAY_NS) {
            return false;
        }
        retrying = false;
        return true;
    }

    /** Nothing is wrong any more: the next failure is tried again soon. */
    void settled() {
        retrying = false;
        delayNs = FIRST_DELAY_NS;
    }
}
