package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;

import io.kvasir.registry.etcd.EtcdClient;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.registry.kubernetes.KubernetesClient;
import io.kvasir.registry.kubernetes.KubernetesException;
import io.kvasir.registry.kubernetes.KubernetesResources;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** A store that refuses with a status and never says why. */
class StreamLimitTest {
    private HttpServer store;
    private URI url;

    @BeforeEach
    void start() throws IOException {
        store = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        store.createContext(
                "/",
                exchange -> {
                    exchange.sendResponseHeaders(503, 5);
                    exchange.getResponseBody().flush();
                });
        store.start();
        url = URI.create("http://127.0.0.1:" + store.getAddress().getPort());
    }

    @AfterEach
    void stop() {
        store.stop(0);
    }

    @Test
    void theReasonOfEtcdIsNotWaitedFor() {
        try (EtcdClient client =
                new EtcdClient(
                        EtcdOptions.of(
                                List.of(url), Duration.ofSeconds(10), Duration.ofSeconds(5)))) {
            final RegistryException refused =
                    assertThrows(RegistryException.class, () -> client.keepAlive(7));
            assertEquals(RegistryException.Kind.UNAVAILABLE, refused.kind());
            assertTrue(refused.getMessage().contains("status 503"), refused.getMessage());
        }
    }

    @Test
    void theReasonOfKubernetesIsNotWaitedFor() {
        try (KubernetesClient client =
                new KubernetesClient(new KubernetesAccess(url, Path.of("no/account"), "serving"))) {
            final KubernetesException broken =
                    assertThrows(
                            KubernetesException.class,
                            () ->
                                    client.watch(
                                            KubernetesResources.endpointSlices("a=b"),
                                            "1",
                                            _ -> {}));
            assertTrue(broken.getMessage().startsWith("the watch of "), broken.getMessage());
        }
    }
}
