package io.kvasir.pipeline.source;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.TimeUnit;

/**
 * Brings the live messages of one stream into order: hands on the next one, keeps one that may have
 * been overtaken for a while, and asks for what is missing, or gives it up. The view of the slot
 * begins anew here, after a restart of the engine or to be loaded again. Guarded by the stream's
 * lock.
 */
final class MessageSequencer {
    /**
     * So many messages cannot have been published unseen between the start of an engine and a
     * connection that was waiting for it.
     */
    static final long MOST_UNSEEN_AT_START = 1_024;

    /** How long a message is kept for the one before it. */
    static final long OVERTAKEN_NS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final Logger LOG = LoggerFactory.getLogger(MessageSequencer.class);

    private final StreamParts parts;
    private final SourceConfig config;
    private final SequenceTracker tracker;
    private final ReplayRequest replay;
    private final SourceFreshness freshness;
    private final StreamStatus status;
    private final StreamOutput output;
    private final RefillCoordinator refills;
    private final HeldMessage held = new HeldMessage(); // the newest live one during a replay
    private final HeldMessage early;
    private long earlySinceNs;

    MessageSequencer(
            StreamParts parts,
            StreamStatus status,
            StreamOutput output,
            RefillCoordinator refills) {
        this.parts = parts;
        this.config = parts.config;
        this.tracker = parts.tracker;
        this.replay = parts.replay;
        this.freshness = parts.freshness;
        this.early = parts.early;
        this.status = status;
        this.output = output;
        this.refills = refills;
    }

    /** Takes a live message. */
    void live(long sequence, byte[] payload, int offset, int length) {
        final SequenceTracker.Verdict verdict =
                tracker.judge(sequence, tracker.contentOf(payload, offset, length));
        // what arrives without a connection has come by the one that is lost
        if (freshness.isDoubted() && freshness.isConnected() && !settleDoubt(verdict, sequence)) {
            firstOfNewLife(sequence, payload, offset, length);
            return;
        }
        switch (verdict) {
            case NEXT -> next(sequence, payload, offset, length);
            case AHEAD -> ahead(sequence, payload, offset, length);
            case DUPLICATE -> status.counts.duplicates++;
            case LATE -> late(sequence);
            case RESTART -> {
                restarted("message " + sequence + " came after " + tracker.last());
                firstOfNewLife(sequence, payload, offset, length);
            }
        }
    }

    /**
     * Judges by the first message after a reconnect whether the engine is the one that was heard
     * before; false if its view was dropped because it may be another.
     */
    private boolean settleDoubt(SequenceTracker.Verdict verdict, long sequence) {
        final boolean next = verdict == SequenceTracker.Verdict.NEXT;
        if (config.form() == MessageForm.ROUTER_EVENT) {
            if (next || verdict == SequenceTracker.Verdict.AHEAD) {
                freshness.believe(); // an event plane says when the publisher is another one
            }
            return true;
        }
        if (verdict == SequenceTracker.Verdict.DUPLICATE
                || (next && sequence > MOST_UNSEEN_AT_START)) {
            if (replay.isIdle()) {
                freshness.believe();
            }
            return true;
        }
        if (config.isReplayable() || verdict == SequenceTracker.Verdict.RESTART) {
            return true; // the replay says it, or the message has
        }
        if (next) {
            status.lostWithWarning(
                    "after a reconnect the numbers go on at "
                            + sequence
                            + ", which another life of the engine may do so early; a replay"
                            + " endpoint would tell");
            freshness.believe();
            return true;
        }
        restarted(
                "after a reconnect message "
                        + sequence
                        + " came, the last one was "
                        + tracker.last()
                        + "; it may be another life of the engine, and there is no replay endpoint"
                        + " to tell");
        return false;
    }

    private void late(long sequence) {
        status.counts.late++;
        if (config.isReplayable() && !replay.holdsLive()) {
            replay.verify(true); // the answer shows whether the engine has begun anew
        }
        LOG.debug("{}: message {} came after {}", config.label(), sequence, tracker.last());
    }

    private void next(long sequence, byte[] payload, int offset, int length) {
        if (replay.holdsLive()) {
            held.hold(sequence, payload, offset, length);
            return;
        }
        apply(sequence, payload, offset, length);
        if (!early.isEmpty()) {
            takeEarly();
        }
    }

