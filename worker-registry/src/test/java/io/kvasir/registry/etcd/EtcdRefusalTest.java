package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException;
import io.kvasir.registry.SilentRefusal;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.List;

class EtcdRefusalTest {
    @Test
    void whyItDoesNotAnswerIsSaidInWords() {
        final URI closed = URI.create("http://127.0.0.1:1");
        try (EtcdClient client =
                new EtcdClient(
                        EtcdOptions.of(
                                List.of(closed), Duration.ofSeconds(10), Duration.ofSeconds(60)))) {
            assertEquals(
                    "etcd at [%s] fails at %s/v3/lease/keepalive: the connection was refused"
                            .formatted(closed, closed),
                    assertThrows(RegistryException.class, () -> client.keepAlive(7)).getMessage());
        }
    }

    @Test
    void theReasonOfARefusalIsNotWaitedFor() throws IOException {
        try (SilentRefusal store = new SilentRefusal()) {
            RegistryException refused = null;
            for (Duration limit : SilentRefusal.limits()) {
                refused = keepAlive(store, limit);
                if (refused.getMessage().contains("status 503")) {
                    break;
                }
            }
            assertTrue(refused.getMessage().contains("status 503"), refused.getMessage());
            assertEquals(RegistryException.Kind.UNAVAILABLE, refused.kind());
        }
    }

    private static RegistryException keepAlive(SilentRefusal store, Duration limit) {
        try (EtcdClient client =
                new EtcdClient(
                        EtcdOptions.of(List.of(store.url()), Duration.ofSeconds(10), limit))) {
            return assertThrows(RegistryException.class, () -> client.keepAlive(7));
        }
    }
}
