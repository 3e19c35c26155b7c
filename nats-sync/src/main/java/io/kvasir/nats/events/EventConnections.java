package io.kvasir.nats.events;

import io.kvasir.nats.NatsAccess;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.ErrorListener;

import java.io.IOException;
import java.time.Duration;

/** Connections of the event plane: a server that hangs is noticed after three pings. */
final class EventConnections {
    private static final Duration PING = Duration.ofSeconds(5);

    private EventConnections() {}

    /**
     * Connects once; later the connection is made again by itself, for ever.
     *
     * @throws IOException if it cannot be made now, naming the servers
     */
    static Connection connect(
            NatsAccess access, String name, ConnectionListener listener, ErrorListener errors)
            throws IOException, InterruptedException {
        try {
            return NatsAccess.connect(
                    access.options(name)
                            .pingInterval(PING)
                            .connectionListener(listener)
                            .errorListener(errors));
        } catch (IOException e) {
            throw new IOException(access.address() + ": " + e.getMessage(), e);
        }
    }
}
