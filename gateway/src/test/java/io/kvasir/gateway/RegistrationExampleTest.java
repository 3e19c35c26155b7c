package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.MemoryStore;
import io.kvasir.registry.ModelRegistration;
import io.kvasir.registry.ModelType;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;

import org.junit.jupiter.api.Test;

import java.net.URI;
import java.time.Duration;
import java.util.Set;

/** The example of docs/operations/discovery.md, where a test compares it. */
class RegistrationExampleTest {
    private final MemoryStore store = new MemoryStore(Duration.ofSeconds(30));

    @Test
    void aWorkerRegistersItselfAndEnds() {
        final Duration drain = Duration.ZERO;
        // example
        Registrar registrar = new Registrar(store);
        ModelRegistration registration =
                registrar.registerModel(
                        Registration.builder(
                                        new InstanceId("prod", "decode", "generate", "d-0"),
                                        "m",
                                        URI.create("http://10.0.0.7:8000"))
                                .types(
                                        Set.of(
                                                ModelType.CHAT,
                                                ModelType.COMPLETIONS,
                                                ModelType.DECODE))
                                .blockSize(16)
                                .events("tcp://10.0.0.7:5557", "tcp://10.0.0.7:5558")
                                .build(),
                        drain);
        serveRequests();
        registration.close(); // says that it drains, waits for the time of the drain, removes it
        registrar.close();
        // example ends
        assertNull(registered());
    }

    private void serveRequests() {
        assertNotNull(registered());
    }

    private Object registered() {
        return store.get(new InstanceId("prod", "decode", "generate", "d-0").key());
    }
}
