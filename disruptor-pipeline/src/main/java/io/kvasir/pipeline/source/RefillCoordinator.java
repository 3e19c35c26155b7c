package io.kvasir.pipeline.source;

import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.pipeline.source.ReplayRequest.Wanted;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.MessageDecoder;

/**
 * Runs the {@link Refill} of one stream: asks for replays until its shadow has caught up with the
 * live messages, then reports it to the index, some parts at a time. A refill is given up when the
 * view that it was made for is lost, cleared or doubted. Guarded by the stream's lock.
 */
final class RefillCoordinator {
    /** Parts that are handed on at once. */
    private static final int PARTS = 16;

    /** Replays of one refill: each brings what the one before has missed. */
    private static final int REPLAYS = 8;

    /** Blocks that an engine may have held beyond what the index has room for, some time ago. */
    private static final int SLACK = 1024;

    private final StreamParts parts;
    private final SourceConfig config;
    private final ReplayRequest replay;
    private final StreamStatus status;
    private final CountedSink sink;
    private final KvBatch replayed = new KvBatch();
    private Refill refill; // null when none is under way
    private boolean asked; // the replay under way is of one
    private boolean brought; // it has brought something new

    RefillCoordinator(StreamParts parts, StreamStatus status, CountedSink sink) {
        this.parts = parts;
        this.config = parts.config;
        this.replay = parts.replay;
        this.status = status;
        this.sink = sink;
    }

    boolean isUnderWay() {
        return refill != null;
    }

    void begin() {
        refill = new Refill(config, parts.loraNumbers);
        replay.refill(0);
    }

    /** Gives a refill up: its view is not the one of the slot any more. */
    void drop() {
        refill = null;
    }

    /** Follows a live message that the index gets. */
    void follow(long sequence, KvBatch message) {
        if (refill != null && !refill.live(sequence, message) && refill.isReporting()) {
            refill = null;
        }
    }

    /** The engine is asked for what is wanted now. */
    void replayAsked() {
        asked = replay.is(Wanted.REFILL);
        brought = false;
    }

    /** Whether the replay under way has brought the shadow something new. */
    boolean hasBrought() {
        return brought;
    }

    /** Whether the replay under way is of a refill. */
    boolean isAsked() {
        return asked;
    }

    /** Shows the shadow a replayed message; what is live continues meanwhile. */
    ReplayStep replayed(long sequence, byte[] payload) {
        if (!replay.is(Wanted.REFILL) || refill == null) {
            endReplay();
            return ReplayStep.STOP;
        }
        replayed.reset(
                config.slot(),
                sequence,
                parts.removals.rule(),
                config.rootStoresRefresh(),
                ApplyListener.NONE);
        final boolean usable =
                parts.decoder.shapeOf(payload, 0, payload.length) == MessageDecoder.Shape.BATCH;
        if (usable && !parts.rank.accepts(payload, 0, payload.length)) {
            return ReplayStep.CONTINUE;
        }
        final long before = refill.last();
        final boolean followed = usable && refill.replayed(sequence, payload, replayed);
        if (usable && !followed && brought) {
            asked = false;
            replay.refill(before + 1); // what is left out was dropped on its way
            return ReplayStep.STOP;
        }
        if (!followed || refill.blocks() - SLACK > sink.mostBlocks()) {
            refill = null; // its start, or something between, is not there, or it is too much
            endReplay();
            return ReplayStep.STOP;
        }
        if (refill.last() > before) {
            brought = true;
            replay.refilled(refill.last());
        }
        return ReplayStep.CONTINUE;
    }

    /** Takes all that the engine holds in place of replayed messages; false if it is of no use. */
    boolean dumped(PlaneDump dump) {
        if (!replay.is(Wanted.REFILL) || refill == null || refill.last() > dump.lastNumber()) {
            refill = null;
            endReplay();
            return false;
        }
        refill.dumped(dump);
        if (refill.blocks() - SLACK > sink.mostBlocks()) {
            refill = null;
            endReplay();
        } else {
            replayEnded();
        }
        return true;
    }

    void replayEnded() {
        asked = false;
        if (replay.is(Wanted.REFILL)) {
            replay.nothing();
            goOn();
        }
    }

    void replayFailed() {
        refill = null;
        endReplay();
    }

    private void endReplay() {
        asked = false;
        if (replay.is(Wanted.REFILL)) {
            replay.nothing();
            parts.retry.start(parts.nanoClock.getAsLong());
        }
    }

    /** Reports the shadow when it has caught up; asks for more, or drops it, when it has not. */
    void goOn() {
        final long last = parts.tracker.last();
        if (refill == null || status.loss() != null || parts.freshness.isDoubted()) {
            refill = null;
        } else if (replay.isIdle() && refill.last() < last) {
            if (refill.isReporting() || refill.replays() == REPLAYS) {
                refill = null;
                parts.retry.start(parts.nanoClock.getAsLong());
            } else {
                replay.refill(refill.ask());
            }
        } else if (replay.isIdle() && refill.last() == last) {
            report();
        }
    }

    private void report() {
        for (int i = 0; i < PARTS && !refill.isComplete(); i++) {
            if (!refill.report(sink, parts.counters)) {
                return;
            }
        }
        if (refill.isComplete()) {
            refill = null;
        }
    }
}
