package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.RegistryException;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Calls to a store that another thread closes: no lease is granted that none would revoke. */
class EtcdClosingTest {
    private final AtomicInteger leases = new AtomicInteger();
    private final AtomicInteger revoked = new AtomicInteger();
    private EtcdStore store;

    private void answer(HttpExchange exchange) throws IOException {
        exchange.getRequestBody().readAllBytes();
        final String path = exchange.getRequestURI().getPath();
        if (path.equals("/v3/lease/revoke")) {
            revoked.incrementAndGet();
            callLate(() -> store.put("ns/late", new byte[] {1}, LeasedStore.ABSENT));
            callLate(store::keepAlive);
        }
        final boolean isPut = path.equals("/v3/kv/txn");
        final byte[] said = said(path).getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(isPut && revoked.get() > 0 ? 404 : 200, said.length);
        exchange.getResponseBody().write(said);
        exchange.close();
    }

    private static void callLate(Runnable call) {
        try {
            call.run();
        } catch (RegistryException e) {
            assertEquals(RegistryException.Kind.UNAVAILABLE, e.kind());
        }
    }

    private String said(String path) {
        return switch (path) {
            case "/v3/lease/grant" -> "{\"ID\":\"" + leases.incrementAndGet() + "\"}";
            case "/v3/kv/txn" -> "{\"succeeded\":true,\"header\":{\"revision\":\"5\"}}";
            default -> "{}"; // a lease that is asked for has ended
        };
    }

    @Test
    void aCallThatComesWhileItIsClosedGrantsNoLease() throws IOException {
        final HttpServer server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            server.setExecutor(threads);
            server.createContext("/", this::answer);
            server.start();
            store =
                    new EtcdStore(
                            EtcdOptions.of(
                                    List.of(
                                            URI.create(
                                                    "http://127.0.0.1:"
                                                            + server.getAddress().getPort())),
                                    Duration.ofHours(1),
                                    Duration.ofSeconds(60)),
                            "/p/");
            store.put("ns/a", new byte[] {1}, LeasedStore.ABSENT);
            store.close();
            assertEquals(1, leases.get());
            assertEquals(1, revoked.get());
        } finally {
            server.stop(0);
        }
    }
}
