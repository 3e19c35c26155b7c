package io.kvasir.nats.events;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.pipeline.publish.Envelopes;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;
import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamOptions;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.impl.Headers;

import java.io.IOException;
import java.time.InstantSource;
import java.util.List;

/**
 * Publishes router events to the stream of JetStream that older routers read: one event a message,
 * with a header that says which publisher it is, or several in an envelope. Waits for the server to
 * have each message: what is published is kept for an hour.
 *
 * <p>Makes the stream if it is not there. After a failure some of the events may be in the stream;
 * the same ones published again are recognised by their numbers. What is longer than the stream
 * takes is refused for good.
 */
public final class JetStreamEventTransport implements RouterEventTransport {
    private static final int MESSAGE_TOO_LONG = 10054;

    private final NatsAccess access;
    private final EventSubjects names;
    private final String subject;
    private final int replicas;
    private final Headers publisher = PublisherHeader.ofNewLife();
    private final Envelopes envelopesOrNull; // null for single events
    private final ServerErrors errors = new ServerErrors();
    private final LastingConnection connection;
    private final JetStreamOptions options;
    private JetStream stream; // null until it is there
    private String problem = ""; // of the stream when it was opened
    private long streamMessageBytes; // most bytes of a message with its headers, of that stream

    /**
     * Connects; later it connects again by itself.
     *
     * @param access where NATS is
     * @param names endpoint or component whose events they are
     * @param form of the messages
     * @throws IOException if NATS cannot be reached now
     */
    public JetStreamEventTransport(NatsAccess access, EventSubjects names, StreamForm form)
            throws IOException {
        this(access, names, form, EventStreams.ONE_SERVER);
    }

    /**
     * The same where the stream, if it is not there, is made to be kept by several servers.
     *
     * @param access where NATS is
     * @param names endpoint or component whose events they are
     * @param form of the messages
     * @param replicas servers of a cluster that keep the stream, 1..5
     * @throws IOException if NATS cannot be reached now
     */
    public JetStreamEventTransport(
            NatsAccess access, EventSubjects names, StreamForm form, int replicas)
            throws IOException {
        this.replicas = EventStreams.checkReplicas(replicas);
        this.access = access;
        this.names = names;
        this.subject =
                form == StreamForm.OLD_EVENTS ? names.oldStreamSubject() : names.streamSubject();
        this.envelopesOrNull =
                form == StreamForm.ENVELOPES
                        ? new Envelopes(names.topic(), InstantSource.system())
                        : null;
        this.options = JetStreamOptions.builder().requestTimeout(access.timeout()).build();
        this.connection = NatsEventTransport.connect(access, errors, _ -> {});
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        try {
            open();
            if (envelopesOrNull != null) {
                stream.publish(
                        subject, envelopesOrNull.next(workerId, dpRank, firstEventId, events));
                return;
            }
            long eventId = firstEventId;
            for (int at = events.first(); at >= 0; at = events.next(at)) {
                stream.publish(
                        subject,
                        publisher,
                        RouterEventWriter.json(workerId, dpRank, eventId++, events, at));
            }
        } catch (IllegalArgumentException e) {
            throw EventConnections.unpublishable(access, e);
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            stream = null; // it may have been deleted, or changed
            if (e instanceof JetStreamApiException refused
                    && refused.getApiErrorCode() == MESSAGE_TOO_LONG) {
                throw EventConnections.unpublishable(access, names, e);
            }
            throw new IOException(access.at(errors.reason(e, access.timeout())), e);
        }
    }

    /**
     * What the stream, which others may have made, does to events; makes it if it is not there.
     *
     * @return in words, with what to do; empty where nothing is wrong, or the stream cannot be
     *     asked: the publishing that follows says why
     */
    public synchronized String problem() {
        try {
            open();
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            return "";
        }
        return problem;
    }

    private void open() throws IOException, JetStreamApiException {
        if (stream != null) {
            return;
        }
        final Connection to = connection.now();
        final StreamConfiguration opened =
                EventStreams.open(to.jetStreamManagement(options), names, replicas)
                        .getConfiguration();
        problem = StreamFitness.problem(opened, names, List.of(subject));
        final long most = opened.getMaximumMessageSize();
        streamMessageBytes = most <= 0 ? Long.MAX_VALUE : most;
        stream = to.jetStream(options);
    }

    /** What server and stream take; where the stream cannot be asked, the server's alone. */
    @Override
    public synchronized long maxMessageBytes() {
        final long server = EventConnections.maxMessageBytes(connection);
        try {
            open();
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            return server; // the publishing that follows says why
        }
        return Math.min(server, streamMessageBytes);
    }

    @Override
    public void close() {
        connection.close();
    }
}
