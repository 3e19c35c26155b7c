package io.kvasir.pipeline.source;

import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.pipeline.source.ReplayRequest.Wanted;
import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.MessageDecoder;

/**
 * What becomes of the answers to a stream's {@link ReplayRequest}, and when a view that is not
 * right is asked for again: the <em>heal timer</em>. Guarded by the stream's lock.
 */
final class ReplayCoordinator {
    private static final String HEAL_FAILED = "they came while older messages were asked for";
    private static final String NOT_CONTAINED = "the engine's replay did not contain them";

    private final StreamParts parts;
    private final SequenceTracker tracker;
    private final ReplayRequest replay;
    private final RetryTimer retry;
    private final StreamStatus status;
    private final StreamOutput output;
    private final MessageSequencer sequencer;
    private final RefillCoordinator refills;
    private long lastBefore; // the answer under way
    private boolean brought; // it has brought something new
    private boolean foreign; // it has messages of another rank
    private boolean compared; // it has shown that it is of the life that is known
    private String unanswered = ""; // the problem of the last request without a whole answer

    ReplayCoordinator(
            StreamParts parts,
            StreamStatus status,
            StreamOutput output,
            MessageSequencer sequencer,
            RefillCoordinator refills) {
        this.parts = parts;
        this.tracker = parts.tracker;
        this.replay = parts.replay;
        this.retry = parts.retry;
        this.status = status;
        this.output = output;
        this.sequencer = sequencer;
        this.refills = refills;
    }

    /** The engine is asked: what it sends from now on is the answer. */
    void asked() {
        brought = false;
        foreign = false;
        compared = parts.isQueryable(); // a local indexer says it beforehand
    }

    /** What is asked answers, with whatever. */
    void answers() {
        status.over(unanswered);
        retry.answered();
    }

    /** Whether the answer has brought something new, to the stream or to a refill. */
    boolean hasBrought() {
        return brought || refills.hasBrought();
    }

    /**
     * Takes a message that was asked for. What is left out within an answer is asked for again, as
     * long as each answer brings something new: engines keep their newest messages, without a hole,
     * but vLLM's socket drops what does not fit between it and a reader that is slower. What an
     * answer does not begin with is lost.
     */
    ReplayStep replayed(long sequence, byte[] payload) {
        final boolean usable = isBatch(payload);
        if (usable && !parts.rank.accepts(payload, 0, payload.length)) {
            foreign = true; // it proves nothing, and its number is none of this rank's
            return ReplayStep.CONTINUE;
        }
        if (replay.is(Wanted.HEAL)) {
            if (sequence > 1) {
                healFailed(); // the start is not there
                return ReplayStep.STOP;
            }
            sequencer.reload();
        }
        final long last = tracker.last();
        final long content = tracker.contentOf(payload, 0, payload.length);
        if (last >= 0 && !compared) {
            final long proof = tracker.proof();
            if (sequence < proof) {
                return ReplayStep.CONTINUE;
            }
            if (sequence == proof && !tracker.isProof(sequence, content)) {
                return loadNewLife("message " + proof + " has other content now");
            }
            if (sequence > proof && isStrict()) {
                return loadNewLife("message " + proof + " is not there any more");
            }
            replay.verified();
            parts.believe();
        }
        compared = true;
        if (sequence <= last) { // after the proof came what had waited, maybe of the former life
            return !parts.isQueryable() && tracker.differs(sequence, content)
                    ? loadNewLife("message " + sequence + " has other content now")
                    : ReplayStep.CONTINUE;
        }
        final boolean jumps = sequence > last + 1 && !(last < 0 && sequence == 1);
        if (jumps && brought) {
            return ReplayStep.STOP;
        }
        if (!take(sequence, payload, usable)) {
            return ReplayStep.RETRY;
        }
        brought = true;
        if (jumps) {
            output.lose(last + 1, sequence - 1, "the engine's replay buffer no longer holds them");
            if (output.hasBegunAnewWith(sequence)) {
                status.complete(); // the engine was empty in between
            }
        }
        return ReplayStep.CONTINUE;
    }

    private boolean isBatch(byte[] payload) {
        return parts.decoder.shapeOf(payload, 0, payload.length) == MessageDecoder.Shape.BATCH;
    }

    private boolean take(long sequence, byte[] payload, boolean usable) {
        if (usable) {
            return output.offer(sequence, payload, 0, payload.length);
        }
        final String what = "replayed message " + sequence + " is no event batch";
        output.drop(DropReason.UNDECODABLE_MESSAGE, what);
        status.lost(IndexCause.UNUSABLE_EVENTS, what);
        output.skip(sequence, payload, 0, payload.length);
        return true;
    }

    /** Whether the absence of the message to compare means another life of the engine. */
    private boolean isStrict() {
        return replay.is(Wanted.LOAD) || replay.isStrict() || parts.freshness.isDoubted();
    }

    private ReplayStep loadNewLife(String how) {
        sequencer.restarted(how);
        replay.load();
        return ReplayStep.STOP;
    }

    private void healFailed() {
        replay.nothing();
        retry.start(parts.nanoClock.getAsLong());
        sequencer.applyHeld(HEAL_FAILED, false);
    }

