package io.kvasir.testsupport;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Sockets of JeroMQ that connect. Of some thirty connections JeroMQ 0.6 loses one: its selector
 * drops a new connection together with the attempt that made it, and takes it up again only when
 * the context registers another channel. Here something is registered again and again. (Its own
 * timer for handshakes does not help: that is off once the peer's whole greeting has been read.)
 */
public final class ConnectingContext implements AutoCloseable {
    private static final int PERIOD_MS = 50;

    private final ZContext context = new ZContext(1);
    private final CountDownLatch closing = new CountDownLatch(1);
    private final Thread registering =
            Thread.ofPlatform().daemon().name("test-registering").start(this::registerAgain);

    /**
     * A new socket, closed with the context.
     *
     * @param type of it
     * @return the socket
     */
    public ZMQ.Socket socket(SocketType type) {
        return context.createSocket(type);
    }

    private void registerAgain() {
        try {
            while (!closing.await(PERIOD_MS, TimeUnit.MILLISECONDS)) {
                try (ZMQ.Socket socket = context.createSocket(SocketType.PULL)) {
                    socket.bind("tcp://127.0.0.1:*");
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        closing.countDown();
        try {
            registering.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        context.close();
    }
}
