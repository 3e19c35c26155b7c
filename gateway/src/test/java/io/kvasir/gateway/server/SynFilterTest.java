package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

@EnabledOnOs(OS.LINUX)
class SynFilterTest {
    private static final int NEVER_ANSWERED_MS = 300;

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1", "0.0.0.0", "::1", "::"})
    void attemptsToConnectAreIgnoredAndWhatIsConnectedIsAccepted(String host) throws Exception {
        try (ServerSocketChannel other = open(host)) {
            final InetSocketAddress at;
            try (ServerSocketChannel port = open(host)) {
                at = reachable(port);
                try (Socket before = new Socket(at.getAddress(), at.getPort())) {
                    before.getOutputStream().write(7);
                    assertTrue(SynFilter.attach(port));
                    assertThrows(
                            SocketTimeoutException.class, () -> connect(at, NEVER_ANSWERED_MS));
                    assertEquals(7, firstByte(port));
                }
            }
            connect(reachable(other), 0);
            assertThrows(ConnectException.class, () -> connect(at, 0));
        }
    }

    private static void connect(InetSocketAddress at, int timeoutMs) throws IOException {
        try (Socket client = new Socket()) {
            client.connect(at, timeoutMs);
        }
    }

    private static byte firstByte(ServerSocketChannel port) throws IOException {
        try (SocketChannel accepted = port.accept()) {
            final ByteBuffer read = ByteBuffer.allocate(1);
            accepted.read(read);
            return read.get(0);
        }
    }

    private static ServerSocketChannel open(String host) throws IOException {
        return ServerSocketChannel.open().bind(new InetSocketAddress(host, 0));
    }

    private static InetSocketAddress reachable(ServerSocketChannel port) throws IOException {
        final InetSocketAddress bound = (InetSocketAddress) port.getLocalAddress();
        return bound.getAddress().isAnyLocalAddress()
                ? new InetSocketAddress(InetAddress.getLoopbackAddress(), bound.getPort())
                : bound;
    }
}
