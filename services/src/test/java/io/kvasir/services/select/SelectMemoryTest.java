package io.kvasir.services.select;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.services.testing.Http;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.io.IOException;

/** Workers for which there is no memory when they are named or changed. */
@Isolated // what it limits is the process's
class SelectMemoryTest {
    private static final String PATH = "/workers/7";
    private static final String OTHER = "{\"model_name\":\"other\"}";

    private final SelectService service = new SelectService(SelectConfig.of("127.0.0.1", 0));
    private Http http;

    @BeforeEach
    void start() throws IOException {
        service.start();
        http = new Http(service.port());
    }

    @AfterEach
    void stop() {
        service.close();
    }

    private Http.Answer named(int id) {
        return http.post(
                "/workers",
                "{\"worker_id\":"
                        + id
                        + ",\"model_name\":\"m\",\"endpoint\":\"http://w\",\"block_size\":4,"
                        + "\"kv_events_endpoint\":\"tcp://127.0.0.1:9\"}");
    }

    private static void assertSchedulable(Http.Answer answer) {
        assertEquals("schedulable", answer.json().path("lifecycle").asText(), answer::text);
    }

    private static void withoutMemory(Runnable work) {
        System.setProperty("kvasir.memory.limit", Long.toString(OffHeap.allocatedBytes()));
        try {
            work.run();
        } finally {
            System.clearProperty("kvasir.memory.limit");
        }
    }

    @Test
    void oneThatCouldNotBeNamedCanBeLater() {
        withoutMemory(
                () -> {
                    final Http.Answer refused = named(7);
                    assertEquals(503, refused.status());
                    assertTrue(refused.text().contains("--max-workers"), refused.text());
                });
        assertEquals("[]", http.get("/workers").text());
        assertSchedulable(named(7));
    }

    @Test
    void oneThatCouldNotBeChangedCanBeTakenOutOrChangedLater() {
        assertSchedulable(named(8)); // keeps the memory of the model that the other one leaves
        assertSchedulable(named(7));
        withoutMemory(() -> assertEquals(503, http.patch(PATH, OTHER).status()));
        assertEquals(1, http.get("/ready").json().path("schedulable_workers").asInt());
        assertEquals(200, http.delete(PATH).status());
        assertSchedulable(named(7));
        withoutMemory(() -> assertEquals(503, http.patch(PATH, OTHER).status()));
        assertSchedulable(http.patch(PATH, OTHER));
    }
}
