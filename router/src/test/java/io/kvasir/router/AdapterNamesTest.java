package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Set;

/** What a worker's adapter may be called. */
class AdapterNamesTest {
    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\ud83d", "a\ude00b"})
    void aNameThatNoPageCanShowIsRefused(String name) {
        try (KvRouter router = KvRouter.builder().build()) {
            final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            assertThrows(IllegalArgumentException.class, () -> worker.adapters(Set.of(name)));
            assertEquals(Set.of(), worker.adapters());
            worker.adapters(Set.of("\ud83d\ude00"));
        }
    }
}
