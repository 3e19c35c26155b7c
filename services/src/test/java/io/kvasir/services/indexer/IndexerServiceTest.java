package io.kvasir.services.indexer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.services.testing.EnginePublisher;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpRequest;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;

class IndexerServiceTest {
    private static final long INDEX_BYTES = 16 << 20;
    private static final String PROMPT = "[1,2,3,4,5,6,7,8,9,10,11,12]";

    /** A port that no process listens on: the connections that are tried end at once. */
    private static final String UNUSED_ENDPOINT = "tcp://127.0.0.1:9";

    private final List<AutoCloseable> open = new ArrayList<>();
    private IndexerService service;
    private Http http;

    private static IndexerConfig config() {
        return IndexerConfig.of("127.0.0.1", 0).withSizes(64, 8, INDEX_BYTES);
    }

    @BeforeEach
    void start() throws IOException {
        service = start(config());
        http = new Http(service.port());
    }

    private IndexerService start(IndexerConfig config) throws IOException {
        final IndexerService started = new IndexerService(config);
        open.add(started);
        started.start();
        return started;
    }

    @AfterEach
    void close() throws Exception {
        for (AutoCloseable one : open.reversed()) {
            one.close();
        }
    }

    private EnginePublisher engine(int dpRank) {
        final EnginePublisher engine = new EnginePublisher(dpRank);
        open.add(engine);
        return engine;
    }

    private static String registration(String id, EnginePublisher engine, String more) {
        return registration(id, engine.endpoint(), more);
    }

    private static String registration(String id, String endpoint, String more) {
        return "{\"instance_id\":"
                + id
                + ",\"endpoint\":\""
                + endpoint
                + "\",\"model_name\":\"m\",\"block_size\":4"
                + more
                + "}";
    }

    private void register(String id, EnginePublisher engine, String more) {
        final Http.Answer answer = http.post("/register", registration(id, engine, more));
        assertEquals(201, answer.status(), answer::text);
        assertEquals(Http.json("{\"status\":\"ok\"}"), answer.json());
    }

    private JsonNode query(String tokens) {
        return query(http, tokens);
    }

    private static JsonNode query(Http http, String tokens) {
        final Http.Answer answer =
                http.post("/query", "{\"model_name\":\"m\",\"token_ids\":" + tokens + "}");
        assertEquals(200, answer.status(), answer::text);
        return answer.json();
    }

    private static void awaitTokens(Http http, String id, String rank, int tokens) {
        Eventually.holds(
                () -> query(http, PROMPT).path("scores").path(id).path(rank).asInt(0) == tokens);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/register|{|400",
                "/register||400",
                "/register|[]|422",
                "/register|{\"instance_id\":1,\"model_name\":\"m\",\"block_size\":4}|422",
                "/register|{\"instance_id\":1,\"endpoint\":\"tcp://127.0.0.1:9\",\"model_name\":\"m\"}"
                    + "|422",
                "/register|{\"instance_id\":-1,\"endpoint\":\"tcp://127.0.0.1:9\",\"model_name\":\"m\","
                    + "\"block_size\":4}|422",
                "/register|{\"instance_id\":18446744073709551616,\"endpoint\":\"tcp://127.0.0.1:9\","
                    + "\"model_name\":\"m\",\"block_size\":4}|422",
                "/register|{\"instance_id\":1,\"endpoint\":\"nonsense\",\"model_name\":\"m\","
                        + "\"block_size\":4}|400",
                "/register|{\"instance_id\":1,\"endpoint\":\"tcp://127.0.0.1\",\"model_name\":\"m\","
                    + "\"block_size\":4}|400",
                "/register|{\"instance_id\":1,\"endpoint\":\"http://127.0.0.1:9\",\"model_name\":\"m\","
                    + "\"block_size\":4}|400",
                "/register|{\"instance_id\":1,\"endpoint\":\"tcp://127.0.0.1:9\",\"model_name\":\"m\","
                    + "\"block_size\":4,\"replay_endpoint\":\"zz\"}|400",
                "/register|{\"instance_id\":1,\"endpoint\":\"tcp://127.0.0.1:9\",\"model_name\":\"m\","
                    + "\"block_size\":0}|400",
                "/register|{\"instance_id\":1,\"endpoint\":\"tcp://127.0.0.1:9\",\"model_name\":\"m\","
                    + "\"block_size\":4,\"dp_rank\":-1}|422",
                "/unregister|{\"instance_id\":1,\"model_name\":\"m\"}|404",
                "/unregister|{\"instance_id\":1}|422",
                "/query|{\"token_ids\":[1],\"model_name\":\"absent\"}|404",
                "/query|{\"token_ids\":[1]}|422",
                "/query|{\"token_ids\":[-1],\"model_name\":\"m\"}|422",
                "/query|{\"token_ids\":\"x\",\"model_name\":\"m\"}|422",
                "/query_by_hash|{\"block_hashes\":[1],\"model_name\":\"absent\"}|404",
                "/query_by_hash|{\"block_hashes\":[9223372036854775808],\"model_name\":\"m\"}|422",
                "/query_by_hash|{\"block_hashes\":[1],\"model_name\":\"m\",\"cache_salt\":\"\"}|400",
                "/register_peer|{}|422",
                "/deregister_peer|{\"url\":\"http://absent\"}|404",
                "/nowhere|{}|404",
                "/health|{}|405"
            })
    void whatCannotBeIsRefusedAndLeavesNothing(String path, String body, int status) {
        final Http.Answer answer = http.post(path, body == null ? "" : body);
        assertEquals(status, answer.status(), answer::text);
        assertTrue(answer.json().path("error").isTextual(), answer::text);
        assertEquals("[]", http.get("/workers").text());
        assertEquals("{}", http.get("/dump").text());
    }

