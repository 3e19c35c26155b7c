package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.services.testing.Http;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

class SlotsServiceTest {
    private SlotsService service;
    private Http http;

    @BeforeEach
    void start() throws IOException {
        service =
                new SlotsService(SlotsConfig.of("127.0.0.1", 0).withSizes(10_000, 20_000, 1 << 20));
        service.start();
        http = new Http(service.port());
    }

    @AfterEach
    void close() {
        service.close();
    }

    private void register(String id, int firstRank, int ranks) {
        final Http.Answer answer =
                http.post(
                        "/register",
                        "{\"worker_id\":"
                                + id
                                + ",\"model_name\":\"m\",\"block_size\":4,\"dp_start\":"
                                + firstRank
                                + ",\"dp_size\":"
                                + ranks
                                + "}");
        assertEquals(201, answer.status(), answer::text);
        assertEquals("{\"status\":\"ok\"}", answer.text());
    }

    private static String addition(String id, String worker, String hashes, int tokens) {
        return "{\"request_id\":\""
                + id
                + "\",\"worker_id\":"
                + worker
                + ",\"dp_rank\":0,\"model_name\":\"m\",\"sequence_hashes\":"
                + hashes
                + ",\"new_isl_tokens\":"
                + tokens
                + "}";
    }

    private static String request(String id) {
        return "{\"request_id\":\"" + id + "\",\"model_name\":\"m\"}";
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/register|{|400",
                "/register||400",
                "/register|[]|422",
                "/register|{\"worker_id\":8,\"model_name\":\"m\",\"block_size\":4}|422",
                "/register|{\"worker_id\":-1,\"model_name\":\"m\",\"block_size\":4,\"dp_start\":0,"
                        + "\"dp_size\":1}|422",
                "/register|{\"worker_id\":8,\"model_name\":\"m\",\"block_size\":0,\"dp_start\":0,"
                        + "\"dp_size\":1}|400",
                "/register|{\"worker_id\":8,\"model_name\":\"m\",\"block_size\":4,\"dp_start\":0,"
                        + "\"dp_size\":0}|400",
                "/register|{\"worker_id\":8,\"model_name\":\"m\",\"block_size\":4,"
                        + "\"dp_start\":4294967295,\"dp_size\":1}|400",
                "/unregister|{\"worker_id\":8,\"model_name\":\"m\"}|404",
                "/add|{\"request_id\":\"r\",\"worker_id\":8,\"dp_rank\":0,\"model_name\":\"m\","
                        + "\"sequence_hashes\":[1]}|404",
                "/add|{\"request_id\":\"r\",\"worker_id\":8,\"dp_rank\":0,\"model_name\":\"m\"}|422",
                "/add|{\"request_id\":\"r\",\"worker_id\":8,\"dp_rank\":0,\"model_name\":\"m\","
                        + "\"sequence_hashes\":[18446744073709551605]}|422",
                "/add|{\"request_id\":\"r\",\"worker_id\":8,\"dp_rank\":0,\"model_name\":\"m\","
                        + "\"sequence_hashes\":[1],\"new_isl_tokens\":-8}|422",
                "/prefill_complete|{\"request_id\":\"r\",\"model_name\":\"m\"}|404",
                "/free|{\"request_id\":\"r\",\"model_name\":\"m\"}|404",
                "/potential_loads|{\"sequence_hashes\":[1],\"model_name\":\"m\"}|404",
                "/replica_sync/register_peer|{\"endpoint\":\"tcp://127.0.0.1:1\"}|409",
                "/replica_sync/register_peer|{}|422",
                "/loads|{}|405",
                "/nowhere|{}|404"
            })
    void whatCannotBeIsRefusedAndLeavesNothing(String path, String body, int status) {
        final Http.Answer answer = http.post(path, body == null ? "" : body);
        assertEquals(status, answer.status(), answer::text);
        assertTrue(answer.json().path("error").isTextual(), answer::text);
        assertEquals("[]", http.get("/workers").text());
        assertEquals("[]", http.get("/loads").text());
        assertEquals("[]", http.get("/replica_sync/peers").text());
        final JsonNode sync = http.get("/replica_sync/status").json();
        assertFalse(sync.get("enabled").asBoolean());
        assertEquals(0, sync.get("peers").asInt());
    }

    @Test
    void aBodyOfMoreThanEightMebibytesIsRefused() {
        final byte[] body = new byte[(8 << 20) + 1];
        Arrays.fill(body, (byte) ' ');
        assertEquals(413, http.post("/add", body).status());
        assertEquals("", http.get("/health").text());
    }

