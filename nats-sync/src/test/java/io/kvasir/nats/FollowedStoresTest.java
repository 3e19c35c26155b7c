package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;

/** Key stores that change while a command runs. */
class FollowedStoresTest {
    @TempDir Path dir;

    private static void copy(Path from, Path to) throws IOException {
        Files.copy(from, to, StandardCopyOption.REPLACE_EXISTING);
    }

    /** Opens a connection, and sends a byte back and forth; both sides have checked then. */
    private static void shakeHands(SSLContext client, int port) throws IOException {
        try (SSLSocket socket =
                (SSLSocket)
                        client.getSocketFactory()
                                .createSocket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write(7);
            assertEquals(7, socket.getInputStream().read());
        }
    }

    private static void echo(SSLServerSocket server) {
        while (!server.isClosed()) {
            try (SSLSocket socket = (SSLSocket) server.accept()) {
                socket.getOutputStream().write(socket.getInputStream().read());
            } catch (IOException e) {
                // refused, by either side: which the client says
            }
        }
    }

    @Test
    void eachConnectionGoesByWhatBothHaveThen() throws Exception {
        final TestKeys server = TestKeys.make(dir, "server");
        final TestKeys former = TestKeys.make(dir, "former");
        final TestKeys next = TestKeys.make(dir, "next");
        final Path trusted = dir.resolve("trusted");
        final Path own = dir.resolve("own");
        copy(former.trustStore(), trusted);
        copy(former.keyStore(), own);
        final List<String> problems = new ArrayList<>();
        final SSLContext client =
                KeyStores.followedOrNull(trusted, own, TestKeys.PASSWORD, problems::add);
        try (SSLServerSocket listening =
                (SSLServerSocket)
                        KeyStores.tlsOrNull(next.trustStore(), server.keyStore(), TestKeys.PASSWORD)
                                .getServerSocketFactory()
                                .createServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
            listening.setNeedClientAuth(true);
            Thread.ofPlatform().daemon().start(() -> echo(listening));
            final int port = listening.getLocalPort();
            assertThrows(SSLException.class, () -> shakeHands(client, port), "another authority");
            copy(server.trustStore(), trusted);
            assertThrows(IOException.class, () -> shakeHands(client, port), "another certificate");
            copy(next.keyStore(), own);
            shakeHands(client, port);
            Files.writeString(own, "cut");
            shakeHands(client, port);
            assertEquals(1, problems.size(), problems.toString());
        }
    }

    @Test
    void withoutFilesItIsThatOfTheJvm() {
        assertNull(KeyStores.followedOrNull(null, null, "", problem -> {}));
    }
}
