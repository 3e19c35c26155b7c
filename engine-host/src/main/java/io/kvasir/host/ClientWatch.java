package io.kvasir.host;

import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.util.BufferUtil;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/**
 * Notices that the client of a request went away while its answer is still being computed.
 *
 * <p>Jetty reads nothing from a connection whose request is being handled, so the end of the stream
 * would be seen only by writing. The body must have been read; HTTP/1.1; any thread, one at a time.
 */
public final class ClientWatch {
    private static final long PERIOD_NS = TimeUnit.MILLISECONDS.toNanos(50);

    private final Connection connection;
    private final EndPoint endPoint;
    private final ByteBuffer ahead = BufferUtil.allocate(1024);
    private long lastLookNs = System.nanoTime();
    private boolean pipelining;

    /** Watches the client of a request. */
    public ClientWatch(Request request) {
        this.connection = request.getConnectionMetaData().getConnection();
        this.endPoint = connection.getEndPoint();
    }

    /** How long a wait may last before the client is looked at again. */
    public static long periodNs() {
        return PERIOD_NS;
    }

    /** Checks, but not more often than once in a period. */
    public synchronized boolean disconnected() {
        if (!endPoint.isOpen()) {
            return true;
        }
        final long now = System.nanoTime();
        if (pipelining || now - lastLookNs < PERIOD_NS) {
            return false;
        }
        lastLookNs = now;
        try {
            final int read = endPoint.fill(ahead);
            if (read > 0 && connection instanceof Connection.UpgradeTo reader) {
                // the client sent its next request already: give it back and look no more
                reader.onUpgradeTo(ahead);
                pipelining = true;
            }
            return read < 0;
        } catch (IOException e) {
            return true;
        }
    }

    /** Closes the connection, as a process that died would. */
    public void cut() {
        endPoint.close();
    }
}
