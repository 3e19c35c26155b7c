package io.kvasir.nixl.exchange.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.Records;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** An etcd that loses a lease and then refuses a write, which no real one does when asked to. */
class LostLeaseTest {
    private static final int OK = 200;
    private static final int UNAVAILABLE = 503;
    private static final String PREFIX = "/k/";

    private final ObjectMapper json = new ObjectMapper();
    private final BlockingQueue<String> puts = new LinkedBlockingQueue<>(); // "name lease"
    private final AtomicInteger leases = new AtomicInteger();
    private final AtomicBoolean leaseLost = new AtomicBoolean();
    private final AtomicBoolean writeFails = new AtomicBoolean();
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private HttpServer server;

    @BeforeEach
    void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
    }

    @AfterEach
    void stop() {
        server.stop(0);
        threads.shutdownNow();
    }

    private void answer(HttpExchange exchange) throws IOException {
        final JsonNode body = json.readTree(exchange.getRequestBody().readAllBytes());
        final boolean refused =
                exchange.getRequestURI().getPath().endsWith("/txn") && writeFails.getAndSet(false);
        final byte[] said =
                (refused ? "{}" : said(exchange.getRequestURI().getPath(), body))
                        .getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(refused ? UNAVAILABLE : OK, said.length);
        exchange.getResponseBody().write(said);
        exchange.close();
    }

    private String said(String path, JsonNode body) {
        return switch (path) {
            case "/v3/lease/grant" -> "{\"ID\":\"" + leases.incrementAndGet() + "\"}";
            case "/v3/lease/keepalive" ->
                    leaseLost.getAndSet(false) ? "{\"result\":{}}" : "{\"result\":{\"TTL\":\"5\"}}";
            case "/v3/kv/txn" -> {
                final JsonNode put = body.at("/success/0/request_put");
                final byte[] key = Base64.getDecoder().decode(put.path("key").asText());
                final String name =
                        new String(key, StandardCharsets.UTF_8).substring(PREFIX.length());
                puts.add(name + " " + put.path("lease").asText());
                yield "{\"succeeded\":true,\"header\":{\"revision\":\"5\"}}";
            }
            default -> "{}"; // no key is there, and a watch ends at once
        };
    }

    private EtcdExchange open(Duration ttl) {
        final URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        return new EtcdExchange(new EtcdConfig(List.of(uri), PREFIX, ttl, Duration.ofSeconds(10)));
    }

    private String nextPut() throws InterruptedException {
        return puts.poll(30, TimeUnit.SECONDS);
    }

    @Test
    void aRenewalThatCouldNotStoreIsTriedAgain() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofSeconds(1))) {
            exchange.publish(Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            writeFails.set(true);
            leaseLost.set(true);
            assertEquals("a 3", nextPut());
        }
    }

    @Test
    void aPublicationAfterOneThatFailedStoresAllRecords() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) { // renews in twenty minutes
            exchange.publish(Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            writeFails.set(true);
            leaseLost.set(true);
            final ExchangeException refusal =
                    assertThrows(
                            ExchangeException.class,
                            () -> exchange.publish(Records.record("b", 1, 1)));
            assertEquals(Kind.UNAVAILABLE, refusal.kind());
            exchange.publish(Records.record("b", 1, 1));
            assertEquals("a 3", nextPut());
            assertEquals("b 3", nextPut());
        }
    }
}
