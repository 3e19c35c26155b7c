package io.kvasir.cli;

import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Answers paths with fixed texts, others with 404; for what no real gateway says. */
public final class StubServer implements AutoCloseable {
    private record Page(int status, String body) {}

    private final Map<String, Page> pages = new ConcurrentHashMap<>();
    private final Map<String, String> authorizations = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final HttpServer server;

    public StubServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext(
                "/",
                exchange -> {
                    final String path = exchange.getRequestURI().getPath();
                    final String given = exchange.getRequestHeaders().getFirst("authorization");
                    authorizations.put(path, String.valueOf(given));
                    final Page page = pages.getOrDefault(path, new Page(404, "no such page"));
                    final byte[] body = page.body.getBytes(StandardCharsets.UTF_8);
                    exchange.sendResponseHeaders(page.status, body.length == 0 ? -1 : body.length);
                    try (OutputStream out = exchange.getResponseBody()) {
                        out.write(body);
                    }
                });
        server.start();
    }

    /** Answers a path so from now on. */
    public StubServer page(String path, int status, String body) {
        pages.put(path, new Page(status, body));
        return this;
    }

    /** What the last request for a path had as Authorization. */
    public String authorization(String path) {
        return authorizations.get(path);
    }

    public String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
