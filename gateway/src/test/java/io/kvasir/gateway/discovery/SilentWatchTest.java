package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.registry.kubernetes.KubernetesAccess;
import io.kvasir.registry.kubernetes.KubernetesClient;
import io.kvasir.registry.kubernetes.KubernetesResources;
import io.kvasir.registry.kubernetes.ResourceWatch;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A watch whose connection stays open and brings nothing. */
class SilentWatchTest implements ResourceWatch.Listener {
    @TempDir private Path account;

    private final List<Integer> views = new CopyOnWriteArrayList<>(); // objects of each
    private final List<String> losses = new CopyOnWriteArrayList<>();

    @Override
    public void view(List<JsonNode> all) {
        views.add(all.size());
    }

    @Override
    public void changed(JsonNode object) {
        losses.add("an event: " + object);
    }

    @Override
    public void deleted(JsonNode object) {
        losses.add("an event: " + object);
    }

    @Override
    public void lost(String cause) {
        losses.add(cause);
    }

    @Override
    public void unlisted() {
        losses.add("a list failed");
    }

    @Test
    void allIsListedAnewWhichIsNoLoss() throws Exception {
        try (ScriptedApiServer server = new ScriptedApiServer();
                ResourceWatch watch =
                        new ResourceWatch(
                                new KubernetesClient(
                                        new KubernetesAccess(server.uri(), account, "serving"),
                                        Duration.ofSeconds(60),
                                        Duration.ofMillis(100)),
                                KubernetesResources.endpointSlices("app=vllm"),
                                "silent-watch",
                                this)) {
            server.missed(new Slice("a"));
            watch.start();
            Eventually.holds("a view", () -> views.contains(1));
            server.missed(new Slice("b"));
            Eventually.holds("a later view", () -> views.contains(2));
            assertEquals(List.of(), losses);
        }
    }
}
