package io.kvasir.services;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.services.indexer.IndexerConfig;
import io.kvasir.services.indexer.IndexerService;
import io.kvasir.services.select.SelectConfig;
import io.kvasir.services.select.SelectService;
import io.kvasir.services.slots.SlotsConfig;
import io.kvasir.services.slots.SlotsService;
import io.kvasir.services.testing.EnginePublisher;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.DynamoService;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;

/** Dynamo's services and ours get the same calls and must give the same answers. */
@Tag("integration") // fetches a Python package
class DynamoServicesTest {
    private static final String PROMPT = "[1,2,3,4,5,6,7,8,9,10,11,12]";

    @TempDir private Path folder;
    private String pythonPath;

    @BeforeEach
    void findPackage() {
        try {
            pythonPath = DynamoService.pythonPath();
        } catch (IOException e) {
            assumeTrue(false, "no Dynamo package: " + e);
        }
    }

    /** Sends a call to both; answers the status and what ours says. */
    private static void same(Http theirs, Http ours, String path, String body) {
        final Http.Answer expected = body == null ? theirs.get(path) : theirs.post(path, body);
        final Http.Answer found = body == null ? ours.get(path) : ours.post(path, body);
        assertEquals(expected.status(), found.status(), path + " " + body + ": " + found);
        if (expected.status() < 300 && !expected.text().isEmpty()) {
            assertEquals(plain(expected.json()), plain(found.json()), path + " " + body);
        } else if (expected.status() < 300) {
            assertEquals(expected.text(), found.text());
        }
    }

    /** Lists of workers are in no order; what ours says beyond the others' is left out. */
    private static Object plain(JsonNode answer) {
        if (!answer.isArray() || answer.isEmpty() || !answer.get(0).has("listeners")) {
            return answer;
        }
        final TreeMap<String, JsonNode> byId = new TreeMap<>();
        for (JsonNode worker : answer) {
            for (JsonNode listener : worker.path("listeners")) {
                ((ObjectNode) listener).retain("endpoint", "status");
            }
            byId.put(worker.path("instance_id").asText(), worker);
        }
        return byId;
    }

    private static String registration(long id, String endpoint, String more) {
        return "{\"instance_id\":"
                + Long.toUnsignedString(id)
                + ",\"endpoint\":\""
                + endpoint
                + "\",\"model_name\":\"m\",\"block_size\":4"
                + more
                + "}";
    }

    private static void awaitTokens(Http http, String id, int tokens) {
        Eventually.holds(
                () ->
                        http.post("/query", "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + "}")
                                        .json()
                                        .path("instances")
                                        .path(id)
                                        .path("gpu")
                                        .asInt()
                                == tokens);
    }

