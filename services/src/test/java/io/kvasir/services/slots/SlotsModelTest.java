package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.router.replica.ReplicaStatus;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.RequestObserver;
import io.kvasir.services.http.ServiceJson;
import io.kvasir.services.http.ServiceServer;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A slot tracker over HTTP whose callers register, add, complete, free and take out in any order,
 * with names and numbers that are wrong, strange or taken, while requests last too long. After each
 * call its workers and loads are those of naive maps, and at the end nothing is left.
 */
class SlotsModelTest {
    private static final int STEPS = 150;
    private static final int RANKS = 6;
    private static final int REQUESTS = 10;
    private static final int TIMEOUT_S = 30;
    private static final long LATE_NS = 2_000_000; // that a request may last too long
    private static final int BLOCK = 4;
    private static final List<String> MODELS = List.of("m", "a:b", "\u00e9\u0000");
    private static final List<String> GROUPS = List.of("default", "g:h", "");
    private static final long[] HASHES = {0, 1, -1, Long.MIN_VALUE, Long.MAX_VALUE};
    private static final long[] WORKERS = {0, 7, -1}; // the last is 2^64 - 1

    @Test
    void workersAndLoadsAreThoseOfNaiveMaps() throws IOException {
        final long seed = Seeds.next("SlotsModelTest");
        final AtomicLong clock = new AtomicLong();
        final SlotsConfig config =
                SlotsConfig.of("127.0.0.1", 0)
                        .withSizes(RANKS, REQUESTS, 1 << 10)
                        .withRequestTimeout(Duration.ofSeconds(TIMEOUT_S));
        try (SlotTracker tracker = new SlotTracker(config, clock::get);
                ServiceServer server =
                        new ServiceServer(
                                "slots",
                                "127.0.0.1",
                                0,
                                1 << 20,
                                new SlotsApi(tracker, false, () -> ReplicaStatus.NONE).endpoints(),
                                RequestObserver.NONE)) {
            server.start();
            new Model(seed, clock, tracker, new Http(server.port())).run();
        }
    }

    /** A worker of a group, or a rank of one, or a request of one. */
    private record Name(GroupKey group, String id) implements Comparable<Name> {
        @Override
        public int compareTo(Name other) {
            final int byGroup = group.compareTo(other.group);
            return byGroup != 0 ? byGroup : id.compareTo(other.id);
        }
    }

    /** What is said of a worker. */
    private record Ranks(int blockSize, long first, long count) {
        boolean has(long rank) {
            return rank >= first && rank < first + count;
        }
    }

    /** A request that runs. */
    private static final class Sent {
        final Name rank;
        final List<Long> hashes;
        final long endS;
        long tokens;

        Sent(Name rank, List<Long> hashes, long endS, long tokens) {
            this.rank = rank;
            this.hashes = hashes;
            this.endS = endS;
            this.tokens = tokens;
        }
    }

    /** Load of a rank. */
    private record Load(long tokens, long blocks, long requests) {}

    /** One run. */
    private static final class Model {
        private final long seed;
        private final Random random;
        private final AtomicLong clock;
        private final SlotTracker tracker;
        private final Http http;
        private final Map<Name, Ranks> workers = new TreeMap<>();
        private final Map<Name, Sent> requests = new TreeMap<>();
        private long nowS;

        Model(long seed, AtomicLong clock, SlotTracker tracker, Http http) {
            this.seed = seed;
            this.random = new Random(seed);
            this.clock = clock;
            this.tracker = tracker;
            this.http = http;
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                final GroupKey group = group();
                switch (random.nextInt(12)) {
                    case 0, 1 -> register(group);
                    case 2 -> unregister(group, worker());
                    case 3, 4, 5, 6 -> add(group);
                    case 7 -> end(group, "/prefill_complete");
                    case 8 -> end(group, "/free");
                    case 9 -> potential(group);
                    case 10 -> pass();
                    default -> nonsense();
                }
                check(step);
            }
            for (Name worker : List.copyOf(workers.keySet())) {
                unregister(worker.group, worker.id);
            }
            check(STEPS);
            assertTrue(requests.isEmpty(), "seed " + seed);
            assertEquals(0, http.get("/loads").json().size(), "seed " + seed);
        }

        private GroupKey group() {
            return new GroupKey(
                    MODELS.get(random.nextInt(4) % MODELS.size()),
                    GROUPS.get(random.nextInt(9) % 7 % GROUPS.size()));
        }

        private String worker() {
            return Long.toUnsignedString(WORKERS[random.nextInt(WORKERS.length)]);
        }

        private String id() {
            return random.nextInt(20) == 0 ? "" : "r" + random.nextInt(14);
        }

