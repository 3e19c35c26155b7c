package io.kvasir.nixl.exchange.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** An etcd that loses a lease or refuses a call, which no real one does when asked to. */
class LostLeaseTest {
    private static final int OK = 200;
    private static final int UNAVAILABLE = 503;
    private static final String PREFIX = "/k/";
    private static final String TXN = "/v3/kv/txn";
    private static final String RANGE = "/v3/kv/range";

    private final ObjectMapper json = new ObjectMapper();
    private final BlockingQueue<String> puts = new LinkedBlockingQueue<>(); // "name lease"
    private final AtomicInteger leases = new AtomicInteger();
    private final AtomicBoolean leaseLost = new AtomicBoolean();
    private final AtomicReference<String> refused = new AtomicReference<>(); // path, once
    private final AtomicBoolean isAnswerLost = new AtomicBoolean(); // what is refused is done
    private final AtomicReference<String> watched = new AtomicReference<>("{}"); // answer, once
    private final Map<String, JsonNode> stored = new ConcurrentHashMap<>(); // by key, base64
    private final BlockingQueue<String> deletions = new LinkedBlockingQueue<>();
    private final CountDownLatch renewed = new CountDownLatch(1);
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
        final String path = exchange.getRequestURI().getPath();
        if (isRenewal(path, body)) {
            renewed.countDown();
        }
        final boolean isRefused =
                !body.has("range_end") // the watching thread's
                        && path.equals(
                                refused.getAndUpdate(each -> path.equals(each) ? null : each));
        final boolean isDone = !isRefused || isAnswerLost.get();
        final byte[] said = (isDone ? said(path, body) : "{}").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(isRefused ? UNAVAILABLE : OK, said.length);
        exchange.getResponseBody().write(said);
        exchange.close();
    }

    /** What the renewing thread asks while nothing is published. */
    private static boolean isRenewal(String path, JsonNode body) {
        return path.equals(RANGE) && !body.has("range_end") && name(body).isEmpty();
    }

    private String said(String path, JsonNode body) {
        return switch (path) {
            case "/v3/lease/grant" -> "{\"ID\":\"" + leases.incrementAndGet() + "\"}";
            case "/v3/lease/keepalive" ->
                    leaseLost.getAndSet(false) ? "{\"result\":{}}" : "{\"result\":{\"TTL\":\"5\"}}";
            case RANGE -> {
                final ObjectNode answer = json.createObjectNode();
                answer.putObject("header").put("revision", "5");
                final JsonNode kv = stored.get(body.path("key").asText());
                if (kv != null) {
                    answer.putArray("kvs").add(kv);
                }
                yield answer.toString();
            }
            case TXN -> {
                final JsonNode put = body.at("/success/0/request_put");
                final JsonNode deletion = body.at("/success/0/request_delete_range");
                if (put.isObject()) {
                    stored.put(put.get("key").asText(), put);
                    puts.add(name(put) + " " + put.path("lease").asText());
                } else {
                    stored.remove(deletion.path("key").asText());
                    deletions.add(name(deletion));
                }
                yield "{\"succeeded\":true,\"header\":{\"revision\":\"5\"}}";
            }
            case "/v3/watch" -> watched.getAndSet("{}"); // it ends at once
            default -> "{}";
        };
    }

    private static String name(JsonNode request) {
        final byte[] key = Base64.getDecoder().decode(request.path("key").asText());
        return new String(key, StandardCharsets.UTF_8).substring(PREFIX.length());
    }

    /** After its first renewal, which would take what is refused once. */
    private EtcdExchange open(Duration ttl) throws InterruptedException {
        final URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
        final EtcdExchange exchange =
                new EtcdExchange(new EtcdConfig(List.of(uri), PREFIX, ttl, Duration.ofSeconds(10)));
        assertTrue(renewed.await(30, TimeUnit.SECONDS));
        return exchange;
    }

    private String nextPut() throws InterruptedException {
        return puts.poll(30, TimeUnit.SECONDS);
    }

    @Test
    void aRenewalThatCouldNotStoreIsTriedAgain() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofSeconds(1))) {
            exchange.publish(Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            refused.set(TXN);
            leaseLost.set(true);
            assertEquals("a 2", nextPut());
        }
    }

    @Test
    void aPublicationAfterOneThatFailedStoresAllRecords() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) { // renews in twenty minutes again
            exchange.publish(Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            refused.set(TXN);
            leaseLost.set(true);
            final ExchangeException refusal =
                    assertThrows(
                            ExchangeException.class,
                            () -> exchange.publish(Records.record("b", 1, 1)));
            assertEquals(Kind.UNAVAILABLE, refusal.kind());
            exchange.publish(Records.record("b", 1, 1));
            assertEquals("a 2", nextPut());
            assertEquals("b 2", nextPut());
        }
    }

    private String nextDeletion() throws InterruptedException {
        return deletions.poll(30, TimeUnit.SECONDS);
    }

    private void failWithdrawal(EtcdExchange exchange, String path) {
        refused.set(path);
        final ExchangeException refusal =
                assertThrows(ExchangeException.class, () -> exchange.withdraw("a"));
        assertEquals(Kind.UNAVAILABLE, refusal.kind());
        assertNull(deletions.peek());
    }

    @ParameterizedTest
    @ValueSource(strings = {RANGE, TXN})
    void aWithdrawalThatFailedIsMadeUpForByARenewal(String path) throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofSeconds(1))) {
            exchange.publish(Records.record("a", 1, 1));
            failWithdrawal(exchange, path);
            assertEquals("a", nextDeletion());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {RANGE, TXN})
    void aWithdrawalThatFailedCanBeRepeated(String path) throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) { // renews in twenty minutes
            exchange.publish(Records.record("a", 1, 1));
            failWithdrawal(exchange, path);
            exchange.withdraw("b"); // unknown: nothing to do with the other
            assertNull(deletions.peek());
            exchange.withdraw("a");
            assertEquals("a", nextDeletion());
            exchange.withdraw("a");
            assertNull(deletions.peek());
        }
    }

    @Test
    void aPublicationMakesUpForWithdrawalsThatFailed() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) { // renews in twenty minutes
            exchange.publish(Records.record("a", 1, 1));
            failWithdrawal(exchange, TXN);
            exchange.publish(Records.record("b", 1, 1));
            assertEquals("a", nextDeletion());
            exchange.publish(Records.record("a", 1, 1));
            failWithdrawal(exchange, TXN);
            exchange.publish(Records.record("a", 1, 1));
            exchange.publish(Records.record("c", 1, 1));
            assertEquals("a 1", nextPut());
            assertEquals("b 1", nextPut());
            assertEquals("a 1", nextPut());
            assertEquals("c 1", nextPut());
            assertNull(deletions.peek(), "a is published again");
        }
    }

    private void losePublication(EtcdExchange exchange, PeerRecord record) {
        isAnswerLost.set(true);
        refused.set(TXN);
        assertThrows(ExchangeException.class, () -> exchange.publish(record));
    }

    @Test
    void aPublicationWhoseAnswerWasLostCanBeWithdrawn() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) { // renews in twenty minutes
            losePublication(exchange, Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            exchange.withdraw("a");
            assertEquals("a", nextDeletion());
            exchange.withdraw("a");
            assertNull(deletions.peek());
        }
    }

    @Test
    void aPublicationWhoseAnswerWasLostCanBeRepeated() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofHours(1))) {
            losePublication(exchange, Records.record("a", 1, 1));
            exchange.publish(Records.record("a", 1, 1));
            exchange.publish(Records.record("b", 1, 1));
            assertEquals("a 1", nextPut());
            assertEquals("b 1", nextPut());
            assertNull(deletions.peek(), "it is published");
            exchange.withdraw("a");
            assertEquals("a", nextDeletion());
        }
    }

    @Test
    void aPublicationWhoseAnswerWasLostIsUndoneByARenewal() throws InterruptedException {
        try (EtcdExchange exchange = open(Duration.ofSeconds(1))) {
            exchange.publish(Records.record("a", 1, 1));
            assertEquals("a 1", nextPut());
            losePublication(exchange, Records.record("a", 1, 2));
            assertEquals("a 1", nextPut());
            assertEquals("a", nextDeletion());
            assertEquals("a 1", nextPut(), "the former one is there again");
        }
    }

    @Test
    void anEventThatCannotBeUsedDoesNotEndTheWatch() throws InterruptedException {
        final ObjectNode entry = json.createObjectNode().put("key", base64(PREFIX + "a"));
        entry.put("value", Base64.getEncoder().encodeToString(Records.record("a", 1, 1).encode()));
        try (EtcdExchange exchange = open(Duration.ofHours(1))) {
            watched.set(
                    "{\"result\":{\"events\":[{\"kv\":{\"key\":\"eA==\"},\"type\":\"DELETE\"}]}}");
            Eventually.holds("watched", () -> watched.get().equals("{}"));
            stored.put(base64(PREFIX), entry); // all are read anew
            assertEquals(Records.record("a", 1, 1), exchange.find("a", Duration.ofSeconds(30)));
        }
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
