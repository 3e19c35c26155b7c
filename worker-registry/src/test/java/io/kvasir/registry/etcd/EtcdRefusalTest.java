package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException;
import io.kvasir.registry.SilentRefusal;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.time.Duration;
import java.util.List;

class EtcdRefusalTest {
    @Test
    void theReasonOfARefusalIsNotWaitedFor() throws IOException {
        try (SilentRefusal store = new SilentRefusal();
                EtcdClient client =
                        new EtcdClient(
                                EtcdOptions.of(
                                        List.of(store.url()),
                                        Duration.ofSeconds(10),
                                        Duration.ofSeconds(5)))) {
            final RegistryException refused =
                    assertThrows(RegistryException.class, () -> client.keepAlive(7));
            assertEquals(RegistryException.Kind.UNAVAILABLE, refused.kind());
            assertTrue(refused.getMessage().contains("status 503"), refused.getMessage());
        }
    }
}
