package io.kvasir.services.select;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.router.settings.SessionMode;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.services.indexer.IndexerConfig;
import io.kvasir.services.indexer.IndexerService;
import io.kvasir.services.slots.SlotsConfig;
import io.kvasir.services.testing.EnginePublisher;
import io.kvasir.services.testing.Http;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CountDownLatch;

class SelectServiceTest {
    private static final String PROMPT = "[1,2,3,4,5,6,7,8,9]";
    private static final String UNUSED_ENDPOINT = "tcp://127.0.0.1:9";

    private static final PendingSelections.Reservation UNRESERVED = selection -> selection;

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private Http http = start(SelectConfig.of("127.0.0.1", 0));

    private Http start(SelectConfig config) {
        final SelectService service = closing(new SelectService(config));
        try {
            service.start();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return new Http(service.port());
    }

    private <T extends AutoCloseable> T closing(T part) {
        opened.push(part);
        return part;
    }

    @AfterEach
    void closeAll() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    private static String worker(long id, String events, String more) {
        return "{\"worker_id\":"
                + Long.toUnsignedString(id)
                + ",\"model_name\":\"m\",\"endpoint\":\"http://w"
                + Long.toUnsignedString(id)
                + "\",\"block_size\":4,\"kv_events_endpoint\":\""
                + events
                + "\""
                + more
                + "}";
    }

    private void name(long id, String events, String more) {
        final Http.Answer answer = http.post("/workers", worker(id, events, more));
        assertEquals(201, answer.status(), answer::text);
        assertEquals("schedulable", answer.json().path("lifecycle").asText(), answer::text);
    }

    @Test
    void whatLiesInSharedStorageIsLoadedInPartByEveryRank() {
        final EnginePublisher engine = closing(new EnginePublisher(0));
        name(1, engine.endpoint(), "");
        name(2, UNUSED_ENDPOINT, "");
        engine.awaitSubscriber();
        engine.in("EXTERNAL").stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        // a quarter of 8 tokens counts as cached: 9 - 2
        Eventually.holds(
                () ->
                        posted(200, "/select", ask("")).path("effective_prefill_tokens").asInt()
                                == 7);
        final JsonNode scores = posted(200, "/overlap_scores", ask(""));
        assertEquals(2, scores.at("/workers/0/shared_beyond_device_blocks").asInt());
        assertEquals(2, scores.at("/workers/1/shared_beyond_device_blocks").asInt());
        assertEquals(2, scores.at("/shared_cache/total_hit_blocks").asInt());
        assertEquals(8, posted(200, "/select", ask("")).at("/overlap/longest_matched").asInt());
    }

    private static String ask(String more) {
        return "{\"model_name\":\"m\",\"token_ids\":" + PROMPT + more + "}";
    }

    private JsonNode posted(int status, String path, String body) {
        final Http.Answer answer = http.post(path, body);
        assertEquals(status, answer.status(), answer::text);
        return answer.json();
    }

    @Test
    void aWorkerIsUsedOnceAllIsSaidThatItNeeds() {
        assertEquals(503, http.get("/ready").status());
        assertEquals(
                "[\"endpoint is required\",\"block_size must be greater than 0\","
                        + "\"kv_events endpoint is required for dp_rank 0\"]",
                posted(201, "/workers", "{\"worker_id\":18446744073709551615}")
                        .path("not_schedulable_reasons")
                        .toString());
        assertEquals(503, http.get("/ready").status());
        posted(503, "/select", "{\"token_ids\":[1]}");
        final String path = "/workers/18446744073709551615";
        http.patch(path, "{\"endpoint\":\"http://w\",\"block_size\":4}");
        final Http.Answer whole =
                http.patch(path, "{\"kv_events_endpoints\":{\"0\":\"" + UNUSED_ENDPOINT + "\"}}");
        assertEquals("schedulable", whole.json().path("lifecycle").asText(), whole::text);
        assertEquals(200, http.get("/ready").status());
        posted(200, "/select", "{\"token_ids\":[1]}");
        http.patch(path, "{\"kv_events_endpoints\":{}}");
        posted(503, "/select", "{\"token_ids\":[1]}");
        assertEquals("unschedulable", http.delete(path).json().path("lifecycle").asText());
        assertEquals(404, http.delete(path).status());
        assertEquals("[]", http.get("/workers").text());
    }

    @Test
    void theWorkerThatHoldsTheLongestPrefixIsChosenUntilItsLoadIsDearer() {
        final EnginePublisher engine = closing(new EnginePublisher(0));
        name(1, UNUSED_ENDPOINT, "");
        name(2, engine.endpoint(), "");
        engine.awaitSubscriber().stored(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8);
        Eventually.holds(() -> posted(200, "/select", ask("")).at("/overlap/gpu").asInt() == 8);
        final JsonNode first = posted(200, "/select_and_reserve", ask(",\"selection_id\":\"a\""));
        assertEquals(2, first.path("worker_id").asInt());
        assertEquals(1, first.path("effective_prefill_tokens").asInt());
        assertEquals(
                "[-3803038269031200164,4945711292740353085]",
                first.path("sequence_hashes").toString());
        // 9 tokens that are not shared cost less on the idle worker
        final JsonNode other =
                posted(200, "/select", "{\"model_name\":\"m\",\"token_ids\":[7,7,7,7,7,7,7,7,7]}");
        assertEquals(1, other.path("worker_id").asInt());
        final JsonNode scores = posted(200, "/overlap_scores", ask(""));
        assertEquals(2, scores.at("/workers/1/device_blocks").asInt(), scores::toString);
        assertEquals(2, scores.path("num_blocks").asInt());
        assertTrue(http.get("/dump").text().contains("m:default"));
    }

    @Test
    void anEngineThatDraftsWithEagleIsChosenForWhatItHolds() throws Exception {
        final EnginePublisher engine = closing(new EnginePublisher(0));
        final IndexerService indexer =
                closing(new IndexerService(IndexerConfig.of("127.0.0.1", 0)));
        indexer.start();
        final Http index = new Http(indexer.port());
        index.post(
                "/register",
                "{\"instance_id\":2,\"model_name\":\"m\",\"block_size\":4,\"endpoint\":\""
                        + engine.endpoint()
                        + "\"}");
        name(1, UNUSED_ENDPOINT, "");
        name(2, engine.endpoint(), "");
        engine.awaitSubscriber().awaitSubscriber();
        engine.storedInPairs(null, List.of(101L, 102L), 1, 2, 3, 4, 5, 6, 7, 8, 9);
        Eventually.holds(() -> index.post("/query", ask("")).json().at("/scores/2/0").asInt() == 8);
        Eventually.holds(() -> posted(200, "/select", ask("")).at("/overlap/gpu").asInt() == 8);
        final JsonNode chosen = posted(200, "/select", ask(""));
        assertEquals(2, chosen.path("worker_id").asInt());
        assertEquals(1, chosen.path("effective_prefill_tokens").asInt());
        final JsonNode scores = posted(200, "/overlap_scores", ask(""));
        assertEquals(2, scores.at("/workers/1/device_blocks").asInt(), scores::toString);
        final String shorter = ask("").replace(",9]", "]"); // the last block lacks its next token
        assertEquals(4, index.post("/query", shorter).json().at("/scores/2/0").asInt());
        assertEquals(4, posted(200, "/select", shorter).at("/overlap/gpu").asInt());
    }

    @ParameterizedTest
    @CsvSource({
        "a b, a%20b",
        "a/b, a%2Fb",
        "/, %2f",
        "a%b, a%25b",
        "a%2Fb, a%252Fb",
        "., %2E",
        ".., %2e%2e",
        "../workers/1, ..%2Fworkers%2F1",
        "a;b, a%3Bb",
        "a;b, a;b",
        "a+b?c#d, a+b%3Fc%23d",
        "{}, %7B%7D",
        "\\\\\\n\u007f, %5C%0A%7F",
        "\u00e4\uD83D\uDE00, %C3%A4%F0%9F%98%80"
    })
    void aReservationCountsUntilItEnds(String id, String inPath) {
        name(1, UNUSED_ENDPOINT, "");
        final String path = "/reservations/" + inPath;
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"" + id + "\""));
        posted(409, "/select_and_reserve", ask(",\"selection_id\":\"" + id + "\""));
        assertEquals(load(9, 2, 1), http.get("/loads").text());
        assertEquals(200, http.post(path + "/prefill_complete", "").status());
        assertEquals(200, http.post(path + "/output_block", "{}").status());
        assertEquals(400, http.post(path + "/output_block", "{\"decay_fraction\":1.5}").status());
        assertEquals(load(0, 3, 1), http.get("/loads").text());
        assertEquals(200, http.delete(path).status());
        assertEquals(404, http.delete(path).status());
        assertEquals(load(0, 0, 0), http.get("/loads").text());
        assertEquals("[]", http.get("/loads?model_name=other").text());
    }

    @Test
    void outputAndThePromptsOwnBlocksDecayAndSharedOnesDoNot() {
        name(1, UNUSED_ENDPOINT, "");
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"a\""));
        final String half = "{\"decay_fraction\":0.5}";
        assertEquals(200, http.post("/reservations/a/output_block", half).status());
        assertEquals(load(9, 2, 1), http.get("/loads").text(), "3 blocks at a half, rounded");
        assertEquals(200, http.post("/reservations/a/output_block", "{}").status());
        assertEquals(load(9, 3, 1), http.get("/loads").text(), "a further one as a whole");
        assertEquals(
                200, http.post("/reservations/a/output_block", "{\"decay_fraction\":0}").status());
        assertEquals(load(9, 0, 1), http.get("/loads").text());
        assertEquals(200, http.delete("/reservations/a").status());
        assertEquals(load(0, 0, 0), http.get("/loads").text());

        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"b\""));
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"c\""));
        assertEquals(
                200, http.post("/reservations/b/output_block", "{\"decay_fraction\":0}").status());
        assertEquals(load(18, 2, 2), http.get("/loads").text(), "c has the prompt, too");
        http.delete("/reservations/b");
        assertEquals(load(9, 2, 1), http.get("/loads").text());
    }

    @ParameterizedTest
    @CsvSource({"HARD, true, true", "SOFT, true, false"})
    void aSessionStaysWithItsWorker(SessionMode mode, boolean nearlyIdle, boolean loaded) {
        http = start(SelectConfig.of("127.0.0.1", 0).withSessions(Duration.ofMinutes(10), mode));
        for (int id = 1; id <= 3; id++) {
            name(id, UNUSED_ENDPOINT, "");
        }
        final String session = ",\"session_id\":\"s\"";
        final int mine = reserve("first", session);
        assertEquals(nearlyIdle, stays(mine, session));
        for (int i = 0; i < 4; i++) {
            final String only = ",\"allowed_worker_ids\":[" + mine + "]";
            assertEquals(mine, reserve("more" + i, only));
        }
        assertEquals(loaded, stays(mine, session));
        final String others = session + ",\"allowed_worker_ids\":[" + (mine % 3 + 1) + "]";
        assertEquals(mine % 3 + 1, posted(200, "/select", ask(others)).path("worker_id").asInt());
        http.delete("/workers/" + mine);
        assertNotEquals(mine, posted(200, "/select", ask(session)).path("worker_id").asInt());
        posted(422, "/select", ask(",\"session_id\":\" \""));
        posted(422, "/select", ask(",\"session_id\":\"" + "x".repeat(513) + "\""));
    }

    private int reserve(String id, String more) {
        final String body = ask(",\"selection_id\":\"" + id + "\"" + more);
        return posted(200, "/select_and_reserve", body).path("worker_id").asInt();
    }

    private boolean stays(int worker, String session) {
        for (int i = 0; i < 20; i++) {
            if (posted(200, "/select", ask(session)).path("worker_id").asInt() != worker) {
                return false;
            }
        }
        return true;
    }

    private static String load(int tokens, int blocks, int requests) {
        return "[{\"model_name\":\"m\",\"routing_group\":\"default\",\"loads\":[{\"worker_id\":1,"
                + "\"dp_rank\":0,\"potential_prefill_tokens\":"
                + tokens
                + ",\"potential_decode_blocks\":"
                + blocks
                + ",\"active_requests\":"
                + requests
                + "}],\"pending_count\":0,\"pending_isl_tokens\":0}]";
    }

    private static String wanted(String constraints) {
        return ask(",\"routing_constraints\":" + constraints);
    }

    @Test
    void aPromptGetsAWorkerWithTheTaintsThatItRequiresOrPrefers() {
        name(1, UNUSED_ENDPOINT, ",\"taints\":[\"spot\"],\"topology_domains\":{\"zone\":\"a\"}");
        name(2, UNUSED_ENDPOINT, ",\"topology_domains\":{\"zone\":\"b\"}");
        for (int i = 0; i < 10; i++) {
            for (String one :
                    List.of(
                            "{\"required_taints\":[\"spot\"]}",
                            "{\"required_taints\":[\"spot\",\"dynamo.topology/zone=a\"]}",
                            "{\"preferred_taints\":{\"spot\":0.5}}",
                            "{\"preferred_taints\":{\"dynamo.topology/zone=b\":-1}}")) {
                assertEquals(1, posted(200, "/select", wanted(one)).path("worker_id").asInt());
            }
            final String other = "{\"required_taints\":[\"dynamo.topology/zone=b\"]}";
            assertEquals(2, posted(200, "/select", wanted(other)).path("worker_id").asInt());
        }
        final String nowhere = wanted("{\"required_taints\":[\"dynamo.topology/zone=c\"]}");
        assertTrue(
                posted(503, "/select_and_reserve", nowhere)
                        .toString()
                        .contains("2 ranks lack one of the required taints"));
        posted(
                503,
                "/select",
                ask(
                        ",\"allowed_worker_ids\":[2],\"routing_constraints\":"
                                + "{\"required_taints\":[\"spot\"]}"));
        posted(200, "/select", wanted("null"));
        posted(200, "/select", wanted("{}"));
    }

    @Test
    void taintsOfAWorkerAreShownAndChangeWithoutLosingItsReservations() {
        name(1, UNUSED_ENDPOINT, ",\"taints\":[\"b\",\"a\",\"a\"]");
        assertEquals("[\"a\",\"b\"]", http.get("/workers").json().at("/0/taints").toString());
        posted(200, "/select_and_reserve", ask(""));
        final Http.Answer changed =
                http.patch("/workers/1", "{\"taints\":[],\"topology_domains\":{\"rack\":\"7\"}}");
        assertEquals("{\"rack\":\"7\"}", changed.json().path("topology_domains").toString());
        assertEquals("[]", changed.json().path("taints").toString());
        posted(503, "/select", wanted("{\"required_taints\":[\"a\"]}"));
        assertEquals(load(9, 2, 1), http.get("/loads").text());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "7",
                "[]",
                "{\"required_taints\":\"a\"}",
                "{\"required_taints\":[1]}",
                "{\"required_taints\":[\"\"]}",
                "{\"preferred_taints\":[\"a\"]}",
                "{\"preferred_taints\":{\"a\":\"b\"}}"
            })
    void constraintsThatCannotBeReadAreRefused(String constraints) {
        name(1, UNUSED_ENDPOINT, "");
        posted(422, "/select", wanted(constraints));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"taints\":7",
                "\"taints\":[1]",
                "\"taints\":[\"a\",1]",
                "\"topology_domains\":[]",
                "\"topology_domains\":{\"zone\":1}"
            })
    void taintsThatCannotBeReadAreRefused(String member) {
        posted(422, "/workers", worker(1, UNUSED_ENDPOINT, "," + member));
    }

    @Test
    void aSelectionWithAnIdIsReservedLaterOnce() {
        name(1, UNUSED_ENDPOINT, "");
        posted(200, "/select", ask(",\"selection_id\":\"s\""));
        posted(404, "/reservations", "{\"selection_id\":\"s\",\"model_name\":\"other\"}");
        posted(404, "/reservations", "{\"selection_id\":\"s\"}"); // of the model named default
        posted(201, "/reservations", "{\"selection_id\":\"s\",\"model_name\":\"m\"}");
        posted(404, "/reservations", "{\"selection_id\":\"s\",\"model_name\":\"m\"}");
        assertEquals(load(9, 2, 1), http.get("/loads").text());
    }

    @Test
    void aSelectionIsReservedOnItsWorkerAsItIsByThen() {
        final String claim = "{\"selection_id\":\"s\",\"model_name\":\"m\"}";
        name(1, UNUSED_ENDPOINT, "");
        posted(200, "/select", ask(",\"selection_id\":\"s\""));
        http.patch("/workers/1", "{\"endpoint\":\"http://moved\"}");
        assertEquals("http://moved", posted(201, "/reservations", claim).path("endpoint").asText());
        assertEquals(200, http.delete("/reservations/s").status());
        posted(200, "/select", ask(",\"selection_id\":\"s\""));
        http.patch("/workers/1", "{\"block_size\":2}");
        posted(404, "/reservations", claim); // its blocks are counted in others
        assertEquals(load(0, 0, 0), http.get("/loads").text());
    }

    @Test
    void aSelectionWaitsOnWhereItsReservationFails() {
        http =
                start(
                        SelectConfig.of("127.0.0.1", 0)
                                .withSlots(SlotsConfig.of("127.0.0.1", 0).withSizes(8, 1, 64)));
        name(1, UNUSED_ENDPOINT, "");
        final String claim = "{\"selection_id\":\"s\",\"model_name\":\"m\"}";
        posted(200, "/select", ask(",\"selection_id\":\"s\""));
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"other\""));
        posted(503, "/reservations", claim);
        assertEquals(200, http.delete("/reservations/other").status());
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"s\""));
        posted(409, "/reservations", claim);
        assertEquals(200, http.delete("/reservations/s").status());
        posted(201, "/reservations", claim);
        assertEquals(200, http.delete("/reservations/s").status());
        posted(404, "/reservations", claim);
    }

    @Test
    void aWorkerOfAnyNumberCanBeAllowed() {
        name(-1, UNUSED_ENDPOINT, "");
        name(1, UNUSED_ENDPOINT, "");
        final JsonNode chosen =
                posted(
                        200,
                        "/select",
                        ask(",\"allowed_worker_ids\":[18446744073709551615,9223372036854775808]"));
        assertEquals("18446744073709551615", chosen.path("worker_id").asText());
        posted(422, "/select", ask(",\"allowed_worker_ids\":[-1]"));
        posted(422, "/select", ask(",\"allowed_worker_ids\":[18446744073709551616]"));
    }

    @Test
    void theOldestSelectionsGiveWayAndNoneWaitsForLong() throws ServiceException {
        final PendingSelections pending = new PendingSelections(2, 100);
        final GroupKey key = new GroupKey("m", "default");
        final Selection any = new Selection(key, null, 0, null, null, 0, null);
        pending.add("a", any, 0);
        pending.add("b", any, 10);
        pending.add("a", any, 20);
        pending.add("c", any, 30);
        assertNull(pending.claimOrNull("b", key, 30, UNRESERVED));
        assertNull(pending.claimOrNull("a", new GroupKey("n", "default"), 119, UNRESERVED));
        assertEquals(any, pending.claimOrNull("a", key, 119, UNRESERVED));
        assertNull(pending.claimOrNull("a", key, 119, UNRESERVED));
        assertNull(pending.claimOrNull("c", key, 130, UNRESERVED));
    }

    @Test
    void aWorkerThatGoesTakesItsReservationsWithIt() {
        name(1, UNUSED_ENDPOINT, "");
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"a\""));
        http.patch("/workers/1", "{\"endpoint\":\"http://elsewhere\"}");
        assertEquals(load(9, 2, 1), http.get("/loads").text(), "it is the same inside");
        http.delete("/workers/1");
        assertEquals(404, http.post("/reservations/a/prefill_complete", "").status());
        assertEquals("[]", http.get("/loads").text());
        name(1, UNUSED_ENDPOINT, "");
        posted(200, "/select_and_reserve", ask(",\"selection_id\":\"a\""));
    }

    @Test
    void ranksOfOneWorkerAreChosenEachByItsOwnLoad() {
        final String events =
                ",\"data_parallel_start_rank\":3,\"data_parallel_size\":2,"
                        + "\"kv_events_endpoints\":{\"4\":\"tcp://127.0.0.1:19\"}";
        name(1, UNUSED_ENDPOINT, events);
        final Set<Long> ranks = new TreeSet<>();
        for (int i = 0; i < 4; i++) {
            ranks.add(posted(200, "/select_and_reserve", ask("")).path("dp_rank").asLong());
        }
        assertEquals(Set.of(3L, 4L), ranks);
        final Http.Answer otherSize =
                http.post("/workers", worker(2, UNUSED_ENDPOINT, "").replace(":4,", ":8,"));
        assertTrue(
                otherSize.text().contains("reconciliation failed: block_size mismatch"),
                otherSize::text);
        assertFalse(otherSize.text().contains("schedulable\","), otherSize::text);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/workers|{|400",
                "/workers|[]|422",
                "/workers|{}|422",
                "/workers|{\"worker_id\":-1}|422",
                "/workers|{\"worker_id\":1,\"block_size\":-1}|422",
                "/workers|{\"worker_id\":1,\"kv_events_endpoints\":{\"x\":\"y\"}}|422",
                "/workers|{\"worker_id\":1,\"kv_events_endpoints\":{\"-1\":\"y\"}}|422",
                "/workers|{\"worker_id\":1,\"kv_events_endpoints\":{\"1\":2}}|422",
                "/workers|{\"worker_id\":1,\"kv_events_endpoints\":[1]}|422",
                "/workers/x|{}|405",
                "/select|{\"model_name\":\"m\"}|400",
                "/select|{\"model_name\":\"m\",\"token_ids\":[\"a\"]}|422",
                "/select|{\"model_name\":\"m\",\"token_ids\":[-1]}|422",
                "/select|{\"model_name\":\"m\",\"block_hashes\":[1],\"isl_tokens\":4}|400",
                "/select|{\"model_name\":\"m\",\"block_hashes\":[1],\"sequence_hashes\":[1]}|400",
                "/select|{\"model_name\":\"m\",\"block_hashes\":[1,2],\"sequence_hashes\":[1],"
                        + "\"isl_tokens\":8}|400",
                "/select|{\"model_name\":\"m\",\"block_hashes\":[1],\"sequence_hashes\":[1],"
                        + "\"isl_tokens\":3}|400",
                "/select|{\"model_name\":\"m\",\"token_ids\":[1],\"allowed_worker_ids\":[7]}|503",
                "/select|{\"model_name\":\"x\",\"token_ids\":[1]}|503",
                "/overlap_scores|{\"model_name\":\"x\",\"token_ids\":[1]}|503",
                "/potential_loads|{\"model_name\":\"x\",\"token_ids\":[1]}|503",
                "/reservations|{\"model_name\":\"m\"}|422",
                "/reservations|{\"model_name\":\"m\",\"selection_id\":\"s\",\"worker_id\":9,"
                        + "\"sequence_hashes\":[1],\"isl_tokens\":4}|404",
                "/reservations|{\"model_name\":\"m\",\"selection_id\":\"s\",\"worker_id\":1,"
                        + "\"dp_rank\":7,\"sequence_hashes\":[1],\"isl_tokens\":4}|404",
                "/reservations|{\"model_name\":\"m\",\"selection_id\":\"s\",\"worker_id\":1,"
                        + "\"sequence_hashes\":[1],\"isl_tokens\":4,"
                        + "\"effective_prefill_tokens\":5}|400",
                "/reservations|{\"model_name\":\"m\",\"selection_id\":\"s\"}|404",
                "/reservations/nope/prefill_complete||404",
                "/reservations/nope/output_block|{}|404",
                "/reservations/a/b/prefill_complete||404",
                "/reservations/%2e%2e/select|{}|404",
                "/reservations/../workers|{}|404",
                "/reservations/..%2Fworkers|{}|405",
                "/reservations/..%2Fselect/prefill_complete||404",
                "/select|{\"model_name\":\"m\",\"token_ids\":[1],\"selection_id\":\"\"}|422",
                "/select_and_reserve|{\"model_name\":\"m\",\"token_ids\":[1],"
                        + "\"selection_id\":\"\\u0000\"}|422",
                "/reservations|{\"model_name\":\"m\",\"selection_id\":\"\\ud800\"}|422",
                "/replica_sync/register_peer|{\"endpoint\":\"tcp://127.0.0.1:1\"}|409",
                "/workers/%7B%7D|{}|405",
                "/nowhere|{}|404"
            })
    void whatCannotBeIsRefusedAndLeavesNothing(String path, String body, int status) {
        name(1, UNUSED_ENDPOINT, "");
        final Http.Answer answer = http.post(path, body == null ? "" : body);
        assertEquals(status, answer.status(), answer::text);
        assertTrue(answer.json().path("error").isTextual(), answer::text);
        assertEquals(1, http.get("/workers").json().size());
        assertEquals(load(0, 0, 0), http.get("/loads").text());
    }

    @Tag("integration") // ten seconds
    @Test
    void tenThousandWorkersAreNamedAndOneIsChosen() {
        final int count = 10_000;
        http =
                start(
                        SelectConfig.of("127.0.0.1", 0)
                                .withSlots(
                                        SlotsConfig.of("127.0.0.1", 0)
                                                .withSizes(count, 20_000, 1 << 20))
                                .withIndexes(2, 256L << 20));
        final EnginePublisher engine = closing(new EnginePublisher(0));
        for (int i = 1; i <= count; i++) {
            name(i, engine.endpoint(), "");
        }
        assertEquals(503, http.post("/workers", worker(count + 1, engine.endpoint(), "")).status());
        final Set<Long> chosen = new TreeSet<>();
        for (int i = 0; i < 20; i++) {
            chosen.add(posted(200, "/select_and_reserve", ask("")).path("worker_id").asLong());
        }
        assertEquals(20, chosen.size(), "a worker with a reservation costs more than an idle one");
        assertEquals(count, http.get("/ready").json().path("schedulable_workers").asInt());
        http.delete("/workers/7");
        Eventually.holds( // its slot is swept first
                () ->
                        http.post("/workers", worker(count + 1, engine.endpoint(), ""))
                                .text()
                                .contains("\"lifecycle\":\"schedulable\""));
    }

    @Test
    void callersThatAreInsideWhenItEndsGetAnEnd() throws Exception {
        name(1, UNUSED_ENDPOINT, "");
        final CountDownLatch asked = new CountDownLatch(200);
        final Set<Integer> statuses = new ConcurrentSkipListSet<>();
        final List<Thread> callers = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            callers.add(
                    Thread.ofVirtual()
                            .start(
                                    () -> {
                                        try {
                                            while (true) {
                                                statuses.add(
                                                        http.post("/select_and_reserve", ask(""))
                                                                .status());
                                                asked.countDown();
                                            }
                                        } catch (UncheckedIOException | IllegalStateException e) {
                                            asked.countDown(); // the port is closed
                                        }
                                    }));
        }
        asked.await();
        closeAll();
        for (Thread caller : callers) {
            caller.join();
        }
        assertTrue(Set.of(200, 503).containsAll(statuses), statuses::toString);
        assertNotEquals(Set.of(503), statuses);
    }

    @Test
    void sizesThatCannotBeAreRefused() {
        final SelectConfig config = SelectConfig.of("127.0.0.1", 0);
        for (Runnable wrong :
                List.<Runnable>of(
                        () -> config.withIndexes(0, 0),
                        () -> config.withSelections(Duration.ZERO, 1),
                        () -> config.withSelections(Duration.ofSeconds(1), 0))) {
            assertThrows(IllegalArgumentException.class, wrong::run);
        }
    }
}
