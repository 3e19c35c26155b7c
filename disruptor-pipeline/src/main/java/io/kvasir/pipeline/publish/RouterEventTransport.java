package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;

import java.io.IOException;

/** Carries router events to their readers. Any thread may call; calls are ordered. */
public interface RouterEventTransport extends AutoCloseable {
    /**
     * Publishes consecutive events, in order.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     * @param firstEventId number of the first event
     * @param events what happened: stores, removals, clears; not kept
     * @throws UnpublishableException if they cannot be published, now or later
     * @throws IOException if they are not published, or only some of them
     */
    void publish(long workerId, int dpRank, long firstEventId, KvBatch events) throws IOException;

    /** Bytes of the longest message that it can carry now, with all that is around the events. */
    default long maxMessageBytes() {
        return Long.MAX_VALUE;
    }

    /** The random number by which its messages name their publisher; 0 where they name none. */
    default long publisherId() {
        return 0;
    }

    /** Ends the transport; what it has taken is sent if that takes no long time. Idempotent. */
    @Override
    void close();
}
