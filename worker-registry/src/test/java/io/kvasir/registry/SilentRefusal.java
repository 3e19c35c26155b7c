package io.kvasir.registry;

import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.List;

/** A store that refuses with a status and never says why. */
public final class SilentRefusal implements AutoCloseable {
    private final HttpServer server;

    /** Starts it. */
    public SilentRefusal() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext(
                "/",
                exchange -> {
                    exchange.sendResponseHeaders(503, 5);
                    exchange.getResponseBody().flush();
                });
        server.start();
    }

    /** Where it is. */
    public URI url() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    /**
     * Limits of time to try one after another: the first is enough unless the machine is so busy
     * that not even the status comes within it.
     */
    public static List<Duration> limits() {
        return List.of(Duration.ofMillis(300), Duration.ofSeconds(3), Duration.ofSeconds(30));
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
