package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.util.List;

import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;

class NameCheckedTlsTest {
    @TempDir static Path folder;

    private static TestKeys keys;
    private static volatile String refusal = "";
    private static SSLServerSocket server; // whose certificate is for localhost

    @BeforeAll
    static void start() throws Exception {
        keys = TestKeys.make(folder, "server", "dns:localhost");
        final SSLContext own = KeyStores.tlsOrNull(null, keys.keyStore(), TestKeys.PASSWORD);
        server =
                (SSLServerSocket)
                        own.getServerSocketFactory()
                                .createServerSocket(0, 9, InetAddress.getLoopbackAddress());
        Thread.ofPlatform().daemon().start(NameCheckedTlsTest::answer);
    }

    private static void answer() {
        while (!server.isClosed()) {
            try (Socket client = server.accept()) {
                client.getInputStream().readAllBytes();
            } catch (IOException e) {
                refusal = e.getMessage(); // by its client; or it is closed
            }
        }
    }

    @AfterAll
    static void stop() throws IOException {
        server.close();
        assertFalse(refusal.isEmpty(), "no client has refused the server");
    }

    /** As NATS's client does: the connection is there, and TLS begins on it. */
    private static void connect(String host, String... configured) throws IOException {
        final SSLContext trusting =
                NameCheckedTls.of(
                        KeyStores.tlsOrNull(keys.trustStore(), null, TestKeys.PASSWORD),
                        List.of(configured));
        try (Socket under = new Socket(server.getInetAddress(), server.getLocalPort());
                SSLSocket tls =
                        (SSLSocket)
                                trusting.getSocketFactory()
                                        .createSocket(under, host, server.getLocalPort(), true)) {
            tls.startHandshake();
        }
    }

    @Test
    void theHostThatIsAskedForIsTheCertificates() throws IOException {
        connect("localhost", "localhost", "other.example");
        connect("localhost");
        for (String other : List.of("other.example", "127.0.0.1")) {
            final SSLException refused =
                    assertThrows(SSLException.class, () -> connect(other, other, "localhost"));
            assertTrue(refused.getMessage().contains(other), refused.getMessage());
        }
    }

    @Test
    void anAddressThatAClusterAnnouncesIsTheFirstHosts() throws IOException {
        connect("127.0.0.1", "localhost", "other.example");
        connect("::1", "localhost");
        assertThrows(SSLException.class, () -> connect("127.0.0.1", "other.example", "localhost"));
        assertThrows(SSLException.class, () -> connect("other.example", "localhost"));
    }

    private static boolean isTls(String servers) {
        return NatsAccess.of(servers).options("x").build().getSslContext() != null;
    }

    @Test
    void theJvmsOwnAuthoritiesAreAskedForTheHostToo() {
        assertEquals(
                List.of(true, true, true, false, false),
                List.of(
                        isTls("tls://h:1"),
                        isTls("nats://h:1,tls://u:p@[::1]:2"),
                        isTls("wss://h"),
                        isTls("nats://h:1"),
                        isTls("h:1")));
        assertEquals(
                "NameCheckedTls",
                NatsAccess.of("tls://h:1")
                        .options("x")
                        .build()
                        .getSslContext()
                        .getClass()
                        .getEnclosingClass()
                        .getSimpleName());
        assertEquals(
                List.of("h", "::1", "i", "j"),
                NatsAccess.of("nats://h:1,tls://u:p@[::1]:2,wss://i,j").hosts());
    }
}
