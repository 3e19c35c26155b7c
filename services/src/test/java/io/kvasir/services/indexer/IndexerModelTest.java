package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceJson;
import io.kvasir.services.testing.EnginePublisher;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/**
 * An indexer over HTTP whose engines come, announce, and go in any order, with calls among them
 * that are refused. What it answers is what naive sets of blocks say, its dump makes an index that
 * answers the same, a second indexer that begins with the dump and follows the engines does too,
 * and nothing is left in either at the end.
 */
class IndexerModelTest {
    private static final int STEPS = 16;
    private static final int BLOCK = 2;
    private static final int MODELS = 3;
    private static final int RANKS = 4; // of one model and group
    private static final List<GroupKey> KEYS =
            List.of(
                    new GroupKey("m", "default"),
                    new GroupKey("x:y", "z"),
                    new GroupKey("x", "y:z"),
                    new GroupKey("x:y:z", "default"));
    private static final long[] INSTANCES = {0, 7, -1}; // the last is 2^64 - 1

    @Test
    void answersAndDumpsAreThoseOfNaiveSets() throws Exception {
        final long seed = Seeds.next("IndexerModelTest");
        try (IndexerService service = new IndexerService(config())) {
            service.start();
            new Model(seed, new Http(service.port())).run();
        }
    }

    private static IndexerConfig config() {
        return IndexerConfig.of("127.0.0.1", 0).withSizes(RANKS, MODELS, 16 << 20);
    }

    /** A rank of an instance. */
    private record Rank(long instance, int dpRank) {}

    /** What an engine has announced. */
    private static final class Engine {
        final GroupKey key;
        final EnginePublisher publisher;
        final Set<List<Integer>> held = new HashSet<>();

        Engine(GroupKey key, EnginePublisher publisher) {
            this.key = key;
            this.publisher = publisher;
        }

        /** Leading tokens of a prompt that it has. */
        int depth(List<Integer> prompt) {
            int depth = 0;
            while (depth + BLOCK <= prompt.size()
                    && held.contains(prompt.subList(0, depth + BLOCK))) {
                depth += BLOCK;
            }
            return depth;
        }
    }

    /** One run. */
    private static final class Model {
        private final long seed;
        private final Random random;
        private final Http http;
        private final List<Http> all = new ArrayList<>(); // that follow the engines
        private IndexerService late; // which began with the dump of the first one; null before
        private final Map<Rank, Engine> engines = new HashMap<>();

        Model(long seed, Http http) {
            this.seed = seed;
            this.random = new Random(seed);
            this.http = http;
            all.add(http);
        }

        void run() throws Exception {
            try {
                for (int step = 0; step < STEPS; step++) {
                    switch (random.nextInt(12)) {
                        case 0, 1, 2 -> register();
                        case 3 -> unregister(instance(), key());
                        case 4, 5, 6, 7 -> store();
                        case 8, 9 -> remove();
                        case 10 -> {
                            loadDump();
                            follow();
                        }
                        default -> nonsense();
                    }
                    check("step " + step);
                }
                loadDump();
                for (Rank rank : List.copyOf(engines.keySet())) {
                    if (engines.containsKey(rank)) {
                        unregister(rank.instance, engines.get(rank).key);
                    }
                }
                check("end");
                for (Http each : all) {
                    assertEquals("{}", each.get("/dump").text(), this::words);
                }
            } finally {
                if (late != null) {
                    late.close();
                }
                engines.values().forEach(engine -> engine.publisher.close());
            }
        }

        private String words() {
            return "seed " + seed;
        }

        private GroupKey key() {
            return KEYS.get(random.nextInt(KEYS.size()));
        }

        private long instance() {
            return INSTANCES[random.nextInt(INSTANCES.length)];
        }

        private static ObjectNode body(long instance, GroupKey key) {
            final ObjectNode body = ServiceJson.object().put("model_name", key.model());
            ServiceJson.putUnsigned(body, "instance_id", instance);
            return body.put("routing_group", key.routingGroup());
        }

        private void expect(int status, String path, ObjectNode body) {
            for (Http each : all) {
                final Http.Answer answer = each.post(path, body.toString());
                assertEquals(
                        status,
                        answer.status(),
                        () -> words() + ": " + path + " " + body + ": " + answer.text());
            }
        }

        private GroupKey keyOf(long instance) {
            return engines.entrySet().stream()
                    .filter(each -> each.getKey().instance == instance)
                    .map(each -> each.getValue().key)
                    .findAny()
                    .orElse(null);
        }

        private long ranks(GroupKey key) {
            return engines.values().stream().filter(engine -> engine.key.equals(key)).count();
        }

