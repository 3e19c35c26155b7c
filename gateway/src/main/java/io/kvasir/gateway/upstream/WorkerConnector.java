package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.Connection;
import org.eclipse.jetty.client.transport.internal.HttpConnectionOverHTTP;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.ManagedSelector;
import org.eclipse.jetty.io.SocketChannelEndPoint;
import org.eclipse.jetty.util.thread.Scheduler;

import java.io.IOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;

/**
 * Opens connections to workers, and knows of which of them the worker's end was a reset: the client
 * of Jetty takes it for an orderly one.
 */
public final class WorkerConnector extends ClientConnector {
    @Override
    protected EndPoint newEndPoint(
            SelectableChannel channel, ManagedSelector selector, SelectionKey key) {
        return new End((SocketChannel) channel, selector, key, getScheduler());
    }

    /** Whether a connection of HTTP/1.1 has ended by a reset. */
    static boolean wasReset(Connection connection) {
        if (!(connection instanceof HttpConnectionOverHTTP http1)) {
            return false;
        }
        EndPoint end = http1.getEndPoint();
        while (end instanceof EndPoint.Wrapper around) { // of TLS
            end = around.unwrap();
        }
        return end instanceof End known && known.reset;
    }

    private static final class End extends SocketChannelEndPoint {
        private boolean ended; // of the one thread that reads
        private volatile boolean reset;

        End(
                SocketChannel channel,
                ManagedSelector selector,
                SelectionKey key,
                Scheduler scheduler) {
            super(channel, selector, key, scheduler);
        }

        @Override
        public int fill(ByteBuffer buffer) throws IOException {
            final int count = super.fill(buffer);
            if (count < 0 && !ended) {
                ended = true;
                reset = isReset();
            }
            return count;
        }

        /** Reading from a channel that was reset fails again and again. */
        private boolean isReset() {
            try {
                return getChannel().read(ByteBuffer.allocate(1)) > 0; // never: it has ended
            } catch (IOException e) {
                return e instanceof SocketException; // else the gateway has closed it
            }
        }
    }
}
