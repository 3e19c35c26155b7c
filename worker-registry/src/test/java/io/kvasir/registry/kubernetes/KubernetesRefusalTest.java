package io.kvasir.registry.kubernetes;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;

import io.kvasir.registry.SilentRefusal;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;

class KubernetesRefusalTest {
    private static String unanswered(URI server, Duration timeout) {
        try (KubernetesClient client =
                new KubernetesClient(
                        new KubernetesAccess(server, Path.of("no/account"), "serving"),
                        timeout,
                        Duration.ofSeconds(60))) {
            return assertThrows(
                            KubernetesException.class,
                            () -> client.list(KubernetesResources.endpointSlices("a=b"), _ -> {}))
                    .getMessage();
        }
    }

    @Test
    void whyItDoesNotAnswerIsSaidInWords() throws IOException {
        final URI closed = URI.create("http://127.0.0.1:1");
        assertEquals(
                closed + " does not answer: the connection was refused",
                unanswered(closed, Duration.ofSeconds(60)));
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final URI server = URI.create("http://127.0.0.1:" + silent.getLocalPort());
            assertEquals(
                    server + " does not answer: no answer in 50 ms",
                    unanswered(server, Duration.ofMillis(50)));
        }
    }

    @Test
    void whatIsNoJsonIsSaidInWords() throws IOException {
        final HttpServer proxy =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        proxy.createContext(
                "/",
                exchange -> {
                    exchange.sendResponseHeaders(200, 6);
                    exchange.getResponseBody().write("<html>".getBytes(StandardCharsets.US_ASCII));
                    exchange.close();
                });
        proxy.start();
        try {
            final URI server = URI.create("http://127.0.0.1:" + proxy.getAddress().getPort());
            final String said = unanswered(server, Duration.ofSeconds(60));
            assertTrue(said.startsWith(server + " answers no JSON: "), said);
            assertFalse(said.contains("Exception") || said.contains("\n"), said);
        } finally {
            proxy.stop(0);
        }
    }

    @Test
    void theReasonOfARefusalIsNotWaitedFor() throws IOException {
        try (SilentRefusal store = new SilentRefusal()) {
            String said = "";
            for (Duration limit : SilentRefusal.limits()) {
                said = watch(store, limit);
                if (said.startsWith("the watch of ")) {
                    break;
                }
            }
            assertTrue(said.startsWith("the watch of "), said);
            assertFalse(said.contains("Exception"), said);
        }
    }

    private static String watch(SilentRefusal store, Duration limit) {
        try (KubernetesClient client =
                new KubernetesClient(
                        new KubernetesAccess(store.url(), Path.of("no/account"), "serving"),
                        limit,
                        Duration.ofSeconds(60))) {
            return assertThrows(
                            KubernetesException.class,
                            () ->
                                    client.watch(
                                            KubernetesResources.endpointSlices("a=b"),
                                            "1",
                                            _ -> {}))
                    .getMessage();
        }
    }
}
