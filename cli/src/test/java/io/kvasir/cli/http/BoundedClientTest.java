package io.kvasir.cli.http;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.StubServer;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;

class BoundedClientTest {
    private static final Duration LIMIT = Duration.ofMinutes(1);

    @Test
    void anAnswerThatIsTooLongIsRefusedWithTheLimit() throws Exception {
        try (StubServer stub = new StubServer();
                BoundedClient client = new BoundedClient(URI.create(stub.url()), null, LIMIT, 10)) {
            stub.page("/fits", 200, "0123456789").page("/long", 200, "0123456789x");
            assertArrayEquals(
                    "0123456789".getBytes(StandardCharsets.UTF_8), client.get("/fits").body());
            final IOException refused = assertThrows(IOException.class, () -> client.get("/long"));
            assertTrue(
                    refused.getMessage().endsWith("(an answer may have 10 bytes)"),
                    refused.getMessage());
        }
    }

    @Test
    void aServerThatRefusesIsNamedWithTheReasonInWords() throws Exception {
        try (Socket bound = new Socket()) { // so that no other process takes the port either
            bound.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            final URI unused = URI.create("http://127.0.0.1:" + bound.getLocalPort());
            try (BoundedClient client = new BoundedClient(unused, null, LIMIT, 10)) {
                final IOException refused = assertThrows(IOException.class, () -> client.get("/x"));
                assertEquals(unused + "/x: the connection was refused", refused.getMessage());
            }
        }
    }

    @Test
    void authorizationIsSentAndRedirectsAreNotFollowed() throws Exception {
        try (StubServer stub = new StubServer();
                BoundedClient client =
                        new BoundedClient(URI.create(stub.url()), "Bearer t", LIMIT, 100)) {
            stub.page("/moved", 307, "elsewhere");
            assertEquals(307, client.post("/moved", new byte[1], Map.of()).statusCode());
            assertEquals("Bearer t", stub.authorization("/moved"));
        }
    }
}
