package io.kvasir.services.select;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.services.slots.SlotsConfig;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;

/**
 * A selection service whose workers are named, changed and taken out while prompts are selected,
 * reserved later or at once, and ended. Its loads are those of a naive model, what it refuses
 * changes nothing, and it answers with workers as they are now.
 */
class SelectModelTest {
    private static final int STEPS = 100;
    private static final int REQUESTS = 12;

    @Test
    void loadsAndAnswersAreThoseOfNaiveSets() throws IOException {
        final Random random = new Random(Seeds.next("SelectModelTest"));
        try (SelectService service =
                new SelectService(
                        SelectConfig.of("127.0.0.1", 0)
                                .withIndexes(4, 16 << 20)
                                .withSlots(
                                        SlotsConfig.of("127.0.0.1", 0)
                                                .withSizes(16, REQUESTS, 1 << 12)))) {
            service.start();
            new Model(random, new Http(service.port())).run();
        }
    }

    /** What is said of a worker. */
    private record Sheet(String model, String endpoint, int blockSize, int ranks) {
        boolean isSameInside(Sheet other) {
            return model.equals(other.model)
                    && blockSize == other.blockSize
                    && ranks == other.ranks;
        }
    }

    /** A prompt that was selected or reserved. */
    private record Sent(String model, long worker, int rank, int blockSize, List<Integer> prompt) {
        Set<List<Integer>> blocks() {
            return prefixes(prompt, blockSize);
        }
    }

    private static Set<List<Integer>> prefixes(List<Integer> prompt, int blockSize) {
        final Set<List<Integer>> prefixes = new HashSet<>();
        for (int end = blockSize; end <= prompt.size(); end += blockSize) {
            prefixes.add(prompt.subList(0, end));
        }
        return prefixes;
    }

    /** Load of a rank. */
    private record Load(long tokens, long blocks, long requests) {}

    /** One run. */
    private static final class Model {
        private final Random random;
        private final Http http;
        private final Map<Long, Sheet> workers = new TreeMap<>();
        private final Set<Long> schedulable = new HashSet<>();
        private final Map<String, Sent> pending = new HashMap<>();
        private final Map<String, Sent> reserved = new HashMap<>();
        private final Set<String> decoding = new HashSet<>();

        Model(Random random, Http http) {
            this.random = random;
            this.http = http;
        }

        void run() {
            for (int id = 0; id < 3; id++) {
                name(id);
            }
            for (int step = 0; step < STEPS; step++) {
                final long worker = random.nextInt(4);
                switch (random.nextInt(24)) {
                    case 0 -> name(worker);
                    case 1, 2 -> change(worker);
                    case 3 -> remove(worker);
                    case 4, 5, 6, 7, 8 -> select();
                    case 9, 10, 11, 12, 13 -> claim();
                    case 14, 15, 16, 17 -> selectAndReserve();
                    case 18, 19 -> reserve(worker);
                    default -> end();
                }
                check();
            }
        }

        private String model() {
            return random.nextInt(3) > 0 ? "m" : "n";
        }

        private String id() {
            return "id" + random.nextInt(14);
        }

        private int size() {
            return random.nextInt(4) == 0 ? 2 : 4;
        }

        private String endpoint() {
            return "http://w" + random.nextInt(100);
        }

        private void name(long id) {
            final Sheet sheet = new Sheet(model(), endpoint(), size(), 1 + random.nextInt(2));
            settle(id, sheet);
            final Http.Answer answer = http.post("/workers", body(id, sheet));
            assertEquals(201, answer.status(), answer::text);
        }

        private static String body(long id, Sheet sheet) {
            return "{\"worker_id\":"
                    + id
                    + ",\"model_name\":\""
                    + sheet.model
                    + "\",\"endpoint\":\""
                    + sheet.endpoint
                    + "\",\"block_size\":"
                    + sheet.blockSize
                    + ",\"data_parallel_size\":"
                    + sheet.ranks
                    + ",\"kv_events_endpoints\":{\"0\":\"tcp://127.0.0.1:9\","
                    + "\"1\":\"tcp://127.0.0.1:9\"}}";
        }

