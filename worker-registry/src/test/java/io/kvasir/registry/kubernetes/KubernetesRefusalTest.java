package io.kvasir.registry.kubernetes;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.SilentRefusal;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;

class KubernetesRefusalTest {
    @Test
    void theReasonOfARefusalIsNotWaitedFor() throws IOException {
        try (SilentRefusal store = new SilentRefusal();
                KubernetesClient client =
                        new KubernetesClient(
                                new KubernetesAccess(store.url(), Path.of("no/account"), "serving"),
                                Duration.ofSeconds(5),
                                Duration.ofSeconds(60))) {
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