    @Test
    void anIndexerAnswersAsDynamosDoes() throws Exception {
        try (DynamoService dynamo = DynamoService.of(pythonPath, "dynamo.indexer", folder);
                IndexerService service = new IndexerService(IndexerConfig.of("127.0.0.1", 0));
                EnginePublisher engine = new EnginePublisher(0);
                EnginePublisher rank = new EnginePublisher(1)) {
            dynamo.start();
            service.start();
            final Http theirs = new Http(dynamo.port());
            final Http ours = new Http(service.port());
            for (String path : List.of("/health", "/workers", "/dump", "/peers", "/nowhere")) {
                same(theirs, ours, path, null);
            }
            same(theirs, ours, "/query", "{\"token_ids\":[1,2,3,4],\"model_name\":\"m\"}");
            for (String body :
                    List.of(
                            "{",
                            "{\"instance_id\":3,\"model_name\":\"m\",\"block_size\":4}",
                            registration(1, engine.endpoint(), ""),
                            registration(1, engine.endpoint(), ""),
                            registration(1, rank.endpoint(), ",\"dp_rank\":1"),
                            registration(1, rank.endpoint(), ",\"routing_group\":\"g\""),
                            registration(2, "nonsense", ""),
                            registration(2, "tcp://127.0.0.1", ""),
                            registration(-1, engine.endpoint(), ",\"unknown\":1"),
                            registration(3, engine.endpoint(), "").replace(":4}", ":8}"))) {
                same(theirs, ours, "/register", body);
            }
            // each of the two indexers has two subscriptions to it at most
            engine.awaitSubscriber();
            rank.awaitSubscriber();
            Eventually.holds(() -> republished(engine, rank, theirs, ours));
            same(theirs, ours, "/workers", null);
            same(theirs, ours, "/workers?model_name=m", null);
            same(theirs, ours, "/workers?model_name=absent", null);
            for (String tokens : List.of(PROMPT, "[1,2,3,4,5,6,7,8,9]", "[9,9,9,9]", "[1]", "[]")) {
                same(theirs, ours, "/query", "{\"model_name\":\"m\",\"token_ids\":" + tokens + "}");
            }
            for (String more :
                    List.of(
                            ",\"lora_name\":\"l\"",
                            ",\"cache_salt\":\"s\"",
                            ",\"lora_name\":\"\",\"cache_salt\":\"\"",
                            ",\"routing_group\":\"g\"")) {
                same(
                        theirs,
                        ours,
                        "/query",
                        "{\"model_name\":\"m\",\"token_ids\":[1,2,3,4]" + more + "}");
            }
            final String hashes = "[-3803038269031200164,-1669731304162740404]";
            for (String body :
                    List.of(
                            "{\"model_name\":\"m\",\"block_hashes\":" + hashes + "}",
                            "{\"model_name\":\"m\",\"block_hashes\":[]}",
                            "{\"model_name\":\"m\",\"block_hashes\":[14643705804678351452]}",
                            "{\"model_name\":\"m\",\"block_hashes\":[1],\"cache_salt\":\"\"}",
                            "{\"model_name\":\"absent\",\"block_hashes\":[1]}")) {
                same(theirs, ours, "/query_by_hash", body);
            }
            same(theirs, ours, "/register_peer", "{\"url\":\"http://127.0.0.1:9\"}");
            same(theirs, ours, "/register_peer", "{}");
            same(theirs, ours, "/peers", null);
            same(theirs, ours, "/deregister_peer", "{\"url\":\"http://127.0.0.1:9\"}");
            same(theirs, ours, "/deregister_peer", "{\"url\":\"http://127.0.0.1:9\"}");
            exchangeDumps(dynamo, ours);
            for (String body :
                    List.of(
                            "{\"instance_id\":1,\"model_name\":\"absent\"}",
                            "{\"instance_id\":1,\"model_name\":\"m\",\"routing_group\":\"g\"}",
                            "{\"instance_id\":1}",
                            "{\"instance_id\":1,\"model_name\":\"m\"}",
                            "{\"instance_id\":1,\"model_name\":\"m\"}")) {
                same(theirs, ours, "/unregister", body);
            }
            same(theirs, ours, "/query", "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + "}");
        }
    }

