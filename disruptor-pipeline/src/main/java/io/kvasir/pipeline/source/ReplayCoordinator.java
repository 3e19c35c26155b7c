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
    private final StreamParts parts;
    private final SourceConfig config;
    private final SequenceTracker tracker;
    private final ReplayRequest replay;
    private final RetryTimer retry;
    private final StreamStatus status;
    private final StreamOutput output;
    private final MessageSequencer sequencer;
    private final RefillCoordinator refills;

    ReplayCoordinator(
            StreamParts parts,
            StreamStatus status,
            StreamOutput output,
            MessageSequencer sequencer,
            RefillCoordinator refills) {
        this.parts = parts;
        this.config = parts.config;
        this.tracker = parts.tracker;
        this.replay = parts.replay;
        this.retry = parts.retry;
        this.status = status;
        this.output = output;
        this.sequencer = sequencer;
        this.refills = refills;
    }

    /** Takes a message that was asked for. */
    ReplayStep replayed(long sequence, byte[] payload) {
        if (replay.is(Wanted.HEAL)) {
            if (sequence > 1) {
                healFailed(); // the start is not there
                return ReplayStep.STOP;
            }
            sequencer.reload();
        }
        final long last = tracker.last();
        if (replay.is(Wanted.VERIFY) && !replay.isVerified()) {
            if (sequence < last) {
                return ReplayStep.CONTINUE;
            }
            final boolean same =
                    tracker.isLast(sequence, tracker.contentOf(payload, 0, payload.length));
            if (sequence == last && !same) {
                return loadNewLife("message " + last + " has other content now");
            }
            if (sequence > last && replay.isStrict()) {
                return loadNewLife("message " + last + " is not there any more");
            }
            replay.verified();
            parts.freshness.believe();
        }
        if (sequence <= last) {
            return ReplayStep.CONTINUE;
        }
        if (!take(sequence, payload)) {
            return ReplayStep.RETRY;
        }
        if (sequence > last + 1 && !(last < 0 && sequence == 1)) {
            output.lose(last + 1, sequence - 1, "the engine's replay buffer no longer holds them");
        }
        return ReplayStep.CONTINUE;
    }

    private boolean take(long sequence, byte[] payload) {
        if (parts.decoder.shapeOf(payload, 0, payload.length) == MessageDecoder.Shape.BATCH) {
            return !parts.rank.accepts(payload, 0, payload.length)
                    || output.offer(sequence, payload, 0, payload.length);
        }
        final String what = "replayed message " + sequence + " is no event batch";
        output.drop(DropReason.UNDECODABLE_MESSAGE, what);
        status.lost(what);
        output.skip(sequence, payload, 0, payload.length);
        return true;
    }

    private ReplayStep loadNewLife(String how) {
        sequencer.restarted(how);
        replay.load();
        return ReplayStep.STOP;
    }

    private void healFailed() {
        replay.nothing();
        retry.start(parts.nanoClock.getAsLong());
        sequencer.applyHeld();
    }

    /** The engine has sent everything that it was asked for. */
    void ended() {
        status.counts.replays++;
        if (refills.isAsked()) {
            refills.replayEnded();
        } else if (replay.is(Wanted.VERIFY) && !replay.isVerified() && replay.isStrict()) {
            loadNewLife("it knows of no message " + tracker.last());
        } else if (replay.is(Wanted.HEAL)) {
            healFailed(); // nothing is there
        } else {
            finish("the engine's replay did not contain them");
        }
    }

    /**
     * The engine did not answer.
     *
     * @param detail why; may be empty
     */
    void failed(String detail) {
        status.counts.replayFailures++;
        final String why =
                "replay endpoint "
                        + config.replayEndpoint()
                        + " does not answer"
                        + (detail.isEmpty() ? "" : ": " + detail);
        status.problem(why);
        if (refills.isAsked()) {
            refills.replayFailed();
            return;
        }
        if (replay.is(Wanted.HEAL)) {
            replay.nothing();
            sequencer.applyHeld();
        } else {
            final boolean nothingLoaded = tracker.last() < 0;
            finish(why);
            if (nothingLoaded && status.loss() == null) {
                status.lostWithWarning(why + ": messages may be missing");
            }
        }
        retry.start(parts.nanoClock.getAsLong());
    }

    private void finish(String whyMissing) {
        replay.nothing();
        status.loaded();
        final long last = tracker.last();
        if (sequencer.heldNumber() > last + 1) {
            output.lose(last + 1, sequencer.heldNumber() - 1, whyMissing);
        }
        sequencer.applyHeld();
    }

    /** Asks again for a view that is not right, when it is time. */
    void mend(long nowNs) {
        if (!config.isReplayable() || !replay.isIdle()) {
            return;
        }
        final boolean doubted = parts.freshness.isDoubted();
        final boolean wrong =
                doubted || status.loss() != null || !parts.counters.impairment().isEmpty();
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

    private void ask(boolean doubted, boolean wrong) {
        if (doubted) {
            replay.verify(true);
        } else if (wrong) {
            replay.heal();
        } else {
            refills.begin();
        }
    }
}
