package io.kvasir.pipeline.zmtp;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.event.EventRecordingLogger;
import org.slf4j.event.SubstituteLoggingEvent;
import org.slf4j.helpers.SubstituteLogger;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;

class ZmtpListenerTest {
    private static final int REFUSED = 300;
    private static final int MAX_MESSAGE_BYTES = 1_000;
    private static final long HANDSHAKE_NS = Long.MAX_VALUE / 4;

    private final SocketPoller poller = new SocketPoller("ZmtpListenerTest");
    private final Queue<SubstituteLoggingEvent> events = new ConcurrentLinkedQueue<>();

    @AfterEach
    void close() {
        poller.close();
    }

    /** Neither sends nor reads anything. */
    private static final class IdlePeer implements ZmtpConnection.Listener {
        @Override
        public void opened(ZmtpConnection connection) {
            // nothing to send
        }

        @Override
        public boolean received(ZmtpConnection connection, ZmtpMessage message) {
            return true;
        }

        @Override
        public void closed(ZmtpConnection connection, String why) {
            // nothing to clean up
        }
    }

    private int bound(int maxConnections) {
        final ZmtpListener listener =
                new ZmtpListener(
                        poller,
                        Endpoint.parse("tcp://127.0.0.1:0"),
                        new ZmtpOptions(
                                SocketType.SUB,
                                MAX_MESSAGE_BYTES,
                                HANDSHAKE_NS,
                                new ByteBudget(MAX_MESSAGE_BYTES)),
                        IdlePeer::new,
                        maxConnections,
                        new EventRecordingLogger(
                                new SubstituteLogger("test", events, false), events));
        final String address =
                CompletableFuture.supplyAsync(
                                () -> {
                                    try {
                                        return listener.bind(
                                                new InetSocketAddress(
                                                        InetAddress.getLoopbackAddress(), 0));
                                    } catch (IOException e) {
                                        throw new UncheckedIOException(e);
                                    }
                                },
                                poller::execute)
                        .join();
        return Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
    }

    @Test
    void connectionsBeyondTheLimitAreRefusedWithFewLinesInTheLog() throws Exception {
        final int port = bound(1);
        try (Socket first = new Socket(InetAddress.getLoopbackAddress(), port)) {
            assertTrue(first.getInputStream().read() >= 0, "greeted: it is the one");
            for (int i = 0; i < REFUSED; i++) {
                try (Socket further = new Socket(InetAddress.getLoopbackAddress(), port)) {
                    assertEquals(-1, further.getInputStream().read());
                }
            }
        }
        assertTrue(!events.isEmpty() && events.size() < REFUSED, events.size() + " lines");
    }
}
