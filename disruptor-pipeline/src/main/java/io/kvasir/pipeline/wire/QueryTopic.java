package io.kvasir.pipeline.wire;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A query to a local indexer over ZMQ: a subscription to a topic that nothing else is published
 * under, see docs/spec/recovery.md. It reaches a publisher over the connection that events come by,
 * through a broker, too, and so does the answer come back.
 *
 * <pre>
 *   "kv-query" | asker, 8 bytes | number of the query, 8 bytes | the query, as over NATS
 * </pre>
 *
 * <p>All numbers are big-endian. Messages of the answer have the topic and a frame with an answer
 * as over NATS, or one byte: {@link #HEARD} first, {@link #END} last.
 *
 * @param askerId random, one for each that asks
 * @param queryId that the asker gave it
 * @param query what is asked
 */
public record QueryTopic(long askerId, long queryId, RecoveryQuery query) {
    /** What a frame says that is no part of an answer: the query has arrived. */
    public static final byte HEARD = 0;

    /** Likewise: the answer has ended. */
    public static final byte END = 1;

    private static final byte[] PREFIX = EventFields.ascii("kv-query");
    private static final int HEAD_LENGTH = PREFIX.length + 2 * Long.BYTES;
    private static final int MOST_BYTES = 512;

    /** The topic. */
    public byte[] toBytes() {
        final byte[] asked = query.toBytes();
        return ByteBuffer.allocate(HEAD_LENGTH + asked.length)
                .put(PREFIX)
                .putLong(askerId)
                .putLong(queryId)
                .put(asked)
                .array();
    }

    /**
     * Reads a topic.
     *
     * @return null if it is no query's
     */
    public static QueryTopic readOrNull(byte[] topic) {
        if (topic.length > MOST_BYTES || !isAnswerTo(topic, 0, topic.length)) {
            return null;
        }
        final ByteBuffer numbers = ByteBuffer.wrap(topic, PREFIX.length, 2 * Long.BYTES);
        final long asker = numbers.getLong();
        final long id = numbers.getLong();
        final RecoveryQuery query =
                RecoveryQuery.read(Arrays.copyOfRange(topic, HEAD_LENGTH, topic.length));
        return query == null ? null : new QueryTopic(asker, id, query);
    }

    /** Whether the first frame of a message says that it is of an answer to a query. */
    public static boolean isAnswerTo(byte[] bytes, int offset, int length) {
        return length >= HEAD_LENGTH
                && Arrays.equals(bytes, offset, offset + PREFIX.length, PREFIX, 0, PREFIX.length);
    }

    /**
     * Number of the query in the first frame of an answer's message.
     *
     * @return 0 if the asker is another one
     */
    public static long queryId(byte[] bytes, int offset, long askerId) {
        final ByteBuffer numbers = ByteBuffer.wrap(bytes, offset + PREFIX.length, 2 * Long.BYTES);
        return numbers.getLong() == askerId ? numbers.getLong() : 0;
    }
}
