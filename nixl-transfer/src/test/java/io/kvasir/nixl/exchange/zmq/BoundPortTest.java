package io.kvasir.nixl.exchange.zmq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.zeromq.SocketType;
import org.zeromq.ZContext;

import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;

/** A socket that cannot be bound says which address it is and why. */
class BoundPortTest {
    private static String failure(String host, int port) {
        try (ZContext context = new ZContext(1)) {
            return assertThrows(
                            BindException.class,
                            () ->
                                    BoundPort.bind(
                                            context.createSocket(SocketType.ROUTER), host, port))
                    .getMessage();
        }
    }

    @Test
    void theReasonIsTheSystems() throws Exception {
        try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final int port = other.getLocalPort();
            assertEquals(
                    "cannot bind tcp://127.0.0.1:" + port + ": Address already in use",
                    failure("127.0.0.1", port));
        }
        final String elsewhere = failure("192.0.2.1", 0);
        assertTrue(elsewhere.startsWith("cannot bind tcp://192.0.2.1:*: Cannot assign"), elsewhere);
    }

    @Test
    void aFreePortIsSaid() throws Exception {
        try (ZContext context = new ZContext(1)) {
            assertTrue(BoundPort.bind(context.createSocket(SocketType.ROUTER), "127.0.0.1", 0) > 0);
        }
    }
}