        private void register() {
            final GroupKey key = key();
            final Rank rank = new Rank(instance(), random.nextInt(2));
            final int blockSize = random.nextInt(6) == 0 ? random.nextInt(2) : BLOCK;
            final boolean isAddress = random.nextInt(6) > 0;
            final EnginePublisher publisher = new EnginePublisher(rank.dpRank);
            final GroupKey known = keyOf(rank.instance);
            final long models = engines.values().stream().map(e -> e.key).distinct().count();
            final int status;
            if (known != null && (!known.equals(key) || engines.containsKey(rank))) {
                status = 409;
            } else if (ranks(key) > 0 && blockSize != BLOCK) {
                status = 409;
            } else if (ranks(key) == 0 && blockSize < 1) {
                status = 400;
            } else if (ranks(key) == 0 && models == MODELS) {
                status = 503;
            } else if (ranks(key) == RANKS) {
                status = 503;
            } else {
                status = isAddress ? 201 : 400;
            }
            final String endpoint = isAddress ? publisher.endpoint() : "tcp://nonsense";
            final int size = status == 201 ? BLOCK : blockSize;
            expect(status, "/register", registration(rank, key, endpoint, size));
            if (status == 201) {
                all.forEach(each -> publisher.awaitSubscriber());
                engines.put(rank, new Engine(key, publisher));
            } else {
                publisher.close();
            }
        }

        private static ObjectNode registration(
                Rank rank, GroupKey key, String endpoint, int blockSize) {
            return body(rank.instance, key)
                    .put("endpoint", endpoint)
                    .put("block_size", blockSize)
                    .put("dp_rank", rank.dpRank);
        }

        /**
         * A second indexer begins with the first one's dump and follows the engines from now on.
         */
        private void follow() throws IOException {
            if (late != null) {
                return;
            }
            late = new IndexerService(config().withPeers(List.of(http.url("/"))));
            late.start();
            final Http second = new Http(late.port());
            engines.forEach(
                    (rank, engine) -> {
                        final Http.Answer answer =
                                second.post(
                                        "/register",
                                        registration(
                                                        rank,
                                                        engine.key,
                                                        engine.publisher.endpoint(),
                                                        BLOCK)
                                                .toString());
                        assertEquals(201, answer.status(), () -> words() + answer.text());
                        engine.publisher.awaitSubscriber();
                    });
            all.add(second);
        }

        private void unregister(long instance, GroupKey key) {
            expect(key.equals(keyOf(instance)) ? 200 : 404, "/unregister", body(instance, key));
            if (key.equals(keyOf(instance))) {
                engines.entrySet()
                        .removeIf(
                                each -> {
                                    final boolean isIts = each.getKey().instance == instance;
                                    if (isIts) {
                                        each.getValue().publisher.close();
                                    }
                                    return isIts;
                                });
            }
        }

        private Engine engine() {
            final List<Engine> all = List.copyOf(engines.values());
            return all.isEmpty() ? null : all.get(random.nextInt(all.size()));
        }

        /** Each engine has a name of its own for a block. */
        private static long name(Engine engine, List<Integer> path) {
            return 31L * path.hashCode() + engine.publisher.endpoint().hashCode();
        }

        private void store() {
            final Engine engine = engine();
            if (engine == null) {
                return;
            }
            final List<List<Integer>> parents = new ArrayList<>(engine.held);
            parents.add(List.of());
            final List<Integer> parent = parents.get(random.nextInt(parents.size()));
            final List<Integer> path = new ArrayList<>(parent);
            final List<Long> names = new ArrayList<>();
            final List<Integer> tokens = new ArrayList<>();
            for (int i = 1 + random.nextInt(2); i > 0; i--) {
                final List<Integer> block = List.of(random.nextInt(2), random.nextInt(2));
                path.addAll(block);
                if (!engine.held.add(List.copyOf(path))) {
                    break; // an engine has one copy of it
                }
                tokens.addAll(block);
                names.add(name(engine, path));
            }
            if (!names.isEmpty()) {
                engine.publisher.stored(
                        parent.isEmpty() ? null : (Long) name(engine, parent),
                        names,
                        tokens.stream().mapToInt(Integer::intValue).toArray());
            }
        }

        private void remove() {
            final Engine engine = engine();
            if (engine != null && !engine.held.isEmpty()) {
                final List<List<Integer>> held = new ArrayList<>(engine.held);
                held.sort((a, b) -> a.toString().compareTo(b.toString()));
                final List<Integer> path = held.get(random.nextInt(held.size()));
                engine.held.remove(path);
                engine.publisher.removed(name(engine, path));
            }
        }

        /** Nothing of it changes anything. */
        private void nonsense() {
            final String path =
                    List.of("/register", "/unregister", "/query", "/query_by_hash")
                            .get(random.nextInt(4));
            final String body =
                    List.of(
                                    "",
                                    "[",
                                    "{}",
                                    "{\"model_name\":\"m\",\"instance_id\":0.0}",
                                    "{\"model_name\":\"m\",\"token_ids\":[-1],\"block_hashes\":[1.5]}",
                                    "{\"model_name\":\"none\",\"token_ids\":[1],\"block_hashes\":[1]}")
                            .get(random.nextInt(6));
            final int status = http.post(path, body).status();
            assertTrue(
                    status == 400 || status == 404 || status == 422,
                    () -> words() + ": " + path + " " + body + ": " + status);
        }

