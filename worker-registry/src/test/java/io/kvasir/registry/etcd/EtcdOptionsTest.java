package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.URI;
import java.time.Duration;
import java.util.List;

class EtcdOptionsTest {
    private static EtcdOptions of(String endpoint) {
        return EtcdOptions.of(
                List.of(URI.create("http://h:1"), URI.create(endpoint)),
                Duration.ofSeconds(9),
                Duration.ofSeconds(1));
    }

    private static String refusal(String endpoint) {
        return assertThrows(IllegalArgumentException.class, () -> of(endpoint)).getMessage();
    }

    @Test
    void endpointsAreUrls() {
        assertEquals(2, of("https://[::1]:2379").endpoints().size());
        assertTrue(refusal("ftp://h:1").contains("ftp://h:1"));
        assertTrue(refusal("etcd-0:2379").contains("must be"));
    }

    @Test
    void aTimeoutMayBeForEver() {
        final URI closed = URI.create("http://127.0.0.1:1");
        try (EtcdClient client =
                new EtcdClient(
                        EtcdOptions.of(
                                List.of(closed),
                                Duration.ofSeconds(9),
                                Duration.ofSeconds(Long.MAX_VALUE)))) {
            assertTrue(
                    assertThrows(RegistryException.class, client::grant)
                            .getMessage()
                            .contains("refused"));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "https://us:s3cret@h:1",
                "http://s3cret@h:1",
                "ftp://us:s3cret@h:1",
                "http://us:s3cret@"
            })
    void aUserInAnEndpointIsRefusedAndItsPasswordNotSaid(String endpoint) {
        final String refusal = refusal(endpoint);
        assertFalse(refusal.contains("s3cret"), refusal);
        assertTrue(refusal.contains("are given by a login"), refusal);
    }
}