        private List<Long> hashes() {
            return random.ints(random.nextInt(6), 0, HASHES.length)
                    .mapToObj(i -> HASHES[i])
                    .toList();
        }

        private static ObjectNode body(GroupKey group) {
            final ObjectNode body = ServiceJson.object().put("model_name", group.model());
            return group.routingGroup().equals(GroupKey.DEFAULT_GROUP)
                    ? body
                    : body.put("routing_group", group.routingGroup());
        }

        private void expect(int status, String path, ObjectNode body) {
            final Http.Answer answer = http.post(path, body.toString());
            assertEquals(status, answer.status(), () -> text(path, body, answer));
        }

        private String text(String path, ObjectNode body, Http.Answer answer) {
            return "seed " + seed + ": " + path + " " + body + ": " + answer.text();
        }

        private void register(GroupKey group) {
            final Name name = new Name(group, worker());
            final int blockSize = random.nextInt(8) == 0 ? random.nextInt(3) : BLOCK;
            final long first = random.nextInt(8) == 0 ? (1L << 32) - 3 : random.nextInt(3);
            final long count = random.nextInt(8) == 0 ? (1L << 31) : random.nextInt(4);
            final Integer known = blockSize(group);
            final long used = workers.values().stream().mapToLong(Ranks::count).sum();
            final int status =
                    blockSize < 1 || count < 1 || first + count > (1L << 32) - 1
                            ? 400
                            : (known != null && known != blockSize) || workers.containsKey(name)
                                    ? 409
                                    : used + count > RANKS ? 503 : 201;
            final ObjectNode body = body(group).put("block_size", blockSize);
            body.put("dp_start", first).put("dp_size", count);
            expect(status, "/register", putId(body, "worker_id", name.id));
            if (status == 201) {
                workers.put(name, new Ranks(blockSize, first, count));
            }
        }

        private static ObjectNode putId(ObjectNode body, String name, String id) {
            return ServiceJson.putUnsigned(body, name, Long.parseUnsignedLong(id));
        }

        private Integer blockSize(GroupKey group) {
            return workers.entrySet().stream()
                    .filter(each -> each.getKey().group.equals(group))
                    .map(each -> each.getValue().blockSize)
                    .findAny()
                    .orElse(null);
        }

        private void unregister(GroupKey group, String worker) {
            final Name name = new Name(group, worker);
            final boolean known = workers.remove(name) != null;
            requests.entrySet()
                    .removeIf(
                            each ->
                                    each.getKey().group.equals(group)
                                            && each.getValue().rank.id.startsWith(worker + "/"));
            expect(known ? 200 : 404, "/unregister", putId(body(group), "worker_id", worker));
        }

        private void add(GroupKey group) {
            final String worker = worker();
            final long rank = random.nextInt(12) == 0 ? (1L << 32) - 3 : random.nextInt(4);
            final Name id = new Name(group, id());
            final List<Long> hashes = hashes();
            final int tokens = random.nextInt(9) == 0 ? Integer.MAX_VALUE : random.nextInt(20);
            final Ranks ranks = workers.get(new Name(group, worker));
            final int status =
                    blockSize(group) == null
                            ? 404
                            : requests.containsKey(id)
                                    ? 409
                                    : ranks == null || !ranks.has(rank)
                                            ? 404
                                            : requests.size() == REQUESTS ? 503 : 201;
            final ObjectNode body = body(group).put("request_id", id.id).put("dp_rank", rank);
            body.put("new_isl_tokens", tokens);
            final ArrayNode list = body.putArray("sequence_hashes");
            hashes.forEach(list::add);
            expect(status, "/add", putId(body, "worker_id", worker));
            if (status == 201) {
                requests.put(
                        id,
                        new Sent(
                                new Name(group, worker + "/" + rank),
                                hashes,
                                nowS + TIMEOUT_S,
                                tokens));
            }
        }

        private void end(GroupKey group, String path) {
            final boolean isEnd = path.equals("/free");
            final Name id = new Name(group, id());
            final Sent sent = requests.get(id);
            final boolean isThere = sent != null || isEnd;
            expect(
                    blockSize(group) != null && isThere ? 200 : 404,
                    path,
                    body(group).put("request_id", id.id));
            if (sent != null) {
                sent.tokens = 0;
                if (isEnd) {
                    requests.remove(id);
                }
            }
        }

        private void pass() {
            nowS += random.nextInt(TIMEOUT_S);
            final long nowNs = Duration.ofSeconds(nowS).toNanos();
            clock.set(nowNs + LATE_NS);
            tracker.expire();
            clock.set(nowNs);
            requests.values().removeIf(sent -> sent.endS <= nowS);
        }