        private List<List<Integer>> prompts() {
            final List<List<Integer>> prompts = new ArrayList<>();
            for (Engine engine : engines.values()) {
                engine.held.stream().limit(3).forEach(prompts::add);
            }
            for (int i = 0; i < 4; i++) {
                prompts.add(random.ints(random.nextInt(9), 0, 2).boxed().toList());
            }
            return prompts;
        }

        /** Tokens by rank. */
        private Map<Rank, Integer> expected(GroupKey key, List<Integer> prompt) {
            final Map<Rank, Integer> expected = new HashMap<>();
            engines.forEach(
                    (rank, engine) -> {
                        if (engine.key.equals(key) && engine.depth(prompt) > 0) {
                            expected.put(rank, engine.depth(prompt));
                        }
                    });
            return expected;
        }

        private Map<Rank, Integer> answer(Http of, GroupKey key, List<Integer> prompt) {
            final ObjectNode body =
                    ServiceJson.object()
                            .put("model_name", key.model())
                            .put("routing_group", key.routingGroup());
            prompt.forEach(body.putArray("token_ids")::add);
            final Http.Answer answer = of.post("/query", body.toString());
            final Map<Rank, Integer> found = new HashMap<>();
            if (ranks(key) == 0) {
                assertEquals(404, answer.status(), this::words);
                return found;
            }
            assertEquals(200, answer.status(), () -> words() + answer.text());
            for (Map.Entry<String, JsonNode> instance : answer.json().path("scores").properties()) {
                for (Map.Entry<String, JsonNode> rank : instance.getValue().properties()) {
                    found.put(
                            new Rank(
                                    Long.parseUnsignedLong(instance.getKey()),
                                    Integer.parseInt(rank.getKey())),
                            rank.getValue().asInt());
                }
            }
            return found;
        }

        private void check(String when) {
            all.forEach(each -> check(each, when + (each == http ? "" : ", late")));
        }

        private void check(Http of, String when) {
            final Map<String, String> shown = new TreeMap<>();
            for (JsonNode worker : of.get("/workers").json()) {
                worker.path("endpoints")
                        .properties()
                        .forEach(
                                each ->
                                        shown.put(
                                                worker.path("instance_id").asText()
                                                        + "/"
                                                        + each.getKey(),
                                                each.getValue().asText()));
            }
            final Map<String, String> registered = new TreeMap<>();
            engines.forEach(
                    (rank, engine) ->
                            registered.put(
                                    Long.toUnsignedString(rank.instance) + "/" + rank.dpRank,
                                    engine.publisher.endpoint()));
            assertEquals(registered, shown, () -> words() + ", " + when);
            for (List<Integer> prompt : prompts()) {
                for (GroupKey key : KEYS) {
                    final Map<Rank, Integer> expected = expected(key, prompt);
                    Eventually.holds(
                            () ->
                                    words()
                                            + ", "
                                            + when
                                            + ": "
                                            + key
                                            + prompt
                                            + " has "
                                            + expected
                                            + ", but "
                                            + answer(of, key, prompt),
                            () -> answer(of, key, prompt).equals(expected));
                }
            }
        }

        /** Into an indexer that has no engines. */
        private void loadDump() throws Exception {
            check("before a dump");
            final String dump = http.get("/dump").text();
            try (IndexRegistry other = new IndexRegistry(IndexSizes.of(RANKS, 16 << 20), MODELS)) {
                final DumpReader reader = new DumpReader(other);
                reader.read(new ByteArrayInputStream(dump.getBytes(StandardCharsets.UTF_8)));
                assertEquals(0, reader.leftOut(), () -> words() + ": " + dump);
                for (List<Integer> prompt : prompts()) {
                    for (GroupKey key : KEYS) {
                        final Map<Rank, Integer> expected = expected(key, prompt);
                        Eventually.holds(
                                () -> words() + ": " + key + prompt + " in " + dump,
                                () -> loaded(other, key, prompt).equals(expected));
                    }
                }
            }
        }

        private static Map<Rank, Integer> loaded(
                IndexRegistry registry, GroupKey key, List<Integer> prompt) {
            final Map<Rank, Integer> found = new HashMap<>();
            for (IndexGroup group : registry.groups()) {
                if (group.key.equals(key)) {
                    group.match(prompt.stream().mapToInt(Integer::intValue).toArray(), null, null)
                            .forEach(
                                    match ->
                                            found.put(
                                                    new Rank(match.instance(), match.dpRank()),
                                                    match.tokens()));
                }
            }
            return found;
        }
    }
}
