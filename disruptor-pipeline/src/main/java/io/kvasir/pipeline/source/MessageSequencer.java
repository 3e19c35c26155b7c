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
    private static final String UNPROVEN =
            "the engine may be in another life since then, and there is no replay endpoint to tell;"
                    + " configure one";

    private final StreamParts parts;
    private final SourceConfig config;
    private final SequenceTracker tracker;
    private final ReplayRequest replay;
    private final StreamStatus status;
    private final StreamOutput output;
    private final RefillCoordinator refills;
    private final LiveBuffer held;
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
        this.held = parts.held;
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
        if (parts.isUnproven() && !settleDoubt(verdict, sequence)) {
            if (verdict == SequenceTracker.Verdict.AHEAD) {
                dropUnproven(sequence, payload, offset, length);
            } else {
                restarted(
                        "after a reconnect message "
                                + sequence
                                + " came, the last one was "
                                + tracker.last());
                firstOfNewLife(sequence, payload, offset, length);
            }
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
     * Judges by the first message after a reconnect whether the engine is the one that sent before;
     * false if its view has to be dropped because it may be another.
     */
    private boolean settleDoubt(SequenceTracker.Verdict verdict, long sequence) {
        final boolean next = verdict == SequenceTracker.Verdict.NEXT;
        if (config.form() == MessageForm.ROUTER_EVENT) {
            if (next || verdict == SequenceTracker.Verdict.AHEAD) {
                parts.believe(); // an event plane says when the publisher is another one
            }
            return true;
        }
        final boolean known =
                verdict == SequenceTracker.Verdict.DUPLICATE
                        || (next && sequence > MOST_UNSEEN_AT_START);
        if (known && (!parts.isReplayable() || tracker.knewBeforeDoubt(sequence))) {
            if (replay.isIdle()) {
                parts.believe();
            }
            return true;
        }
        if (parts.isReplayable() || verdict == SequenceTracker.Verdict.RESTART) {
            return true; // the replay says it, or the message has
        }
        if (next) {
            status.lostWithWarning(
                    "after a reconnect the numbers go on at "
                            + sequence
                            + ", which another life of the engine may do so early; a replay"
                            + " endpoint would tell");
            parts.believe();
            return true;
        }
        return false;
    }

    /**
     * Begins anew with a message that is ahead of the last one: where the engine is the same, those
     * between the two are lost; where it is not, what the slot has is of another life.
     */
    private void dropUnproven(long sequence, byte[] payload, int offset, int length) {
        final long last = tracker.last();
        parts.info(StreamLog.Kind.BEGUN_ANEW, "its blocks are cleared: " + UNPROVEN);
        beginAnew();
        tracker.judge(sequence, tracker.contentOf(payload, offset, length));
        status.counts.gaps++;
        output.lose(last + 1, sequence - 1, UNPROVEN);
        apply(sequence, payload, offset, length);
    }

    private void late(long sequence) {
        status.counts.late++;
        if (parts.mayAsk() && !replay.holdsLive()) {
            replay.verify(true); // the answer shows whether the engine has begun anew
        }
        LOG.debug("{}: message {} came after {}", config.label(), sequence, tracker.last());
    }

    private void next(long sequence, byte[] payload, int offset, int length) {
        if (replay.holdsLive() && !parts.checksOnly()) {
            held.hold(sequence, payload, offset, length);
            return;
        }
        status.endSeen();
        apply(sequence, payload, offset, length);
        if (!early.isEmpty()) {
            takeEarly();
        }
    }

    private void ahead(long sequence, byte[] payload, int offset, int length) {
        if (!early.isEmpty()) {
            final long position = parts.position();
            parts.at(Math.max(0, position - 1)); // the message of now comes after the early one
            takeEarly();
            parts.at(position);
        }
        if (replay.holdsLive()) {
            held.hold(sequence, payload, offset, length);
        } else if (sequence == tracker.last() + 1) {
            apply(sequence, payload, offset, length);
        } else if (tracker.last() >= 0 && sequence == tracker.last() + 2) {
            early.hold(sequence, payload, offset, length);
            parts.holdsEarly();
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

    /**
     * What was overtaken on a former connection does not come: the next one may be of another life.
     */
    void connectionOver() {
        if (!early.isEmpty()) {
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
        final boolean begins = isFirst(sequence) && mayBeginWithOne();
        if (mayAsk() && !(begins && parts.isQueryable())) {
            held.hold(sequence, payload, offset, length);
            replay.missing(last);
            return;
        }
        if (!begins) {
            output.lose(last + 1, sequence - 1, whyNotAgain());
        }
        apply(sequence, payload, offset, length);
    }

    /**
     * Whether to ask for what is missing: also a local indexer that has not seen its worker yet.
     */
    private boolean mayAsk() {
        return parts.mayAsk() || (parts.isQueryable() && tracker.last() < 0);
    }

    /** Whether nothing is known and the message has number 1. */
    private boolean isFirst(long sequence) {
        return sequence == 1 && tracker.last() < 0;
    }

    /** Publishers that connect to us have sent us everything; some of them count from 1. */
    private boolean mayBeginWithOne() {
        return config.bind() || config.form().firstNumber() == 1;
    }

    private String whyNotAgain() {
        if (parts.isReplayable()) {
            return parts.retry.whyUnanswered();
        }
        return config.form() == MessageForm.ROUTER_EVENT
                ? "an event plane does not send them again"
                : "there is no replay endpoint; configure one";
    }

    private void apply(long sequence, byte[] payload, int offset, int length) {
        if (output.offer(sequence, payload, offset, length)) {
            return;
        }
        status.counts.gaps++;
        if (parts.mayAsk()) {
            held.hold(sequence, payload, offset, length);
            replay.missing(tracker.last());
        } else {
            output.giveUp(sequence, payload, offset, length);
        }
    }

    /**
     * Uses the live messages that have waited for a replay.
     *
     * @param whyMissing why there is nothing before one of them where something is missing
     * @param askAgain whether to ask for that first
     */
    void applyHeld(String whyMissing, boolean askAgain) {
        while (!held.isEmpty() && replay.isIdle()) {
            final long last = tracker.last();
            final long sequence = held.firstNumber();
            if (sequence > last + 1 && !(isFirst(sequence) && parts.isQueryable())) {
                if (askAgain) {
                    replay.missing(last);
                    return;
                }
                output.lose(last + 1, sequence - 1, whyMissing);
            }
            if (sequence <= last || offerHeld(sequence)) {
                held.dropFirst();
            }
        }
    }

    /** Offers the first one that waits; false if it keeps waiting, for a replay. */
    private boolean offerHeld(long sequence) {
        final byte[] payload = held.first();
        if (output.offer(sequence, payload, 0, payload.length)) {
            return true;
        }
        status.counts.gaps++;
        if (parts.mayAsk()) {
            replay.missing(tracker.last());
            return false;
        }
        output.giveUp(sequence, payload, 0, payload.length);
        return true;
    }

    /** The early message waits with those that wait for a replay. */
    private void holdEarly() {
        if (!early.isEmpty()) {
            final long sequence = early.number();
            final int length = early.length();
            held.hold(sequence, early.take(), 0, length);
        }
    }

    /**
     * Puts a dump in the place of what the slot has. What the slot has serves until then: all of
     * the dump is here.
     *
     * @return false if there was no room for all of it: then everything is wanted again
     */
    boolean replace(PlaneDump dump) {
        holdEarly();
        refills.drop();
        status.unloaded();
        status.complete();
        tracker.rewind();
        if (!output.replace(dump.batches())) {
            output.clear();
            replay.load();
            return false;
        }
        tracker.skipTo(dump.lastNumber());
        if (dump.lostNumber() > 0) {
            status.lost(
                    "its publisher lost events of the engine before message " + dump.lostNumber());
        }
        return true;
    }

    /** The engine has begun anew: the slot is emptied, nothing is known of its messages. */
    void restarted(String how) {
        status.counts.restarts++;
        final String what = "the engine has restarted: " + how;
        parts.info(StreamLog.Kind.BEGUN_ANEW, what + "; its blocks are cleared");
        beginAnew();
        status.problemUntilLoaded(what);
    }

    /** Drops the live messages that wait for older ones. */
    void dropWaiting() {
        held.clear();
        early.drop();
    }

    private void beginAnew() {
        refills.drop();
        tracker.forget();
        dropWaiting();
        replay.nothing();
        status.unloaded();
        status.complete();
        parts.decoder.forget();
        var _ = parts.removals.beginAnew();
        parts.forecasts.forget();
        parts.believe();
        output.clear();
    }

    /** Empties the slot and wants everything from message 0. */
    void reload() {
        if (!early.isEmpty() && !parts.isReplayable()) {
            takeEarly();
        }
        early.drop();
        refills.drop();
        final long last = tracker.last();
        tracker.rewind();
        status.unloaded();
        status.complete();
        output.clear();
        if (parts.isReplayable()) {
            replay.load();
        } else {
            tracker.skipTo(last);
            status.loaded();
            status.lost("the slot was cleared and there is no replay endpoint to load it from");
        }
    }
}
