package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

import java.security.SecureRandom;
import java.time.InstantSource;

/**
 * Numbers the messages of one publisher and puts them into envelopes. Guarded by its transport: the
 * order in which messages are sent must be that of their numbers.
 */
public final class Envelopes {
    private static final int PUBLISHER_ID_BITS = 53;

    private final long publisherId =
            new SecureRandom().nextLong() >>> (Long.SIZE - PUBLISHER_ID_BITS);
    private final String topic;
    private final InstantSource clock;
    private long sequence;

    /**
     * Begins a publisher's messages, under a random number.
     *
     * @param topic of the messages
     * @param clock for the time at which they were published
     */
    public Envelopes(String topic, InstantSource clock) {
        this.topic = topic;
        this.clock = clock;
    }

    /** The publisher's number. */
    public long publisherId() {
        return publisherId;
    }

    /** Number of the next message. */
    public long sequence() {
        return sequence;
    }

    /** The next message. */
    public byte[] next(long workerId, int dpRank, long firstEventId, KvBatch events) {
        final byte[] payload = RouterEventWriter.payload(workerId, dpRank, firstEventId, events);
        return RouterEventWriter.envelope(publisherId, sequence++, clock.millis(), topic, payload);
    }
}