        private void change(long id) {
            final Sheet before = workers.get(id);
            final String wrong = random.nextInt(4) == 0 ? ",\"taints\":7" : "";
            final int size = size();
            final String endpoint = endpoint();
            final boolean isSize = random.nextInt(4) == 0;
            final Http.Answer answer =
                    http.patch(
                            "/workers/" + id,
                            (isSize
                                            ? "{\"block_size\":" + size
                                            : "{\"endpoint\":\"" + endpoint + "\"")
                                    + wrong
                                    + "}");
            if (before == null) {
                assertEquals(404, answer.status(), answer::text);
            } else if (!wrong.isEmpty()) {
                assertEquals(422, answer.status(), answer::text);
            } else {
                assertEquals(200, answer.status(), answer::text);
                settle(
                        id,
                        isSize
                                ? new Sheet(before.model, before.endpoint, size, before.ranks)
                                : new Sheet(
                                        before.model, endpoint, before.blockSize, before.ranks));
            }
        }

        private void settle(long id, Sheet sheet) {
            final Sheet before = workers.put(id, sheet);
            if (schedulable.contains(id) && before.isSameInside(sheet)) {
                return;
            }
            leave(id);
            if (blockSize(sheet.model) == 0 || blockSize(sheet.model) == sheet.blockSize) {
                schedulable.add(id);
            }
        }

        private void leave(long id) {
            schedulable.remove(id);
            reserved.values().removeIf(sent -> sent.worker == id);
            decoding.retainAll(reserved.keySet());
        }

        /** Tokens per block of a model; 0 where it has no worker. */
        private int blockSize(String model) {
            return schedulable.stream()
                    .map(workers::get)
                    .filter(sheet -> sheet.model.equals(model))
                    .mapToInt(Sheet::blockSize)
                    .findAny()
                    .orElse(0);
        }

        private void remove(long id) {
            final int status = http.delete("/workers/" + id).status();
            assertEquals(workers.remove(id) == null ? 404 : 200, status);
            leave(id);
        }

        private List<Integer> prompt() {
            return random.ints(1 + random.nextInt(14), 1, 3).boxed().toList();
        }

        private static String ask(String model, String id, List<Integer> prompt) {
            return "{\"model_name\":\""
                    + model
                    + "\",\"selection_id\":\""
                    + id
                    + "\",\"token_ids\":"
                    + prompt
                    + "}";
        }

        private void select() {
            final String model = model();
            final String id = id();
            final List<Integer> prompt = prompt();
            final Http.Answer answer = http.post("/select", ask(model, id, prompt));
            if (blockSize(model) == 0) {
                assertEquals(503, answer.status(), answer::text);
            } else {
                assertEquals(200, answer.status(), answer::text);
                pending.put(id, chosen(model, prompt, answer.json()));
            }
        }

        private void selectAndReserve() {
            final String model = model();
            final String id = id();
            final List<Integer> prompt = prompt();
            final Http.Answer answer = http.post("/select_and_reserve", ask(model, id, prompt));
            if (blockSize(model) == 0) {
                assertEquals(503, answer.status(), answer::text);
            } else if (reserved.containsKey(id)) {
                assertEquals(409, answer.status(), answer::text);
            } else if (reserved.size() == REQUESTS) {
                assertEquals(503, answer.status(), answer::text);
            } else {
                assertEquals(200, answer.status(), answer::text);
                reserved.put(id, chosen(model, prompt, answer.json()));
            }
        }

        /** The rank that was chosen is one of the cheapest. */
        private Sent chosen(String model, List<Integer> prompt, JsonNode answer) {
            final Sent sent =
                    new Sent(
                            model,
                            answer.path("worker_id").asLong(),
                            answer.path("dp_rank").asInt(),
                            blockSize(model),
                            prompt);
            assertIsNow(answer);
            double least = Double.POSITIVE_INFINITY;
            for (long id : schedulable) {
                final Sheet sheet = workers.get(id);
                for (int rank = 0; rank < (sheet.model.equals(model) ? sheet.ranks : 0); rank++) {
                    least = Math.min(least, cost(id, rank, sent));
                }
            }
            assertEquals(least, cost(sent.worker, sent.rank, sent), 1e-9, "cost");
            return sent;
        }

        private double cost(long worker, int rank, Sent sent) {
            final Load load = load(worker, rank);
            final Set<List<Integer>> more = sent.blocks();
            more.removeAll(blocks(worker, rank));
            return (load.tokens + sent.prompt.size()) / (double) sent.blockSize
                    + load.blocks
                    + more.size();
        }