    @Test
    void pagesOfBrowsersAndBodiesOfOtherKindsAreRefused() {
        final HttpRequest.BodyPublisher body =
                HttpRequest.BodyPublishers.ofString(registration("1", UNUSED_ENDPOINT, ""));
        assertEquals(
                415, http.send(HttpRequest.newBuilder(http.url("/register")).POST(body)).status());
        assertEquals(
                403,
                http.send(
                                HttpRequest.newBuilder(http.url("/register"))
                                        .header("Content-Type", "application/json")
                                        .header("Origin", "http://example.com")
                                        .POST(body))
                        .status());
        assertEquals("[]", http.get("/workers").text());
    }

    @Test
    void aBodyOfMoreThanEightMebibytesIsRefused() {
        final byte[] body = new byte[IndexerService.MOST_BODY_BYTES + 1];
        Arrays.fill(body, (byte) ' ');
        assertEquals(413, http.post("/query", body).status());
        assertEquals(400, http.post("/query", Arrays.copyOf(body, body.length - 1)).status());
        assertEquals(200, http.get("/health").status());
    }

    @Test
    void whoIsRegisteredAlreadyOrWithOtherBlocksIsA409() {
        assertEquals(201, http.post("/register", registration("1", UNUSED_ENDPOINT, "")).status());
        assertEquals(409, http.post("/register", registration("1", UNUSED_ENDPOINT, "")).status());
        assertEquals(
                409,
                http.post("/register", registration("2", UNUSED_ENDPOINT, "").replace(":4}", ":8}"))
                        .status());
        assertEquals(
                409,
                http.post(
                                "/register",
                                registration("1", UNUSED_ENDPOINT, ",\"routing_group\":\"g\""))
                        .status());
        assertEquals(
                201,
                http.post("/register", registration("1", UNUSED_ENDPOINT, ",\"dp_rank\":1"))
                        .status());
        final JsonNode workers = http.get("/workers?model_name=m").json();
        assertEquals(1, workers.size());
        assertEquals(2, workers.get(0).path("listeners").size());
        assertEquals(UNUSED_ENDPOINT, workers.get(0).path("endpoints").path("1").asText());
        assertEquals("[]", http.get("/workers?routing_group=g").text());
        assertEquals(
                404,
                http.post("/unregister", "{\"instance_id\":1,\"model_name\":\"other\"}").status());
        assertEquals(
                404,
                http.post(
                                "/unregister",
                                "{\"instance_id\":1,\"model_name\":\"m\",\"routing_group\":\"g\"}")
                        .status());
        assertEquals(
                200, http.post("/unregister", "{\"instance_id\":1,\"model_name\":\"m\"}").status());
        assertEquals(404, http.post("/query", "{\"model_name\":\"m\",\"token_ids\":[1]}").status());
        assertEquals(
                201,
                http.post("/register", registration("2", UNUSED_ENDPOINT, "").replace(":4}", ":8}"))
                        .status());
    }

