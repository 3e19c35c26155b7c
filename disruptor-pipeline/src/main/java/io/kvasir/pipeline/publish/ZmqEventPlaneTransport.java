package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.util.List;

/**
 * Publishes router events over a ZMQ publisher, which is bound or connected to brokers, each
 * message in four frames. Over the same connections it answers queries to local indexers ({@link
 * #answerBy}).
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
    private boolean closed; // guarded by this

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

    private ZmqEventPlaneTransport(List<String> brokers, String subject, String topic) {
        this.topic = subject.getBytes(StandardCharsets.US_ASCII);
        this.envelopes = new Envelopes(topic, InstantSource.system());
        this.sockets = new ZmqPublisher(brokers);
    }

    /**
     * Connects to brokers, each of which is sent everything; now and again, without waiting for it.
     *
     * @param brokers addresses to which they want publishers to connect
     * @param subject that the messages would have over NATS, by which brokers know them
     * @param topic in their envelopes, such as {@code kv-events}
     * @throws IllegalArgumentException if an address is none that can be connected to
     */
    public static ZmqEventPlaneTransport toBrokers(
            List<String> brokers, String subject, String topic) {
        return new ZmqEventPlaneTransport(List.copyOf(brokers), subject, topic);
    }

    /**
     * Has routers that miss events of a worker answered by its local indexer, until the transport
     * ends.
     *
     * @param indexer made with {@link #publisherId}
     */
    public void answerBy(LocalIndexer indexer) {
        sockets.answerBy(indexer);
    }

    @Override
    public long publisherId() {
        return envelopes.publisherId();
    }

    /** The bound address, with the real port, or those of the brokers. */
    public String endpoint() {
        return sockets.endpoint();
    }

    /** Messages that a subscriber was too slow for. */
    public long unsentMessages() {
        return sockets.unsentMessages();
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        if (closed) {
            throw new IOException("the transport is closed");
        }
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
        synchronized (this) {
            closed = true; // what comes later would be behind the end of the sockets
        }
        sockets.close();
    }
}
