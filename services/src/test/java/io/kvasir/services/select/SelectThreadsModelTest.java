package io.kvasir.services.select;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.services.slots.SlotsConfig;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A selection service with 64 clients at once, while one of its workers leaves and comes back. Each
 * client is answered as if it were alone, an id that they share is one client's at a time, and in
 * the end no load and no room is left behind.
 */
class SelectThreadsModelTest {
    private static final int CLIENTS = 64;
    private static final int ROUNDS = Trials.of(1, 4);
    private static final int ROOM = 70; // more than all clients have at once
    private static final int SHARED_IDS = 4;
    private static final int LEAVING = 3;

    @Tag("trials")
    @Test
    void nothingIsLeftBehindByManyClients() throws Exception {
        final long seed = Seeds.next("SelectThreadsModelTest");
        try (SelectService service =
                        new SelectService(
                                SelectConfig.of("127.0.0.1", 0)
                                        .withIndexes(4, 16 << 20)
                                        .withSlots(
                                                SlotsConfig.of("127.0.0.1", 0)
                                                        .withSizes(16, ROOM, 1 << 12)));
                ExecutorService threads = Executors.newFixedThreadPool(CLIENTS)) {
            service.start();
            final Http http = new Http(service.port());
            for (int id = 0; id <= LEAVING; id++) {
                enter(http, id);
            }
            final List<Future<?>> clients = new ArrayList<>();
            for (int i = 0; i < CLIENTS; i++) {
                final int number = i;
                clients.add(
                        threads.submit(
                                () -> new Client(http, number, new Random(seed + number)).run()));
            }
            for (Future<?> client : clients) {
                client.get();
            }
            assertNothingIsLeft(http);
        }
    }

    private static void enter(Http http, int id) {
        final Http.Answer answer =
                http.post(
                        "/workers",
                        "{\"worker_id\":"
                                + id
                                + ",\"model_name\":\"m\",\"endpoint\":\"http://w\","
                                + "\"block_size\":4,\"kv_events_endpoint\":\"tcp://127.0.0.1:9\"}");
        assertEquals(201, answer.status(), answer::text);
    }

    private static Http.Answer reserve(Http http, String id, Random random) {
        return http.post(
                "/select_and_reserve",
                "{\"model_name\":\"m\",\"selection_id\":\""
                        + id
                        + "\",\"token_ids\":"
                        + random.ints(1 + random.nextInt(14), 1, 3).boxed().toList()
                        + "}");
    }

    private static void assertNothingIsLeft(Http http) {
        for (int i = 0; i < SHARED_IDS; i++) {
            var _ = http.delete("/reservations/shared" + i); // may be there
        }
        int ranks = 0;
        for (JsonNode load : http.get("/loads").json().path(0).path("loads")) {
            ranks++;
            assertEquals(0, load.path("potential_prefill_tokens").asLong(), load::toString);
            assertEquals(0, load.path("potential_decode_blocks").asLong(), load::toString);
            assertEquals(0, load.path("active_requests").asLong(), load::toString);
        }
        assertTrue(ranks >= LEAVING, "ranks=" + ranks);
        final Random random = new Random(0);
        for (int i = 0; i < ROOM; i++) {
            final Http.Answer answer = reserve(http, "r" + i, random);
            assertEquals(200, answer.status(), answer::text);
        }
        assertEquals(503, reserve(http, "more", random).status());
    }

    /** One of the clients. */
    private static final class Client {
        private final Http http;
        private final int number;
        private final Random random;

        Client(Http http, int number, Random random) {
            this.http = http;
            this.number = number;
            this.random = random;
        }

        void run() {
            for (int round = 0; round < ROUNDS; round++) {
                if (number == 0) {
                    leaveAndComeBack();
                }
                keep("c" + number + "-" + round);
                share("shared" + random.nextInt(SHARED_IDS));
            }
        }

        private void leaveAndComeBack() {
            assertEquals(200, http.delete("/workers/" + LEAVING).status());
            enter(http, LEAVING);
        }

        /** An id of its own: it is there until it is ended, but where its worker has left. */
        private void keep(String id) {
            final Http.Answer answer = reserve(http, id, random);
            assertEquals(200, answer.status(), answer::text);
            final Set<Integer> done =
                    answer.json().path("worker_id").asInt() == LEAVING
                            ? Set.of(200, 404)
                            : Set.of(200);
            if (done.size() == 1) {
                assertEquals(409, reserve(http, id, random).status());
            }
            if (random.nextBoolean()) {
                assertIsOf(done, http.post("/reservations/" + id + "/prefill_complete", "{}"));
                assertIsOf(done, http.post("/reservations/" + id + "/output_block", "{}"));
            }
            assertIsOf(done, http.delete("/reservations/" + id));
            assertEquals(404, http.delete("/reservations/" + id).status());
        }

        /** An id that others reserve and end, too. */
        private void share(String id) {
            assertIsOf(Set.of(200, 409), reserve(http, id, random));
            assertIsOf(Set.of(200, 404), http.delete("/reservations/" + id));
        }

        private static void assertIsOf(Set<Integer> statuses, Http.Answer answer) {
            assertTrue(statuses.contains(answer.status()), () -> answer.status() + answer.text());
        }
    }
}
