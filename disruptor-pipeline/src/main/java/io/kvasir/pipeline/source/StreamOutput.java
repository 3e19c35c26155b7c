package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.MessageDecoder;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.List;

/**
 * The way from a message whose turn it is to the sink: each is decoded into one batch, led by a
 * clear where one is due, and offered. Follows the number of the last message that was taken.
 * Guarded by the stream's lock.
 */
final class StreamOutput {
    private static final Logger LOG = LoggerFactory.getLogger(StreamOutput.class);
    private static final int RETAINED_WORDS = 1 << 14;
    private static final String RING_FULL = "the event ring is full; raise event-ring-size";

    private final StreamParts parts;
    private final SourceConfig config;
    private final MessageDecoder decoder;
    private final StreamStatus status;
    private final RefillCoordinator refills;
    private final CountedSink sink;
    private final KvBatch batch = new KvBatch();
    private boolean begunAnew; // the last message that was taken
    private boolean clearPending;
    private boolean onLoaded; // the slot has blocks of another index, and no message has come yet
    private boolean wasMissing; // blocks of adapters, after the last message
    private int warnedBlockSize;

    StreamOutput(
            StreamParts parts, StreamStatus status, RefillCoordinator refills, CountedSink sink) {
        this.parts = parts;
        this.config = parts.config;
        this.decoder = parts.decoder;
        this.status = status;
        this.refills = refills;
        this.sink = sink;
    }

    /** Decodes a message and offers it; false if the sink has no room, then nothing has changed. */
    boolean offer(long sequence, byte[] payload, int offset, int length) {
        reset(sequence);
        settleLoaded(sequence);
        if (clearPending) {
            batch.addCleared();
        }
        final int before = batch.operations();
        decoder.decode(payload, offset, length, batch);
        final boolean begins = sequence == 0 || contains(KvBatch.Kind.CLEARED, before);
        final long content = parts.tracker.contentOf(payload, offset, length);
        final boolean goesOn = status.loss() == null && follows(sequence);
        final boolean missing = parts.loraNumbers.missing() > 0;
        if (!parts.isUnproven()) { // else nothing is to go on from it
            batch.ofMessage(content, (begins || goesOn) && !decoder.lostBlocks() && !missing);
        }
        batch.leavesOut(missing && !wasMissing);
        decoder.learned(batch);
        batch.at(parts.handedOn());
        if (!sink.offer(batch)) {
            status.problem(RING_FULL);
            return false;
        }
        status.over(RING_FULL);
        clearPending = false;
        wasMissing = missing;
        if (contains(KvBatch.Kind.CLEARED, before)) {
            parts.loraNumbers.clearedIn(sequence);
            parts.removals.forget();
            parts.forecasts.emptied();
        }
        decoder.taken(batch);
        refills.follow(sequence, batch);
        status.counts.events += decoder.eventCount();
        if (contains(KvBatch.Kind.STORED, before)) {
            parts.freshness.stored();
        }
        begunAnew = begins && !decoder.lostBlocks();
        if (begins) {
            status.complete();
        }
        if (decoder.lostBlocks()) {
            eventsLost(sequence);
        }
        batch.trim(RETAINED_WORDS);
        goTo(sequence, content);
        return true;
    }

    /** Whether a message was the last one that was taken, and nothing before it can be missing. */
    boolean hasBegunAnewWith(long sequence) {
        return begunAnew && parts.tracker.last() == sequence;
    }

    /** What another index knew goes before the first message of an engine that has begun anew. */
    private void settleLoaded(long sequence) {
        if (onLoaded && sequence == 0) {
            clearPending = true;
            LOG.info(
                    "{}: the engine has begun anew since its blocks were loaded; they are cleared",
                    config.label());
        }
        onLoaded = false;
    }

    /** Whether no message is missing before one; some publishers count from 1. */
    private boolean follows(long sequence) {
        final long last = parts.tracker.last();
        return sequence <= last + 1 || (last < 0 && sequence == 1);
    }

    private void reset(long sequence) {
        batch.reset(
                config.slot(),
                sequence,
                parts.removals.rule(),
                config.rootStoresRefresh(),
                parts.counters);
    }

    private boolean contains(KvBatch.Kind kind, int operationsBefore) {
        int operation = 0;
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            if (operation++ >= operationsBefore && batch.kind(at) == kind) {
                return true;
            }
        }
        return false;
    }

    private void eventsLost(long sequence) {
        final int learned = decoder.learnedBlockSize();
        if (learned != 0 && learned != config.blockSize()) {
            status.lost(
                    IndexCause.BLOCK_SIZE,
                    "the engine's block size is "
                            + learned
                            + ", configured is "
                            + config.blockSize()
                            + ": its stores are dropped; set block-size="
                            + learned);
            if (warnedBlockSize != learned) {
                warnedBlockSize = learned;
                parts.warn(StreamLog.Kind.LOST, status.loss());
            }
        } else {
            if (status.loss() == null) {
                parts.warn(
                        StreamLog.Kind.LOST,
                        "message "
                                + sequence
                                + " held events that could not be used: "
                                + decoder.drops().nonZero());
            }
            status.lost(
                    IndexCause.UNUSABLE_EVENTS,
                    "message " + sequence + " held events that could not be used; see the drops");
        }
        status.problem(status.loss());
    }

    /** Goes on to the number of a message without offering it. */
    void skip(long sequence, byte[] payload, int offset, int length) {
        begunAnew = false;
        goTo(sequence, parts.tracker.contentOf(payload, offset, length));
    }

    private void goTo(long sequence, long content) {
        parts.tracker.advance(sequence, content);
        if (!status.isLoaded()) {
            status.loaded();
        }
    }

    /** Gives a message up that found no room. */
    void giveUp(long sequence, byte[] payload, int offset, int length) {
        lose(sequence, sequence, RING_FULL);
        skip(sequence, payload, offset, length);
    }

    /** Gives messages up: the view lacks what they announced. */
    void lose(long from, long to, String why) {
        refills.drop();
        status.lose(from, to, why);
    }

    /** Counts a malformed message and drops it. */
    void drop(DropReason reason, String what) {
        decoder.drops().add(reason);
        status.problem(what);
        LOG.debug("{}: {}", config.label(), what);
    }

    /** Empties the slot in the index, as soon as the sink has room. */
    void clear() {
        clearPending = true;
        wasMissing = false;
        decoder.emptied();
        parts.loraNumbers.cleared();
        flushClear();
    }

    /** The slot has blocks of another index: see {@link EngineStream#startOnLoaded}. */
    void startOnLoaded() {
        onLoaded = true;
    }

    /** Offers a clear that found no room before. */
    void flushClear() {
        if (clearPending) {
            reset(parts.tracker.last());
            batch.addCleared();
            clearPending = !sink.offer(batch);
        }
    }

    /**
     * Offers a view that takes the place of the one before; false if the sink had no room for all
     * of it, then what it has is a part of it.
     *
     * @param batches led by a clear
     */
    boolean replace(List<KvBatch> batches) {
        for (KvBatch part : batches) {
            if (!sink.offer(part)) {
                status.problem(RING_FULL);
                return false;
            }
            clearPending = false;
        }
        status.over(RING_FULL);
        parts.freshness.stored();
        return true;
    }

    /** Hears of what becomes of the slot's blocks before the first batch. */
    void listen() {
        sink.listen(config.slot(), parts.counters);
    }

    /** Whether the index has room for what it refused of this stream. */
    boolean hasRoom() {
        return sink.hasRoom(config.slot());
    }
}
