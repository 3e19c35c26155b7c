package io.kvasir.nats.events;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.pipeline.publish.Envelopes;
import io.kvasir.pipeline.publish.RouterEventTransport;
import io.kvasir.pipeline.wire.KvBatch;
import io.nats.client.Connection;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.InstantSource;
import java.util.concurrent.TimeoutException;

/**
 * Publishes router events over core NATS, in envelopes under the subject of an endpoint or a
 * component. Core NATS keeps nothing: without a subscriber they are lost.
 *
 * <p>Publishing does not wait for the server. While there is none it is refused, because what the
 * client would keep may be lost with it. A server that permits no publishing there says so
 * afterwards: from then on each message waits until the server has it, or has refused it, until one
 * was taken.
 */
public final class NatsEventTransport implements RouterEventTransport {
    private final NatsAccess access;
    private final String subject;
    private final Envelopes envelopes;
    private final ServerErrors errors = new ServerErrors();
    private final LastingConnection connection;

    /**
     * Connects; later it connects again by itself.
     *
     * @param access where NATS is
     * @param names endpoint or component whose events they are
     * @throws IOException if it cannot be reached now
     */
    public NatsEventTransport(NatsAccess access, EventSubjects names) throws IOException {
        this.access = access;
        this.subject = names.subject();
        this.envelopes = new Envelopes(names.topic(), InstantSource.system());
        this.connection = connect(access, errors, _ -> {});
    }

    static LastingConnection connect(
            NatsAccess access, ServerErrors errors, LastingConnection.Preparation preparation)
            throws IOException {
        try {
            return EventConnections.connect(
                    access, "kvasir-publisher", (_, _) -> {}, errors, preparation);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while connecting to " + access.address(), e);
        }
    }

    @Override
    public long publisherId() {
        return envelopes.publisherId();
    }

    @Override
    public synchronized void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
            throws IOException {
        final Connection to = connection.now();
        if (to.getStatus() != Connection.Status.CONNECTED) {
            throw new IOException(access.address() + ": " + to.getStatus());
        }
        final boolean wasRefused = to.getLastError() != null;
        to.clearLastError();
        try {
            to.publish(subject, envelopes.next(workerId, dpRank, firstEventId, events));
            if (wasRefused) {
                awaitTaken(to);
            }
        } catch (IllegalArgumentException e) {
            throw EventConnections.unpublishable(access, e);
        } catch (IllegalStateException e) {
            throw new IOException(access.address() + ": " + e.getMessage(), e);
        }
    }

    /** Until the server has taken all that was published, or has refused some of it again. */
    private void awaitTaken(Connection to) throws IOException {
        try {
            to.flush(access.timeout());
        } catch (TimeoutException e) {
            throw new IOException(access.address() + ": it does not confirm messages", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while publishing");
        }
        final String error = to.getLastError();
        if (error != null) {
            throw new IOException(access.address() + " refuses messages: " + error);
        }
    }

    @Override
    public long maxMessageBytes() {
        return EventConnections.maxMessageBytes(connection);
    }

    @Override
    public void close() {
        try {
            if (connection.isConnected()) {
                connection.now().flush(access.timeout());
            }
        } catch (TimeoutException | IllegalStateException e) {
            // what was not sent is lost with the connection
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        connection.close();
    }
}