    /**
     * Both indexers connect to a publisher at moments of their own: it sends all again until both
     * have it.
     */
    private static boolean republished(
            EnginePublisher engine, EnginePublisher rank, Http theirs, Http ours) {
        engine.stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        engine.stored(102L, List.of(-3L), 9, 10, 11, 12);
        engine.stored(101L, List.of(103L), 9, 10, 11, 12);
        rank.stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        final String query = "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + "}";
        final JsonNode expected = theirs.post("/query", query).json().path("scores");
        return expected.at("/1/0").asInt() == 12
                && expected.at("/1/1").asInt() == 8
                && expected.at("/18446744073709551615/0").asInt() == 12
                && ours.post("/query", query).json().path("scores").equals(expected);
    }

    /** Each loads the other's dump when it starts, and then answers what the other does. */
    private void exchangeDumps(DynamoService dynamo, Http ours) throws Exception {
        final String id = "18446744073709551615";
        try (IndexerService late =
                        new IndexerService(
                                IndexerConfig.of("127.0.0.1", 0)
                                        .withPeers(
                                                List.of(
                                                        URI.create(
                                                                "http://127.0.0.1:"
                                                                        + dynamo.port()))));
                DynamoService lateDynamo =
                        DynamoService.of(
                                pythonPath,
                                "dynamo.indexer",
                                folder,
                                "--peers",
                                ours.url("").toString())) {
            late.start();
            awaitTokens(new Http(late.port()), id, 12);
            lateDynamo.start();
            awaitTokens(new Http(lateDynamo.port()), id, 12);
            same(
                    new Http(lateDynamo.port()),
                    new Http(late.port()),
                    "/query",
                    "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + "}");
        }
    }

    @Test
    void aSlotTrackerAnswersAsDynamosDoes() throws Exception {
        try (DynamoService dynamo = DynamoService.of(pythonPath, "dynamo.slot_tracker", folder);
                SlotsService service = new SlotsService(SlotsConfig.of("127.0.0.1", 0))) {
            dynamo.start();
            service.start();
            final Http theirs = new Http(dynamo.port());
            final Http ours = new Http(service.port());
            for (String[] call : SLOT_CALLS) {
                same(theirs, ours, call[0], call.length == 1 ? null : call[1]);
            }
        }
    }

    @Test
    void aSelectServiceAnswersAsDynamosDoes() throws Exception {
        try (DynamoService dynamo = DynamoService.of(pythonPath, "dynamo.select_service", folder);
                SelectService service = new SelectService(SelectConfig.of("127.0.0.1", 0));
                EnginePublisher engine = new EnginePublisher(0)) {
            dynamo.start();
            service.start();
            final Http theirs = new Http(dynamo.port());
            final Http ours = new Http(service.port());
            for (String[] call : SELECT_CALLS) {
                sameSelect(theirs, ours, call, engine);
            }
        }
    }

    /** Method, path and body; the address of an engine stands for ENGINE. */
    private static void sameSelect(Http theirs, Http ours, String[] call, EnginePublisher engine) {
        final String body = call.length < 3 ? null : call[2].replace("ENGINE", engine.endpoint());
        final Http.Answer expected = send(theirs, call[0], call[1], body);
        final Http.Answer found = send(ours, call[0], call[1], body);
        final String what = String.join(" ", call) + ": " + expected + " " + found;
        assertEquals(expected.status(), found.status(), what);
        if (expected.status() < 300) {
            assertEquals(withoutRandomId(expected), withoutRandomId(found), what);
        }
    }

    private static Http.Answer send(Http to, String method, String path, String body) {
        return switch (method) {
            case "GET" -> to.get(path);
            case "PATCH" -> to.patch(path, body);
            case "DELETE" -> to.delete(path);
            default -> to.post(path, body);
        };
    }

    private static JsonNode withoutRandomId(Http.Answer answer) {
        final JsonNode json = answer.json();
        if (json instanceof ObjectNode object && json.path("selection_id").asText().length() > 30) {
            object.put("selection_id", "random");
        }
        return json;
    }

    private static final String[][] SELECT_CALLS = {
        {"GET", "/health"},
        {"GET", "/ready"},
        {"GET", "/workers"},
        {"GET", "/loads"},
        {"GET", "/dump"},
        {"GET", "/nowhere"},
        {"POST", "/select", "{\"model_name\":\"m\",\"token_ids\":[1,2,3,4]}"},
        {"POST", "/workers", "{"},
        {"POST", "/workers", "{}"},
        {"POST", "/workers", "{\"worker_id\":9}"},
        {"POST", "/workers", "{\"worker_id\":8,\"model_name\":\"m\",\"block_size\":0}"},
        {
            "POST",
            "/workers",
            "{\"worker_id\":1,\"model_name\":\"m\",\"endpoint\":\"http://a:1\",\"block_size\":4}"
        },
        {"PATCH", "/workers/1", "{\"endpoint\":\"http://b:1\"}"},
        {"PATCH", "/workers/1", "{\"kv_events_endpoints\":{\"0\":\"ENGINE\"}}"},
        {"PATCH", "/workers/77", "{}"},
        {"GET", "/ready"},
        {"GET", "/workers"},
        {"GET", "/workers?model_name=x"},
        {"POST", "/select", "{\"model_name\":\"m\",\"token_ids\":[1,2,3,4,5,6,7,8]}"},
        {"POST", "/select", "{\"model_name\":\"x\",\"token_ids\":[1,2,3,4,5,6,7,8]}"},
        {"POST", "/select", "{\"model_name\":\"m\"}"},
        {"POST", "/select", "{\"model_name\":\"m\",\"token_ids\":[]}"},
        {"POST", "/select", "{\"model_name\":\"m\",\"token_ids\":[1,2]}"},
        {"POST", "/select", "{\"model_name\":\"m\",\"token_ids\":[\"a\"]}"},
        {
            "POST",
            "/select",
            "{\"model_name\":\"m\",\"block_hashes\":[1,2],\"sequence_hashes\":[1,2],\"isl_tokens\":9}"
        },
        {
            "POST",
            "/select",
            "{\"model_name\":\"m\",\"block_hashes\":[1,2],\"sequence_hashes\":[1],\"isl_tokens\":9}"
        },
        {"POST", "/select", "{\"model_name\":\"m\",\"block_hashes\":[1],\"isl_tokens\":9}"},
        {"POST", "/select", ask("s")},
        {"POST", "/select_and_reserve", ask("r1")},
        {"POST", "/select_and_reserve", ask("r1")},
        {"POST", "/select_and_reserve", "{\"model_name\":\"m\",\"token_ids\":[1,2,3,4,5,6,7,8,9]}"},
        {"GET", "/loads"},
        {"GET", "/loads?model_name=x"},
        {"POST", "/potential_loads", ask("x")},
        {"POST", "/overlap_scores", ask("x")},
        {"POST", "/reservations", "{\"model_name\":\"m\",\"selection_id\":\"s\"}"},
        {"POST", "/reservations", "{\"model_name\":\"m\",\"selection_id\":\"s\"}"},
        {"POST", "/reservations", reservation("q", 1, 0, "")},
        {"POST", "/reservations", reservation("q", 1, 0, "")},
        {"POST", "/reservations", reservation("q2", 1, 0, ",\"effective_prefill_tokens\":3")},
        {"POST", "/reservations", reservation("q3", 1, 0, ",\"effective_prefill_tokens\":30")},
        {"POST", "/reservations", reservation("q3", 99, 0, "")},
        {"POST", "/reservations", reservation("q3", 1, 7, "")},
        {"GET", "/loads"},
        {"POST", "/reservations/r1/prefill_complete", "{}"},
        {"POST", "/reservations/nope/prefill_complete", "{}"},
        {"POST", "/reservations/r1/output_block", "{}"},
        {"POST", "/reservations/r1/output_block", "{\"decay_fraction\":5}"},
        {"POST", "/reservations/nope/output_block", "{}"},
        {"GET", "/loads"},
        {"DELETE", "/reservations/r1"},
        {"DELETE", "/reservations/r1"},
        {"GET", "/reservations"},
        {"GET", "/loads"},
        {"GET", "/replica_sync/peers"},
        {"POST", "/replica_sync/register_peer", "{\"endpoint\":\"tcp://a:1\"}"},
        {"DELETE", "/workers/99"},
        {"DELETE", "/workers/abc"},
        {"DELETE", "/workers/1"},
        {"GET", "/ready"},
        {"DELETE", "/reservations/q"}
    };

    private static String ask(String id) {
        return "{\"selection_id\":\""
                + id
                + "\",\"model_name\":\"m\",\"token_ids\":[1,2,3,4,5,6,7,8,9]}";
    }

    private static String reservation(String id, long worker, int dpRank, String more) {
        return "{\"selection_id\":\""
                + id
                + "\",\"model_name\":\"m\",\"worker_id\":"
                + worker
                + ",\"dp_rank\":"
                + dpRank
                + ",\"sequence_hashes\":[5,6],\"isl_tokens\":9"
                + more
                + "}";
    }

    private static final String[][] SLOT_CALLS = {
        {"/health"},
        {"/workers"},
        {"/loads"},
        {"/nowhere"},
        {"/replica_sync/peers"},
        {"/replica_sync/register_peer", "{\"endpoint\":\"tcp://127.0.0.1:1\"}"},
        {"/replica_sync/register_peer", "{}"},
        {"/register", worker(7, 4, 0, 1)},
        {"/register", worker(7, 4, 0, 1)},
        {"/register", worker(8, 8, 0, 1)},
        {"/register", worker(8, 0, 0, 1)},
        {"/register", worker(8, 4, 0, 0)},
        {"/register", worker(8, 4, 4_294_967_295L, 1)},
        {"/register", worker(9, 4, 2, 2)},
        {"/register", worker(-1, 4, 0, 1).replace("}", ",\"routing_group\":\"g2\"}")},
        {"/register", "{\"worker_id\":-1,\"model_name\":\"m\",\"block_size\":4}"},
        {"/register", "{"},
        {"/register", "[]"},
        {"/register", ""},
        {"/workers"},
        {"/workers?model_name=m"},
        {"/workers?model_name=m&routing_group=g2"},
        {"/add", request("r1", 7, 0, "[11,12]", 8)},
        {
            "/potential_loads",
            "{\"model_name\":\"m\",\"sequence_hashes\":[11,13],\"isl_tokens\":9,"
                    + "\"new_isl_tokens\":9}"
        },
        {"/add", request("r1", 7, 0, "[11,12]", 8)},
        {"/add", request("r1", 9, 2, "[11,12]", 8)},
        {"/add", request("r2", 77, 0, "[11,12]", 8)},
        {"/add", request("r2", 7, 5, "[11,12]", 8)},
        {"/add", request("r3", 7, 0, "[-11,18446744073709551605]", 8)},
        {"/add", request("r3", 7, 0, "[-11]", -8)},
        {"/add", request("r3", 7, 0, "[-11]", 0)},
        {"/add", request("r5", 9, 3, "[11,12,14]", 12)},
        {"/add", request("", 7, 0, "[]", 3)},
        {"/loads"},
        {"/loads?model_name=m&routing_group=default"},
        {"/potential_loads", "{\"model_name\":\"m\",\"sequence_hashes\":[11,12,14,15]}"},
        {"/potential_loads", "{\"model_name\":\"m\",\"sequence_hashes\":[12]}"},
        {"/potential_loads", "{\"model_name\":\"m\",\"sequence_hashes\":[]}"},
        {"/potential_loads", "{\"model_name\":\"absent\",\"sequence_hashes\":[]}"},
        {"/prefill_complete", "{\"request_id\":\"r1\",\"model_name\":\"m\"}"},
        {"/prefill_complete", "{\"request_id\":\"r1\",\"model_name\":\"m\"}"},
        {"/prefill_complete", "{\"request_id\":\"nope\",\"model_name\":\"m\"}"},
        {"/loads"},
        {"/free", "{\"request_id\":\"r1\",\"model_name\":\"m\"}"},
        {"/free", "{\"request_id\":\"r1\",\"model_name\":\"m\"}"},
        {"/free", "{\"request_id\":\"r1\",\"model_name\":\"absent\"}"},
        {"/loads"},
        {"/unregister", "{\"worker_id\":7,\"model_name\":\"m\"}"},
        {"/unregister", "{\"worker_id\":7,\"model_name\":\"m\"}"},
        {"/unregister", "{\"worker_id\":9,\"model_name\":\"absent\"}"},
        {"/unregister", "{\"worker_id\":9,\"model_name\":\"m\"}"},
        {"/workers"},
        {"/add", request("r1", 7, 0, "[11,12]", 8)},
        {"/register", worker(7, 8, 0, 1)},
        {"/loads"}
    };

    private static String worker(long id, int blockSize, long firstRank, int ranks) {
        return "{\"worker_id\":"
                + Long.toUnsignedString(id)
                + ",\"model_name\":\"m\",\"block_size\":"
                + blockSize
                + ",\"dp_start\":"
                + firstRank
                + ",\"dp_size\":"
                + ranks
                + "}";
    }

    private static String request(String id, long worker, int dpRank, String hashes, int tokens) {
        return "{\"request_id\":\""
                + id
                + "\",\"worker_id\":"
                + worker
                + ",\"dp_rank\":"
                + dpRank
                + ",\"model_name\":\"m\",\"sequence_hashes\":"
                + hashes
                + ",\"new_isl_tokens\":"
                + tokens
                + "}";
    }
}
