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
        try (SilentRefusal store = new SilentRefusal()) {
            String said = "";
            for (Duration limit : SilentRefusal.limits()) {
                said = watch(store, limit);
                if (said.startsWith("the watch of ")) {
                    break;
                }
            }
            assertTrue(said.startsWith("the watch of "), said);
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