    @Test
    void lowerTiersGoOnWhereTheDeviceEnds() {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber().stored(null, List.of(101L), 1, 2, 3, 4);
        engine.in("CPU").stored(101L, List.of(102L), 5, 6, 7, 8);
        engine.in("DISK").stored(102L, List.of(103L), 9, 10, 11, 12);
        engine.in("EXTERNAL").stored(null, List.of(101L), 1, 2, 3, 4);
        Eventually.holds(() -> query(PROMPT).at("/instances/1/disk").asInt() == 12);
        assertEquals(
                Http.json(
                        "{\"scores\":{\"1\":{\"0\":4}},\"frequencies\":[],\"instances\":{\"1\":"
                                + "{\"longest_matched\":12,\"gpu\":4,\"dp\":{\"0\":4},\"cpu\":8,"
                                + "\"disk\":12}}}"),
                query(PROMPT));
        engine.in("GPU").removed(101L);
        Eventually.holds(() -> query(PROMPT).at("/instances/1/disk").asInt() == 0);
        assertEquals(4, query(PROMPT).at("/instances/1/longest_matched").asInt());
        engine.in("EXTERNAL").removed(101L);
        Eventually.holds(() -> query(PROMPT).path("instances").isEmpty());
    }

    @Test
    void sharedStorageIsEveryRanksAndGoesWithWhoAnnouncedIt() {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        register("2", engine(0), "");
        engine.awaitSubscriber().stored(null, List.of(101L), 1, 2, 3, 4);
        engine.in("EXTERNAL").stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        Eventually.holds(() -> query(PROMPT).at("/instances/2/longest_matched").asInt() == 8);
        assertEquals(
                Http.json(
                        "{\"scores\":{\"1\":{\"0\":4},\"2\":{\"0\":0}},\"frequencies\":[],"
                                + "\"instances\":{\"1\":{\"longest_matched\":8,\"gpu\":4,"
                                + "\"dp\":{\"0\":4},\"cpu\":4,\"disk\":4},\"2\":"
                                + "{\"longest_matched\":8,\"gpu\":0,\"dp\":{\"0\":0},\"cpu\":0,"
                                + "\"disk\":0}}}"),
                query(PROMPT));
        http.post("/unregister", "{\"instance_id\":1,\"model_name\":\"m\"}");
        Eventually.holds(() -> query(PROMPT).path("instances").isEmpty());
    }