    private void ahead(long sequence, byte[] payload, int offset, int length) {
        if (!early.isEmpty()) {
            takeEarly();
        }
        if (replay.holdsLive()) {
            held.hold(sequence, payload, offset, length);
        } else if (sequence == tracker.last() + 1) {
            apply(sequence, payload, offset, length);
        } else if (tracker.last() >= 0 && sequence == tracker.last() + 2) {
            early.hold(sequence, payload, offset, length);
            earlySinceNs = parts.nanoClock.getAsLong();
        } else {
            gap(sequence, payload, offset, length);
        }
    }

    /** Uses the early message when it has waited long enough. */
    void tick(long nowNs) {
        if (!early.isEmpty() && nowNs - earlySinceNs >= OVERTAKEN_NS) {
            takeEarly();
        }
    }

    /** Uses the early message, after the missing one or without it. */
    private void takeEarly() {
        final long sequence = early.number();
        final int length = early.length();
        final byte[] payload = early.take();
        if (sequence == tracker.last() + 1) {
            apply(sequence, payload, 0, length);
        } else if (sequence > tracker.last()) {
            gap(sequence, payload, 0, length);
        }
    }

    private void firstOfNewLife(long sequence, byte[] payload, int offset, int length) {
        tracker.judge(sequence, tracker.contentOf(payload, offset, length));
        if (sequence == 0) {
            apply(sequence, payload, offset, length);
        } else {
            gap(sequence, payload, offset, length);
        }
    }

    private void gap(long sequence, byte[] payload, int offset, int length) {
        final long last = tracker.last();
        final boolean first = last < 0;
        if (!first) {
            status.counts.gaps++;
        }
        if (config.isReplayable()) {
            held.hold(sequence, payload, offset, length);
            replay.missing(last);
            return;
        }
        if (!(first && sequence == 1 && mayBeginWithOne())) {
            output.lose(last + 1, sequence - 1, whyNotAgain());
        }
        apply(sequence, payload, offset, length);
    }

    /** Publishers that connect to us have sent us everything; some of them count from 1. */
    private boolean mayBeginWithOne() {
        return config.bind() || config.form().firstNumber() == 1;
    }

    private String whyNotAgain() {
        return config.form() == MessageForm.ROUTER_EVENT
                ? "an event plane does not send them again"
                : "there is no replay endpoint; configure one";
    }

    private void apply(long sequence, byte[] payload, int offset, int length) {
        if (output.offer(sequence, payload, offset, length)) {
            return;
        }
        status.counts.gaps++;
        if (config.isReplayable()) {
            held.hold(sequence, payload, offset, length);
            replay.missing(tracker.last());
        } else {
            output.giveUp(sequence, payload, offset, length);
        }
    }

    /** Number of the newest live message that waits for a replay, −1 if none does. */
    long heldNumber() {
        return held.number();
    }

    /** Uses the live message that has waited for a replay. */
    void applyHeld() {
        final long sequence = held.number();
        if (sequence > tracker.last()) {
            final int length = held.length();
            apply(sequence, held.take(), 0, length); // which may hold it again
        } else {
            held.drop();
        }
    }

    /** The engine has begun anew: the slot is emptied, nothing is known of its messages. */
    void restarted(String how) {
        refills.drop();
        status.counts.restarts++;
        final String what = "the engine has restarted: " + how;
        status.problem(what);
        LOG.info("{}: {}; its blocks are cleared", config.label(), what);
        tracker.forget();
        held.drop();
        early.drop();
        replay.nothing();
        status.unloaded();
        status.complete();
        parts.decoder.forget();
        parts.removals.forget();
        freshness.believe();
        output.clear();
    }

    /** Empties the slot and wants everything from message 0. */
    void reload() {
        if (!early.isEmpty() && !config.isReplayable()) {
            takeEarly();
        }
        early.drop();
        refills.drop();
        final long last = tracker.last();
        tracker.rewind();
        status.unloaded();
        status.complete();
        output.clear();
        if (config.isReplayable()) {
            replay.load();
        } else {
            tracker.skipTo(last);
            status.loaded();
            status.lost("the slot was cleared and there is no replay endpoint to load it from");
        }
    }
}
