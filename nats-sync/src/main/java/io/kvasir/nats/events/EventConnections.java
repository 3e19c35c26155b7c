package io.kvasir.nats.events;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.pipeline.publish.UnpublishableException;
import io.nats.client.ConnectionListener;
import io.nats.client.ErrorListener;

import java.io.IOException;

/** Connections of the event plane. */
final class EventConnections {
    private EventConnections() {}

    /**
     * Connects once; later the connection is made again by itself, for ever.
     *
     * @throws IOException if it cannot be made now, naming the servers
     */
    static LastingConnection connect(
            NatsAccess access, String name, ConnectionListener listener, ErrorListener errors)
            throws IOException, InterruptedException {
        return connect(access, name, listener, errors, _ -> {});
    }

    /**
     * The same where each connection that is made is prepared.
     *
     * @throws IOException if it cannot be made now, naming the servers
     */
    static LastingConnection connect(
            NatsAccess access,
            String name,
            ConnectionListener listener,
            ErrorListener errors,
            LastingConnection.Preparation preparation)
            throws IOException, InterruptedException {
        try {
            return LastingConnection.make(
                    access.options(name).errorListener(errors), listener, preparation);
        } catch (IOException e) {
            throw new IOException(access.address() + ": " + e.getMessage(), e);
        }
    }

    /** Bytes of the longest message, with its headers, that the server takes as it is now. */
    static long maxMessageBytes(LastingConnection connection) {
        final long limit = connection.now().getMaxPayload();
        return limit <= 0 ? Long.MAX_VALUE : limit; // none before a server has said it
    }

    /** A message that the client refuses by itself, as each time that it is tried. */
    static UnpublishableException unpublishable(NatsAccess access, IllegalArgumentException e) {
        return unpublishable(access, "the server's max_payload", e);
    }

    /** A message that is longer than the stream takes, which others have made so. */
    static UnpublishableException unpublishable(
            NatsAccess access, EventSubjects names, Exception e) {
        return unpublishable(access, "the max_msg_size of stream " + names.stream(), e);
    }

    private static UnpublishableException unpublishable(
            NatsAccess access, String limit, Exception e) {
        return new UnpublishableException(
                access.address() + ": " + e.getMessage() + "; " + limit + " must be higher for it",
                e);
    }
}