    /** The engine has sent everything that it was asked for. */
    void ended() {
        answeredToTheEnd();
        if (refills.isAsked()) {
            refills.replayEnded();
        } else if (isOfNewLife()) {
            loadNewLife("it knows of no message " + tracker.proof());
        } else if (replay.is(Wanted.HEAL)) {
            healFailed(); // nothing is there
        } else if (parts.isQueryable()) {
            answered();
        } else {
            if (!replay.is(Wanted.VERIFY) || replay.isVerified()) {
                status.endSeen();
            }
            finish(NOT_CONTAINED, brought);
        }
    }

    /** Whether the answer has none of the messages that the engine must have sent before. */
    private boolean isOfNewLife() {
        return tracker.last() >= 0
                && !compared
                && !foreign
                && (replay.is(Wanted.LOAD) || replay.is(Wanted.VERIFY))
                && isStrict();
    }

    private void answeredToTheEnd() {
        status.counts.replays++;
        answers();
    }

    /**
     * The engine did not answer.
     *
     * @param detail why; may be empty
     */
    void failed(String detail) {
        if (parts.checksOnly()) {
            replay.nothing(); // nothing shows that anything is missing
            return;
        }
        status.counts.replayFailures++;
        final String why =
                parts.replayName() + " does not answer" + (detail.isEmpty() ? "" : ": " + detail);
        if (!hasBrought()) {
            retry.unanswered(why);
        }
        status.problem(why);
        unanswered = why;
        if (refills.isAsked()) {
            refills.replayFailed();
            return;
        }
        retry.start(parts.nanoClock.getAsLong()); // what waited is not asked for again at once
        if (replay.is(Wanted.HEAL)) {
            parts.forecasts.unanswered();
            replay.nothing();
            sequencer.applyHeld(why, false);
        } else if (parts.isQueryable() && tracker.last() < 0 && parts.held.isEmpty()) {
            replay.nothing(); // the first event may be the worker's first one
        } else {
            final long last = tracker.last();
            final boolean breaksOff = replay.is(Wanted.LOAD) || replay.isVerified();
            finish(why, false);
            if (status.loss() == null && !parts.isQueryable()) {
                if (last < 0) {
                    status.lostWithWarning(why + ": messages may be missing");
                } else if (breaksOff && tracker.last() == last) {
                    status.endUnseen(why + ": messages after " + last + " may be missing");
                }
            }
        }
    }

    private void finish(String whyMissing, boolean askAgain) {
        replay.nothing();
        status.loaded();
        sequencer.applyHeld(whyMissing, askAgain);
        if (parts.isQueryable() && replay.isIdle() && tracker.isBehind()) {
            output.lose(tracker.last() + 1, tracker.highest(), whyMissing);
        }
    }

    /**
     * A local indexer begins to answer: the worker's life is the one that its events are of.
     *
     * @param same false if it is another one: then the slot is cleared, and everything is wanted
     * @param how in words, what shows that it is another one
     */
    void answerBegins(boolean same, String how) {
        lastBefore = tracker.last();
        if (!same) {
            sequencer.restarted(how);
            replay.load();
            lastBefore = tracker.last();
        } else if (replay.is(Wanted.VERIFY)) {
            replay.verified();
            parts.believe();
        }
    }

    /** Takes all that the engine holds in place of messages; false if it is of no use. */
    boolean dumped(PlaneDump dump) {
        if (refills.isAsked()) {
            return refills.dumped(dump);
        }
        final boolean overtaken = dump.lastNumber() < tracker.last();
        final boolean heals = replay.is(Wanted.HEAL);
        if (overtaken && !heals && !parts.checksOnly()) {
            return false; // what the slot has since is not there
        }
        if ((heals || !overtaken) && !sequencer.replace(dump)) {
            return false; // there was no room
        }
        answeredToTheEnd();
        parts.believe();
        if (tracker.isBehind() && (heals || tracker.last() > lastBefore)) {
            replay.missing(
                    tracker.last()); // the events after a dump are remembered as long as it is
        } else {
            answered();
        }
        return true;
    }

    /** All of an answer of a local indexer has come. */
    private void answered() {
        tracker.settle();
        finish("the worker's local indexer did not have them", tracker.last() > lastBefore);
    }

    /** Asks again for a view that is not right, when it is time. */
    void mend(long nowNs) {
        if (!parts.isReplayable() || !replay.isIdle()) {
            return;
        }
        final boolean doubted = parts.freshness.isDoubted();
        final boolean wrong =
                doubted
                        || isUnloaded()
                        || status.loss() != null
                        || parts.loraNumbers.isMendable()
                        || !parts.counters.impairment().isEmpty()
                        || parts.forecasts.wantsResync();
        if (wrong || (parts.counters.missing() > 0 && !refills.isUnderWay())) {
            if (!retry.isRunning()) {
                retry.start(nowNs);
            } else if ((wrong || output.hasRoom())
                    && (retry.take(nowNs)
                            || (parts.counters.hasRoomAgain() && retry.takeFirst()))) {
                ask(doubted, wrong);
            }
        } else if (!status.isImpaired() && status.isApplied()) {
            retry.settled();
        }
    }

    /** Whether a local indexer was asked for everything, and did not answer. */
    private boolean isUnloaded() {
        return parts.isQueryable() && !status.isLoaded() && parts.freshness.isConnected();
    }

    private void ask(boolean doubted, boolean wrong) {
        if (isUnloaded()) {
            replay.load();
        } else if (doubted) {
            replay.verify(true);
        } else if (status.isEndUnseen()) {
            replay.missing(tracker.last());
        } else if (wrong) {
            parts.forecasts.resynced();
            replay.heal();
        } else {
            refills.begin();
        }
    }
}
