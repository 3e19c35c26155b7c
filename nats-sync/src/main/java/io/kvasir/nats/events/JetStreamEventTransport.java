package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamOptions;

import java.io.IOException;

/**
 * Publishes router events to the stream of JetStream that older routers read, one event a message.
 * Waits for the server to have each event: what is published is kept for an hour.
 *
 * <p>Makes the stream if it is not there. After a failure some of the events may be in the stream;
 * the same ones published again are recognised by their numbers.
 */
public final class JetStreamEventTransport implements RouterEventTransport {
    private final NatsAccess access;
    private final EventSubjects names;
    private final String subject;
    private final Connection connection;
    private final JetStreamOptions options;
    private JetStream stream; // null until it is there

    /**
     * Connects; later it connects again by itself.
     *
     * @param access where NATS is
     * @param names for whom
     * @param oldSubject whether to use the subject of publishers up to 0.7
     * @throws IOException if NATS cannot be reached now
     */
    public JetStreamEventTransport(NatsAccess access, EventSubjects names, boolean oldSubject)
            throws IOException {
        this.access = access;
        this.names = names;
        this.subject = oldSubject ? names.oldStreamSubject() : names.streamSubject();
        this.options = JetStreamOptions.builder().requestTimeout(access.timeout()).build();
        this.connection = NatsEventTransport.connect(access);
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        try {
            if (stream == null) {
                EventStreams.open(connection.jetStreamManagement(options), names);
                stream = connection.jetStream(options);
            }
            long eventId = firstEventId;
            for (int at = events.first(); at >= 0; at = events.next(at)) {
                stream.publish(
                        subject, RouterEventWriter.json(workerId, dpRank, eventId++, events, at));
            }
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            stream = null; // it may have been deleted
            throw new IOException(access.address() + ": " + e.getMessage(), e);
        }
    }

    @Override
    public void close() {
        try {
            connection.close();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
