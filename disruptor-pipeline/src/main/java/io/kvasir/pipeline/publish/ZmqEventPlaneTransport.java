package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;

/**
 * Publishes router events over a ZMQ publisher that is bound, each message in four frames.
 *
 * <pre>
 * topic | publisher, 8 bytes big-endian | number, 8 bytes big-endian | 01 | length, 4 bytes | envelope
 * </pre>
 */
public final class ZmqEventPlaneTransport implements RouterEventTransport {
    private static final byte VERSION = 1;

    private final byte[] topic;
    private final Envelopes envelopes;
    private final ZmqPublisher sockets;

    /**
     * Binds.
     *
     * @param endpoint address, such as {@code tcp://*:0}; port 0 is any
     * @param topic of the messages, such as {@code kv-events}
     * @throws IOException if the address cannot be bound
     */
    public ZmqEventPlaneTransport(String endpoint, String topic) throws IOException {
        this.topic = topic.getBytes(StandardCharsets.US_ASCII);
        this.envelopes = new Envelopes(topic, InstantSource.system());
        this.sockets = new ZmqPublisher(endpoint, null, this.topic, null);
    }

    /** The bound address, with the real port. */
    public String endpoint() {
        return sockets.endpoint();
    }

    /** Messages that a subscriber was too slow for. */
    public long unsentMessages() {
        return sockets.unsentMessages();
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events) {
        final byte[] number = ZmqPublisher.number(envelopes.sequence());
        final byte[] envelope = envelopes.next(workerId, dpRank, firstEventId, events);
        final byte[] frame =
                ByteBuffer.allocate(1 + Integer.BYTES + envelope.length)
                        .put(VERSION)
                        .putInt(envelope.length)
                        .put(envelope)
                        .array();
        sockets.send(topic, ZmqPublisher.number(envelopes.publisherId()), number, frame);
    }

    @Override
    public void close() {
        sockets.close();
    }
}
