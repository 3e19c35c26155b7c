package io.kvasir.pipeline.source;

/** What a stream wants from its engine's replay buffer. Not thread-safe. */
final class ReplayRequest {
    /** What is wanted. */
    enum Wanted {
        NOTHING,
        /** Everything from message 0. */
        LOAD,
        /** The last message that is proven, to be compared, and everything after it. */
        VERIFY,
        /** Everything from message 0, but only if the engine still has all of it. */
        HEAL,
        /** Everything from message 0, beside the live messages, which go on. */
        REFILL
    }

    private Wanted wanted = Wanted.NOTHING;
    private boolean strict;
    private boolean verified;
    private long refillFrom;
    private boolean answering; // the engine was asked, and has not sent all of it
    private boolean outdated; // it was asked for something else than is wanted now

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

    /** A refill has come as far as a message: where it is asked for again, from the next one on. */
    void refilled(long last) {
        refillFrom = last + 1;
    }

    /**
     * @param doubted whether it may be another engine life: then the last message must be there
     */
    void verify(boolean doubted) {
        want(Wanted.VERIFY, doubted);
    }

    /**
     * Wants what is missing after the last message.
     *
     * @param last its number; everything is wanted if there was none
     */
    void missing(long last) {
        if (last < 0) {
            load();
        } else {
            verify(false);
        }
    }

    private void want(Wanted what, boolean doubted) {
        wanted = what;
        strict = doubted;
        verified = false;
        outdated = answering;
    }

    /** The engine answers what is wanted now, from {@link #from} on. */
    void answering() {
        answering = !isIdle();
        outdated = false;
    }

    /** The answer has ended, or the rest of it is not read. */
    void answerOver() {
        answering = false;
        outdated = false;
    }

    /**
     * Whether the answer is one to what was wanted before: it neither proves nor fills anything.
     */
    boolean isOutdated() {
        return outdated;
    }

    void verified() {
        verified = true;
    }

    void nothing() {
        want(Wanted.NOTHING, false);
    }

    /**
     * Number to ask from.
     *
     * @param last of the messages that were handed on
     * @param proof message that is to be compared
     */
    long from(long last, long proof) {
        return switch (wanted) {
            case NOTHING -> EngineStream.NO_REPLAY;
            case LOAD -> last + 1;
            case HEAL -> 0;
            case REFILL -> refillFrom;
            case VERIFY -> verified ? last + 1 : proof;
        };
    }
}