        private void assertIsNow(JsonNode answer) {
            final Sheet now = workers.get(answer.path("worker_id").asLong());
            assertEquals(now.endpoint, answer.path("endpoint").asText(), "endpoint");
            assertEquals(now.model, answer.path("model_name").asText(), "model");
        }

        private void claim() {
            final String id = id();
            final String model = model();
            final Http.Answer answer =
                    http.post(
                            "/reservations",
                            "{\"selection_id\":\"" + id + "\",\"model_name\":\"" + model + "\"}");
            final Sent sent = pending.get(id);
            if (sent == null || !sent.model.equals(model)) {
                assertEquals(404, answer.status(), answer::text);
                return;
            }
            final Sheet now = workers.get(sent.worker);
            if (reserved.containsKey(id)) {
                assertEquals(409, answer.status(), answer::text);
            } else if (!schedulable.contains(sent.worker)
                    || !now.model.equals(model)
                    || now.blockSize != sent.blockSize
                    || now.ranks <= sent.rank) {
                assertEquals(404, answer.status(), answer::text);
            } else if (reserved.size() == REQUESTS) {
                assertEquals(503, answer.status(), answer::text);
            } else {
                assertEquals(201, answer.status(), answer::text);
                assertIsNow(answer.json());
                reserved.put(id, pending.remove(id));
            }
        }

        /** On a worker of the caller's choice, with all of its tokens to prefill. */
        private void reserve(long worker) {
            final String id = id();
            final String model = model();
            final int rank = random.nextInt(3);
            final List<Integer> prompt = prompt();
            final Http.Answer answer =
                    http.post(
                            "/reservations",
                            ask(model, id, prompt)
                                    .replace(
                                            "{\"model",
                                            "{\"effective_prefill_tokens\":"
                                                    + prompt.size()
                                                    + ",\"worker_id\":"
                                                    + worker
                                                    + ",\"dp_rank\":"
                                                    + rank
                                                    + ",\"model"));
            final Sheet now = workers.get(worker);
            final boolean isThere =
                    schedulable.contains(worker) && now.model.equals(model) && rank < now.ranks;
            if (isThere && !reserved.containsKey(id) && reserved.size() < REQUESTS) {
                assertEquals(201, answer.status(), answer::text);
                assertIsNow(answer.json());
                reserved.put(id, new Sent(model, worker, rank, now.blockSize, prompt));
            } else {
                assertTrue(answer.status() >= 400 && answer.status() <= 503, answer::text);
            }
        }

        private void end() {
            final String id = id();
            final boolean isEnd = random.nextBoolean();
            final int status =
                    isEnd
                            ? http.delete("/reservations/" + id).status()
                            : http.post("/reservations/" + id + "/prefill_complete", "{}").status();
            assertEquals(reserved.containsKey(id) ? 200 : 404, status);
            if (isEnd) {
                reserved.remove(id);
                decoding.remove(id);
            } else if (reserved.containsKey(id)) {
                decoding.add(id);
            }
        }

        private Set<List<Integer>> blocks(long worker, int rank) {
            final Set<List<Integer>> blocks = new HashSet<>();
            for (Sent sent : reserved.values()) {
                if (sent.worker == worker && sent.rank == rank) {
                    blocks.addAll(sent.blocks());
                }
            }
            return blocks;
        }

        private Load load(long worker, int rank) {
            long tokens = 0;
            long requests = 0;
            for (Map.Entry<String, Sent> each : reserved.entrySet()) {
                final Sent sent = each.getValue();
                if (sent.worker == worker && sent.rank == rank) {
                    tokens += decoding.contains(each.getKey()) ? 0 : sent.prompt.size();
                    requests++;
                }
            }
            return new Load(tokens, blocks(worker, rank).size(), requests);
        }

        private void check() {
            final Map<String, Load> expected = new TreeMap<>();
            for (long id : schedulable) {
                IntStream.range(0, workers.get(id).ranks)
                        .forEach(rank -> expected.put(id + "/" + rank, load(id, rank)));
            }
            final Map<String, Load> found = new TreeMap<>();
            for (JsonNode group : http.get("/loads").json()) {
                for (JsonNode load : group.path("loads")) {
                    found.put(
                            load.path("worker_id").asLong() + "/" + load.path("dp_rank").asInt(),
                            new Load(
                                    load.path("potential_prefill_tokens").asLong(),
                                    load.path("potential_decode_blocks").asLong(),
                                    load.path("active_requests").asLong()));
                }
            }
            assertEquals(expected, found);
        }
    }
}
