package io.kvasir.gateway.discovery;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The endpoints of Kubernetes' EndpointSlices with certain labels, as workers of the gateway's
 * model: listed once and watched from there; listed again where the API server no longer knows the
 * version. While it does not answer, those known last stay. One thread asks and publishes.
 */
final class KubernetesDiscovery implements Discovery {
    private static final Logger LOG = LoggerFactory.getLogger(KubernetesDiscovery.class);
    private static final long FIRST_VIEW_MS = 5_000;
    private static final long RETRY_MS = 200;
    private static final long MAX_RETRY_MS = 5_000;

    private final KubernetesApi api;
    private final EndpointSlices slices;
    private final Map<String, JsonNode> known = new TreeMap<>(); // of the thread
    private final Set<String> said = new HashSet<>(); // likewise
    private final CountDownLatch first = new CountDownLatch(1);
    private final Thread thread;
    private Listener listener;
    private FoundWorkers found;
    private volatile boolean closed;

    KubernetesDiscovery(KubernetesApi api, EndpointSlices slices) {
        this.api = api;
        this.slices = slices;
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-discovery-kubernetes")
                        .unstarted(this::run);
    }

    /**
     * The source that a configuration describes.
     *
     * @throws IllegalArgumentException if server or namespace are not known
     */
    static KubernetesDiscovery of(GatewayConfig config) {
        final Path account = config.get(GatewaySettings.DISCOVERY_KUBERNETES_ACCOUNT);
        return new KubernetesDiscovery(
                new KubernetesApi(
                        server(config),
                        account,
                        namespace(config, account),
                        config.get(GatewaySettings.DISCOVERY_KUBERNETES_SELECTOR)),
                new EndpointSlices(
                        new EndpointSlices.Ports(
                                config.get(GatewaySettings.MODEL),
                                config.get(GatewaySettings.DISCOVERY_KUBERNETES_PORT),
                                config.get(GatewaySettings.DISCOVERY_KUBERNETES_EVENTS_PORT),
                                config.get(GatewaySettings.DISCOVERY_KUBERNETES_REPLAY_PORT),
                                EndpointSlices.texts(
                                        config.get(GatewaySettings.DISCOVERY_KUBERNETES_WORKER)))));
    }

    private static URI server(GatewayConfig config) {
        final URI set = config.get(GatewaySettings.DISCOVERY_KUBERNETES_SERVER);
        if (set != null) {
            return set;
        }
        final String host = System.getenv("KUBERNETES_SERVICE_HOST");
        if (host == null) {
            throw new IllegalArgumentException(
                    "no Kubernetes API server is known: this is no pod, and"
                            + " discovery-kubernetes-server is not set");
        }
        return URI.create(
                "https://"
                        + (host.contains(":") ? "[" + host + "]" : host)
                        + ":"
                        + System.getenv().getOrDefault("KUBERNETES_SERVICE_PORT", "443"));
    }

    private static String namespace(GatewayConfig config, Path account) {
        final String set = config.get(GatewaySettings.DISCOVERY_KUBERNETES_NAMESPACE);
        if (set != null) {
            return set;
        }
        try {
            return Files.readString(account.resolve("namespace")).strip();
        } catch (IOException e) {
            throw new IllegalArgumentException(
                    "no Kubernetes namespace is known: set discovery-kubernetes-namespace ("
                            + e
                            + ")",
                    e);
        }
    }

    @Override
    public String source() {
        return "kubernetes";
    }

    @Override
    public void start(Listener to) {
        listener = to;
        found = new FoundWorkers(to);
        thread.start();
        try {
            if (!first.await(FIRST_VIEW_MS, TimeUnit.MILLISECONDS)) {
                to.failed("no answer of the API server yet");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        String version = null; // null: list first
        long retryMs = RETRY_MS;
        boolean isLost = false;
        while (!closed) {
            try {
                if (version == null) {
                    version = listed();
                }
                isLost = false;
                retryMs = RETRY_MS;
                version = api.watch(version, this::changed);
                pause(RETRY_MS);
            } catch (KubernetesException e) {
                version = null;
                if (!isLost && !closed && !e.isGone()) {
                    isLost = true;
                    listener.failed(e.getMessage());
                    first.countDown();
                }
                pause(retryMs);
                retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
            }
        }
    }

    private String listed() throws KubernetesException {
        final Map<String, JsonNode> all = new TreeMap<>();
        final String version = api.list(slice -> all.put(EndpointSlices.name(slice), slice));
        known.clear();
        known.putAll(all);
        publish();
        return version;
    }

    private void changed(JsonNode event) {
        final JsonNode slice = event.path("object");
        if (event.path("type").asText().equals("DELETED")) {
            known.remove(EndpointSlices.name(slice));
        } else {
            known.put(EndpointSlices.name(slice), slice);
        }
        publish();
    }

    /** An endpoint that moves between slices may be in both: where it is ready it counts. */
    private void publish() {
        final Map<String, String> problems = new HashMap<>();
        final Map<String, Found> all = new TreeMap<>();
        for (JsonNode slice : known.values()) {
            slices.workers(slice, problems)
                    .forEach((name, w) -> all.merge(name, w, (a, b) -> a.ready() ? a : b));
        }
        said.retainAll(problems.values());
        problems.values().stream().filter(said::add).forEach(listener::failed);
        try {
            found.publish(all.values());
        } catch (RuntimeException e) {
            LOG.error("the workers of Kubernetes could not be applied", e);
            listener.failed(e.toString());
        }
        first.countDown();
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** The API server tells of changes by itself. */
    @Override
    public void reload() {
        // watched
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        api.close();
    }
}
