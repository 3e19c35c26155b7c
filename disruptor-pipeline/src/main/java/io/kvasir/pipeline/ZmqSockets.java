package io.kvasir.pipeline;

import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.util.concurrent.atomic.AtomicLong;

/** The ZMQ context that all sources of a pipeline share: one I/O thread. Any thread. */
final class ZmqSockets implements AutoCloseable {
    private static final AtomicLong MONITORS = new AtomicLong();

    /**
     * JeroMQ 0.6.0 loses 2–7 % of new TCP connections: they connect but never shake hands (a
     * cancelled key is taken for a new one in its poller). Only the handshake timer gets such a
     * connection out of it, and its default is 30 s.
     */
    private static final int HANDSHAKE_MS = 1_000;

    private final ZMQ.Context context = ZMQ.context(1);

    ZMQ.Socket create(SocketType type) {
        final ZMQ.Socket socket = context.socket(type);
        socket.setLinger(0);
        socket.setHandshakeIvl(HANDSHAKE_MS);
        return socket;
    }

    ZMQ.Poller poller(int sockets) {
        return context.poller(sockets);
    }

    /** Opens a socket that receives connection events of another. */
    ZMQ.Socket monitor(ZMQ.Socket watched, int events) {
        final String address = "inproc://kvasir-monitor-" + MONITORS.getAndIncrement();
        if (!watched.monitor(address, events)) {
            throw new IllegalStateException("socket cannot be monitored: " + watched);
        }
        final ZMQ.Socket monitor = create(SocketType.PAIR);
        monitor.connect(address);
        return monitor;
    }

    /** Waits until every socket is closed. */
    @Override
    public void close() {
        context.term();
    }
}