        /** Nothing of it changes anything. */
        private void nonsense() {
            final String path =
                    List.of("/register", "/unregister", "/add", "/free", "/potential_loads", "/x")
                            .get(random.nextInt(6));
            final String body =
                    List.of(
                                    "",
                                    "{",
                                    "[]",
                                    "{}",
                                    "{\"model_name\":\"m\",\"worker_id\":1e0,\"request_id\":7}",
                                    "{\"model_name\":null}",
                                    "{\"model_name\":\"\\ud800\",\"worker_id\":0,\"block_size\":4,"
                                            + "\"dp_start\":0,\"dp_size\":1,\"request_id\":\"r1\","
                                            + "\"dp_rank\":0,\"sequence_hashes\":[]}",
                                    "{\"model_name\":\"m\"}{}")
                            .get(random.nextInt(8));
            final int status = http.post(path, body).status();
            assertTrue(
                    status == 400 || status == 404 || status == 422,
                    () -> "seed " + seed + ": " + path + " " + body + ": " + status);
        }

        private static Set<List<Long>> prefixes(List<Long> hashes) {
            final Set<List<Long>> prefixes = new HashSet<>();
            for (int end = 1; end <= hashes.size(); end++) {
                prefixes.add(hashes.subList(0, end));
            }
            return prefixes;
        }

        private Load load(Name rank, List<Long> more, long moreTokens) {
            final Set<List<Long>> blocks = prefixes(more);
            long tokens = moreTokens;
            long count = 0;
            for (Sent sent : requests.values()) {
                if (sent.rank.equals(rank)) {
                    blocks.addAll(prefixes(sent.hashes));
                    tokens += sent.tokens;
                    count++;
                }
            }
            return new Load(tokens, blocks.size(), count);
        }

        private Map<Name, Load> expected(GroupKey groupOrNull, List<Long> more, long moreTokens) {
            final Map<Name, Load> expected = new TreeMap<>();
            workers.forEach(
                    (worker, ranks) -> {
                        for (long rank = ranks.first; rank < ranks.first + ranks.count; rank++) {
                            final Name name = new Name(worker.group, worker.id + "/" + rank);
                            if (groupOrNull == null || groupOrNull.equals(worker.group)) {
                                expected.put(name, load(name, more, moreTokens));
                            }
                        }
                    });
            return expected;
        }

        private void potential(GroupKey group) {
            final List<Long> hashes = hashes();
            final int tokens = random.nextInt(9);
            final ObjectNode body = body(group).put("new_isl_tokens", tokens);
            final ArrayNode list = body.putArray("sequence_hashes");
            hashes.forEach(list::add);
            final Http.Answer answer = http.post("/potential_loads", body.toString());
            if (blockSize(group) == null) {
                assertEquals(404, answer.status(), () -> text("/potential_loads", body, answer));
                return;
            }
            final Map<Name, Load> found = new TreeMap<>();
            for (JsonNode load : answer.json()) {
                found.put(
                        rank(group, load),
                        new Load(
                                load.path("potential_prefill_tokens").asLong(),
                                load.path("potential_decode_blocks").asLong(),
                                load.path("active_requests").asLong()));
            }
            assertEquals(
                    expected(group, hashes, tokens),
                    found,
                    () -> text("/potential_loads", body, answer));
        }

        private static Name rank(GroupKey group, JsonNode load) {
            return new Name(
                    group, load.path("worker_id").asText() + "/" + load.path("dp_rank").asText());
        }

        private static GroupKey group(JsonNode shown) {
            return new GroupKey(
                    shown.path("model_name").asText(), shown.path("routing_group").asText());
        }

        private void check(int step) {
            final Map<Name, Ranks> shown = new TreeMap<>();
            for (JsonNode worker : http.get("/workers").json()) {
                shown.put(
                        new Name(group(worker), worker.path("worker_id").asText()),
                        new Ranks(
                                worker.path("block_size").asInt(),
                                worker.path("dp_start").asLong(),
                                worker.path("dp_size").asLong()));
            }
            assertEquals(workers, shown, () -> "seed " + seed + ", step " + step);
            final Map<Name, List<Long>> loads = new TreeMap<>();
            for (JsonNode load : http.get("/loads").json()) {
                loads.put(
                        rank(group(load), load),
                        List.of(
                                load.path("active_prefill_tokens").asLong(),
                                load.path("active_decode_blocks").asLong()));
            }
            final Map<Name, List<Long>> expected = new TreeMap<>();
            expected(null, new ArrayList<>(), 0)
                    .forEach((name, load) -> expected.put(name, List.of(load.tokens, load.blocks)));
            assertEquals(expected, loads, () -> "seed " + seed + ", step " + step);
        }
    }
}
