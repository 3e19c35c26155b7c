package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;
import io.kvasir.pipeline.wire.LoraNumbers;
import io.kvasir.pipeline.wire.MessageDecoder;

/**
 * Gives an index back what it had no room for: a shadow of one engine's cache is built up from a
 * replay, beside the live messages, which go on; when it has caught up with these, all of it is
 * reported to the index, in parts. What the index holds stays held all the time. Not thread-safe.
 *
 * <p>Valid only while it has followed every message that the index has: it compares the number of
 * the last one.
 */
final class Refill implements EngineCache.Visitor {
    private final SourceConfig config;
    private final MessageDecoder decoder;
    private final EngineCache cache = new EngineCache();
    private final KvBatch batch = new KvBatch();
    private long last = -1;
    private int replays;
    private boolean begun;
    private boolean filled;
    private boolean complete;

    /**
     * @param names names of adapters by number, as the live messages are read by
     */
    Refill(SourceConfig config, LoraNumbers names) {
        this.config = config;
        this.decoder = config.form().newDecoder(config, names.copy());
    }

    /** Number of the message to ask for, once more. */
    long ask() {
        replays++;
        return last + 1;
    }

    /** How often it was asked for more. */
    int replays() {
        return replays;
    }

    /** Number of the last message that the shadow has followed, −1 before the first. */
    long last() {
        return last;
    }

    /** Blocks of the shadow. */
    int blocks() {
        return cache.size();
    }

    /**
     * Follows a message that the engine sends again.
     *
     * @return false if messages before it are missing
     */
    boolean replayed(long sequence, byte[] payload, KvBatch scratch) {
        if (sequence <= last) {
            return true;
        }
        if (sequence > last + 1 && !(last < 0 && sequence == 1)) {
            return false;
        }
        decoder.decode(payload, 0, payload.length, scratch);
        decoder.taken(scratch);
        follow(sequence, scratch);
        return true;
    }

    /** Begins with all that the engine holds. */
    void dumped(PlaneDump dump) {
        dump.batches().forEach(cache::apply);
        last = dump.lastNumber();
    }

    /**
     * Follows a live message.
     *
     * @return false if messages before it are missing, which a replay has
     */
    boolean live(long sequence, KvBatch message) {
        if (sequence == last + 1) {
            follow(sequence, message);
        }
        return sequence <= last;
    }

    private void follow(long sequence, KvBatch message) {
        if (filled) { // the part that waits would come behind the message
            cache.takeBack();
            filled = false;
            complete = false;
        }
        cache.apply(message);
        last = sequence;
    }

    /** Whether a part has been reported: from then on it has to follow every live message. */
    boolean isReporting() {
        return begun;
    }

    /**
     * Reports the next part; if there was no room for it, the same again as it is then.
     *
     * @param sink where to
     * @param listener notified of the result
     * @return whether there was room
     */
    boolean report(KvEventSink sink, ApplyListener listener) {
        if (!filled) {
            batch.reset(config.slot(), last, CopyRule.PHYSICAL, true, listener);
            if (!begun) {
                cache.rewind();
                batch.addRefill(false);
            }
            complete = cache.show(EngineCache.PART, this);
            if (complete) {
                batch.addRefill(true);
            }
        }
        filled = !sink.offer(batch);
        begun |= !filled;
        return !filled;
    }

    /** Whether the last part has been reported. */
    boolean isComplete() {
        return complete && !filled;
    }

    @Override
    public void stored(boolean root, long parent, long[] names, long[] locals, int count) {
        batch.addReported(root, parent, names, locals, count);
    }

    @Override
    public void copies(long name, int copies) {
        batch.addRemovedTo(name, copies);
    }
}