    @Test
    void eachTierIsAsLongAsTheLongerOfBothKindsOfHashes() {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber()
                .storedInPairs(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8, 9);
        awaitTokens(http, "1", "0", 8);
        engine.in("EXTERNAL").stored(null, List.of(201L), 1, 2, 3, 4);
        engine.in("CPU")
                .stored(null, List.of(301L, 302L, 303L), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        Eventually.holds(() -> query(PROMPT).at("/instances/1/cpu").asInt() == 12);
        assertEquals(8, query(PROMPT).at("/instances/1/gpu").asInt());
        assertEquals(1, query(PROMPT).path("instances").size());
    }

    @Test
    void aPromptIsAnsweredInTokensByInstanceAndRank() {
        final EnginePublisher first = engine(0);
        final EnginePublisher second = engine(1);
        register("18446744073709551615", first, "");
        register("2", second, ",\"dp_rank\":1");
        first.awaitSubscriber().stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        first.stored(102L, List.of(-3L), 9, 10, 11, 12);
        second.awaitSubscriber().stored(null, List.of(7L), 1, 2, 3, 4);
        awaitTokens(http, "18446744073709551615", "0", 12);
        awaitTokens(http, "2", "1", 4);
        final String expected =
                "{\"scores\":{\"18446744073709551615\":{\"0\":12},\"2\":{\"1\":4}},"
                        + "\"frequencies\":[],\"instances\":{\"18446744073709551615\":"
                        + "{\"longest_matched\":12,\"gpu\":12,\"dp\":{\"0\":12},\"cpu\":12,"
                        + "\"disk\":12},\"2\":{\"longest_matched\":4,\"gpu\":4,\"dp\":{\"1\":4},"
                        + "\"cpu\":4,\"disk\":4}}}";
        assertEquals(Http.json(expected), query(PROMPT));
        assertEquals(
                8,
                query("[1,2,3,4,5,6,7,8,9,10,11]")
                        .at("/instances/18446744073709551615/gpu")
                        .asInt());
        assertEquals(0, query("[1,2,3]").path("instances").size());
        assertEquals(0, query("[4294967295,2,3,4]").path("instances").size());
        // local hashes of the first two blocks, signed
        final JsonNode byHash =
                http.post(
                                "/query_by_hash",
                                "{\"model_name\":\"m\",\"block_hashes\":"
                                        + "[-3803038269031200164,-1669731304162740404]}")
                        .json();
        assertEquals(8, byHash.at("/scores/18446744073709551615/0").asInt());
        assertEquals(
                0,
                http.post(
                                "/query",
                                "{\"model_name\":\"m\",\"token_ids\":[1,2,3,4],"
                                        + "\"lora_name\":\"l\"}")
                        .json()
                        .path("scores")
                        .size());
    }

    @Test
    void aDumpNamesParentsFirstWithTheHashesOfEachRank() {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber().stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        engine.stored(102L, List.of(-3L), 9, 10, 11, 12);
        engine.stored(101L, List.of(104L), 9, 9, 9, 9);
        engine.removed(102L); // what is behind it cannot be reached any more
        engine.stored(104L, List.of(105L), 1, 1, 1, 1);
        Eventually.holds(() -> query("[1,2,3,4,9,9,9,9,1,1,1,1]").at("/scores/1/0").asInt() == 12);
        final JsonNode group = http.get("/dump").json().path("m:default");
        assertEquals(4, group.path("block_size").asInt());
        final Set<String> seen = new HashSet<>();
        long id = 0;
        for (JsonNode routerEvent : group.path("events")) {
            assertEquals("1", routerEvent.path("worker_id").asText());
            assertEquals("device", routerEvent.path("storage_tier").asText());
            assertEquals(id++, routerEvent.at("/event/event_id").asLong());
            final JsonNode stored = routerEvent.at("/event/data/stored");
            assertTrue(
                    stored.path("parent_hash").isNull()
                            || seen.contains(stored.path("parent_hash").asText()));
            stored.path("blocks").forEach(b -> seen.add(b.path("block_hash").asText()));
        }
        assertEquals(Set.of("101", "104", "105"), seen);
        assertEquals(
                "14643705804678351452",
                group.at("/events/0/event/data/stored/blocks/0/tokens_hash").asText());
    }

    @Test
    void aThousandRanksAreRegisteredAndOneMoreThanMayBeIsA503() throws IOException {
        ranksAreRegisteredAndOneMoreThanMayBeIsA503(1_000);
    }

    @Test
    @Tag("integration") // long
    void tenThousandRanksAreRegisteredAndOneMoreThanMayBeIsA503() throws IOException {
        ranksAreRegisteredAndOneMoreThanMayBeIsA503(10_000);
    }

    private void ranksAreRegisteredAndOneMoreThanMayBeIsA503(int ranks) throws IOException {
        final String lastInstance = Integer.toString(ranks / 10 - 1);
        final Http many =
                new Http(
                        start(IndexerConfig.of("127.0.0.1", 0).withSizes(ranks, 8, 256L << 20))
                                .port());
        final EnginePublisher engine = engine(ranks - 1);
        for (int i = 0; i < ranks; i++) {
            final String id = Integer.toString(i / 10);
            final Http.Answer answer =
                    many.post("/register", registration(id, engine, ",\"dp_rank\":" + i));
            assertEquals(201, answer.status(), answer::text);
        }
        assertEquals(ranks / 10, many.get("/workers").json().size());
        assertEquals(503, many.post("/register", registration("5000", engine, "")).status());
        engine.awaitSubscriber();
        Eventually.holds( // all ranks share the connection, and the last ones may join it late
                () -> {
                    engine.stored(null, List.of(101L), 1, 2, 3, 4);
                    final String last = Integer.toString(ranks - 1);
                    return query(many, PROMPT).path("scores").path(lastInstance).path(last).asInt()
                            == 4;
                });
        assertTrue(
                many.get("/metrics")
                        .text()
                        .contains("dynamo_kvindexer_listeners{status=\"active\"} " + ranks));
        assertEquals(
                200, many.post("/unregister", "{\"instance_id\":3,\"model_name\":\"m\"}").status());
        Eventually.holds(
                () -> many.post("/register", registration("5000", engine, "")).status() == 201);
    }

    @Test
    void asManyModelsAsMayBeAndNoMore() {
        for (int i = 0; i < 8; i++) {
            assertEquals(
                    201,
                    http.post(
                                    "/register",
                                    registration(
                                            "" + i,
                                            UNUSED_ENDPOINT,
                                            ",\"routing_group\":\"g" + i + "\""))
                            .status());
        }
        assertEquals(503, http.post("/register", registration("9", UNUSED_ENDPOINT, "")).status());
        assertEquals(
                200, http.post("/unregister", "{\"instance_id\":3,\"model_name\":\"m\"}").status());
        assertEquals(201, http.post("/register", registration("9", UNUSED_ENDPOINT, "")).status());
        assertTrue(http.get("/metrics").text().contains("dynamo_kvindexer_models 8"));
    }

    @Test
    void theDumpOfThePeerThatAnswersIsLoadedAtTheStart() throws IOException {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber().stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        awaitTokens(http, "1", "0", 8);
        final Http late =
                new Http(
                        start(
                                        config().withPeers(
                                                        List.of(
                                                                URI.create("http://127.0.0.1:9"),
                                                                http.url("/"))))
                                .port());
        awaitTokens(late, "1", "0", 8);
        assertEquals("[]", late.get("/workers").text());
        assertEquals(2, late.get("/peers").json().size());
        final String replay = ",\"replay_endpoint\":\"" + UNUSED_ENDPOINT + "\"";
        assertEquals(400, late.post("/register", registration("1", "nonsense", replay)).status());
        // its engine goes on in the middle of its life: what the peer knew stays
        assertEquals(201, late.post("/register", registration("1", engine, "")).status());
        engine.awaitSubscriber().at(9).stored(102L, List.of(103L), 9, 10, 11, 12);
        awaitTokens(late, "1", "0", 12);
        engine.removed(102L);
        awaitTokens(late, "1", "0", 4);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInstanceThatGoesTakesNothingOfOthersThatOnlyAPeerKnewWithIt(boolean isRegistered)
            throws IOException {
        for (String id : List.of("1", "2")) {
            final EnginePublisher engine = engine(0);
            register(id, engine, "");
            engine.awaitSubscriber().stored(null, List.of(101L), 1, 2, 3, 4);
            awaitTokens(http, id, "0", 4);
        }
        final Http late = new Http(start(config().withPeers(List.of(http.url("/")))).port());
        awaitTokens(late, "1", "0", 4);
        awaitTokens(late, "2", "0", 4);
        if (isRegistered) {
            final String registration = registration("1", UNUSED_ENDPOINT, "");
            assertEquals(201, late.post("/register", registration).status());
        }
        final String gone = "{\"instance_id\":%s,\"model_name\":\"m\"}";
        assertEquals(200, late.post("/unregister", gone.formatted("1")).status());
        assertEquals(Http.json("{\"2\":{\"0\":4}}"), query(late, PROMPT).path("scores"));
        assertEquals(200, late.post("/unregister", gone.formatted("2")).status());
        assertEquals(
                404,
                late.post("/query", "{\"model_name\":\"m\",\"token_ids\":[1]}").status(),
                "the last one ends the index");
    }

    @Test
    void whatAPeerKnewOfAnEngineThatHasBegunAnewIsCleared() throws IOException {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber().stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        awaitTokens(http, "1", "0", 8);
        final Http late = new Http(start(config().withPeers(List.of(http.url("/")))).port());
        awaitTokens(late, "1", "0", 8);
        final EnginePublisher next = engine(0);
        assertEquals(201, late.post("/register", registration("1", next, "")).status());
        next.awaitSubscriber().stored(null, List.of(7L), 5, 5, 5, 5);
        Eventually.holds(() -> query(late, PROMPT).path("scores").isEmpty());
        Eventually.holds(() -> query(late, "[5,5,5,5]").at("/scores/1/0").asInt() == 4);
    }

    @Test
    void aPeerThatTalksNonsenseDelaysTheStartAndNoMore() throws IOException {
        try (ServerSocket nonsense = new ServerSocket(0)) {
            Thread.ofVirtual().start(() -> talkNonsense(nonsense));
            final URI peer = URI.create("http://127.0.0.1:" + nonsense.getLocalPort());
            final Http late = new Http(start(config().withPeers(List.of(peer))).port());
            assertEquals("{}", late.get("/dump").text());
        }
    }

    private static void talkNonsense(ServerSocket port) {
        try (Socket client = port.accept()) {
            client.getOutputStream()
                    .write(
                            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"m:x\":[1"
                                    .getBytes(StandardCharsets.US_ASCII));
            client.getInputStream().transferTo(OutputStream.nullOutputStream());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void enginesOfTheConfigurationAreRegisteredAtTheStart() throws IOException {
        final EnginePublisher engine = engine(1);
        final Http other =
                new Http(
                        start(
                                        config().withWorkers(
                                                        InitialWorker.parse(
                                                                "3:1="
                                                                        + engine.endpoint()
                                                                        + ",4="
                                                                        + UNUSED_ENDPOINT,
                                                                "m",
                                                                "default",
                                                                4)))
                                .port());
        assertEquals(2, other.get("/workers").json().size());
        engine.awaitSubscriber().stored(null, List.of(101L), 1, 2, 3, 4);
        awaitTokens(other, "3", "1", 4);
    }

    @Test
    void peersAreListedOnceAndTakenOut() {
        assertEquals(201, http.post("/register_peer", "{\"url\":\"http://p:1\"}").status());
        assertEquals(201, http.post("/register_peer", "{\"url\":\"http://p:1\"}").status());
        assertEquals("[\"http://p:1\"]", http.get("/peers").text());
        assertEquals(200, http.post("/deregister_peer", "{\"url\":\"http://p:1\"}").status());
        assertEquals("[]", http.get("/peers").text());
    }

    /** Every answer is whole, or says that the service ends, or there is none. */
    @Test
    void closingWhileItIsAskedEndsTheQuestions() throws Exception {
        final EnginePublisher engine = engine(0);
        register("1", engine, "");
        engine.awaitSubscriber().stored(null, List.of(101L), 1, 2, 3, 4);
        awaitTokens(http, "1", "0", 4);
        final AtomicBoolean ended = new AtomicBoolean();
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        final List<Thread> asking = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            final boolean dumps = i == 0;
            asking.add(
                    Thread.ofVirtual()
                            .start(
                                    () -> {
                                        while (!ended.get()) {
                                            ask(dumps, wrong);
                                        }
                                    }));
        }
        for (int i = 0; i < 20; i++) {
            query(PROMPT);
        }
        service.close();
        ended.set(true);
        for (Thread thread : asking) {
            thread.join(60_000);
            assertFalse(thread.isAlive());
        }
        assertEquals(List.of(), List.copyOf(wrong));
    }

    private void ask(boolean dumps, ConcurrentLinkedQueue<String> wrong) {
        try {
            final Http.Answer answer =
                    dumps
                            ? http.get("/dump")
                            : http.post(
                                    "/query",
                                    "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + "}");
            final boolean whole =
                    answer.status() == 200
                            && (dumps || answer.json().at("/scores/1/0").asInt() == 4);
            if (!whole && answer.status() != 503 && answer.status() != 404) {
                wrong.add(answer.toString());
            }
        } catch (UncheckedIOException e) {
            // the connection was closed
        }
    }
}