    @ParameterizedTest
    @ValueSource(strings = {"%zz", "%ff", "%", "%E2%28"})
    void aQueryThatCannotBeDecodedIsRefused(String value) throws IOException {
        final String answer = answerTo("GET /workers?model_name=" + value + " HTTP/1.0");
        assertTrue(answer.startsWith("HTTP/1.1 400"), answer);
        assertTrue(answer.contains("the query cannot be decoded"), answer);
    }

    /** Its connection ends, and a client of HTTP/1.1 keeps one that is not said to. */
    @ParameterizedTest
    @CsvSource({
        "GET /%zz HTTP/1.1, 400",
        "POST /%zz HTTP/1.1, 400",
        "GET / HTTP/3.7, 505",
        "GET /workers, 505"
    })
    void aConnectionEndsWithAWordWhereARequestCannotBeRead(String line, int status)
            throws IOException {
        final String answer = answerTo(line);
        assertTrue(answer.startsWith("HTTP/1.1 " + status + " "), answer);
        assertTrue(answer.contains("\r\nConnection: close\r\n"), answer);
    }

    /** All that comes on a connection with this request until the connection ends. */
    private String answerTo(String line) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), service.port())) {
            socket.getOutputStream()
                    .write((line + "\r\nHost: h\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** The numbers that an NVIDIA Dynamo 1.6.1 slot tracker gave to the same calls. */
    @Test
    void loadsAreThoseOfTheRecordedCalls() {
        register("7", 0, 1);
        assertEquals(201, http.post("/add", addition("r1", "7", "[11,12]", 8)).status());
        assertEquals(
                Http.json(
                        "[{\"worker_id\":7,\"dp_rank\":0,\"potential_prefill_tokens\":17,"
                                + "\"potential_decode_blocks\":3,\"active_requests\":1}]"),
                http.post(
                                "/potential_loads",
                                "{\"model_name\":\"m\",\"sequence_hashes\":[11,13],"
                                        + "\"isl_tokens\":9,\"new_isl_tokens\":9}")
                        .json());
        assertEquals(409, http.post("/add", addition("r1", "7", "[11,12]", 8)).status());
        register("9", 2, 2);
        register("18446744073709551615", 0, 1);
        assertEquals(404, http.post("/add", addition("r2", "77", "[1]", 8)).status());
        assertEquals(404, http.post("/add", addition("r2", "9", "[1]", 8)).status());
        assertEquals(201, http.post("/add", addition("r3", "7", "[-11]", 0)).status());
        assertEquals(201, http.post("/add", addition("", "7", "[]", 3)).status());
        final JsonNode loads = http.get("/loads").json();
        assertEquals(
                Http.json(
                        "{\"model_name\":\"m\",\"routing_group\":\"default\",\"worker_id\":7,"
                                + "\"dp_rank\":0,\"active_prefill_tokens\":11,"
                                + "\"active_decode_blocks\":3}"),
                loads.get(0));
        assertEquals(4, loads.size());
        assertEquals(3, loads.get(2).path("dp_rank").asInt());
        assertEquals("18446744073709551615", loads.get(3).path("worker_id").asText());
        // a block that is in use, but behind another one: nothing of the query is a prefix
        assertEquals(
                4,
                http.post("/potential_loads", "{\"model_name\":\"m\",\"sequence_hashes\":[12]}")
                        .json()
                        .get(0)
                        .path("potential_decode_blocks")
                        .asInt());
        assertEquals(200, http.post("/prefill_complete", request("r1")).status());
        assertEquals(200, http.post("/prefill_complete", request("r1")).status());
        assertEquals(404, http.post("/prefill_complete", request("nope")).status());
        assertEquals(3, http.get("/loads").json().get(0).path("active_prefill_tokens").asInt());
        assertEquals(200, http.post("/free", request("r1")).status());
        assertEquals(200, http.post("/free", request("r1")).status());
        assertEquals(1, http.get("/loads").json().get(0).path("active_decode_blocks").asInt());
        assertEquals("[]", http.get("/loads?model_name=absent").text());
        assertEquals("[]", http.get("/workers?routing_group=absent").text());
        assertEquals(
                Http.json(
                        "{\"worker_id\":9,\"model_name\":\"m\",\"routing_group\":\"default\","
                                + "\"block_size\":4,\"dp_start\":2,\"dp_size\":2}"),
                http.get("/workers?model_name=m").json().get(1));
        final String seventh = "{\"worker_id\":7,\"model_name\":\"m\"}";
        assertEquals(200, http.post("/unregister", seventh).status());
        assertEquals(404, http.post("/unregister", seventh).status());
    }

    @Test
    void tenThousandWorkersAreRegisteredAndOneMoreIsA503() {
        for (int i = 0; i < 1_000; i++) {
            register(Integer.toString(i), 0, 10);
        }
        assertEquals(10_000, http.get("/loads").json().size());
        final Http.Answer more =
                http.post(
                        "/register",
                        "{\"worker_id\":5000,\"model_name\":\"m\",\"block_size\":4,"
                                + "\"dp_start\":0,\"dp_size\":1}");
        assertEquals(503, more.status(), more::text);
        assertEquals(201, http.post("/add", addition("r", "999", "[1,2]", 8)).status());
        final JsonNode loads =
                http.post(
                                "/potential_loads",
                                "{\"model_name\":\"m\",\"sequence_hashes\":[1],"
                                        + "\"new_isl_tokens\":4}")
                        .json();
        assertEquals(10_000, loads.size());
        assertEquals(2, loads.get(9_990).path("potential_decode_blocks").asInt());
        assertEquals(12, loads.get(9_990).path("potential_prefill_tokens").asInt());
        assertEquals(1, loads.get(0).path("potential_decode_blocks").asInt());
    }

    @Test
    void manyCallersAtOnceLoseAndDoubleNothing() throws InterruptedException {
        register("7", 0, 1);
        final List<Thread> callers = new ArrayList<>();
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        for (int c = 0; c < 8; c++) {
            final int caller = c;
            callers.add(
                    Thread.ofVirtual()
                            .start(
                                    () -> {
                                        for (int i = 0; i < 50; i++) {
                                            final String id = caller + "-" + i;
                                            expect(201, "/add", addition(id, "7", "[1]", 2), wrong);
                                            expect(200, "/prefill_complete", request(id), wrong);
                                            if (i % 2 == 0) {
                                                expect(200, "/free", request(id), wrong);
                                            }
                                        }
                                    }));
        }
        for (Thread caller : callers) {
            caller.join();
        }
        assertEquals(List.of(), List.copyOf(wrong));
        final JsonNode load =
                http.post("/potential_loads", "{\"model_name\":\"m\",\"sequence_hashes\":[]}")
                        .json()
                        .get(0);
        assertEquals(200, load.path("active_requests").asInt());
        assertEquals(0, load.path("potential_prefill_tokens").asInt());
        assertEquals(1, load.path("potential_decode_blocks").asInt());
    }

    private void expect(int status, String path, String body, ConcurrentLinkedQueue<String> wrong) {
        final Http.Answer answer = http.post(path, body);
        if (answer.status() != status) {
            wrong.add(path + " " + body + ": " + answer);
        }
    }

    @RepeatedTest(20)
    void closingWhileItIsAskedEndsTheQuestions() throws InterruptedException {
        register("7", 0, 1);
        final Thread asking =
                Thread.ofVirtual()
                        .start(
                                () -> {
                                    try {
                                        while (http.get("/loads").status() == 200) {
                                            Thread.onSpinWait();
                                        }
                                    } catch (UncheckedIOException e) {
                                        // the connection was closed
                                    }
                                });
        for (int i = 0; i < 20; i++) {
            assertEquals(200, http.get("/loads").status());
        }
        service.close();
        asking.join(60_000);
        assertFalse(asking.isAlive());
    }

    @RepeatedTest(20)
    void aBodyThatTheEndCutsIsNoFaultOfItsClient() throws IOException {
        try (Socket client = new Socket(InetAddress.getLoopbackAddress(), service.port())) {
            client.setSoTimeout(60_000);
            client.getOutputStream()
                    .write(
                            String.join(
                                            "\r\n",
                                            "POST /register HTTP/1.1",
                                            "Host: a",
                                            "Content-Length: 100",
                                            "Content-Type: application/json",
                                            "Expect: 100-continue",
                                            "",
                                            "")
                                    .getBytes(StandardCharsets.US_ASCII));
            final BufferedReader answer =
                    new BufferedReader(
                            new InputStreamReader(
                                    client.getInputStream(), StandardCharsets.US_ASCII));
            assertEquals("HTTP/1.1 100 Continue", answer.readLine());
            assertEquals("", answer.readLine());
            client.getOutputStream().write('{');
            service.close();
            final String status = lineOf(answer);
            assertTrue(status == null || status.startsWith("HTTP/1.1 503 "), status);
        }
    }

    /** Null where the connection has ended. */
    private static String lineOf(BufferedReader answer) throws IOException {
        try {
            return answer.readLine();
        } catch (SocketException e) { // reset
            return null;
        }
    }
}
