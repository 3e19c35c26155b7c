package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.InputStream;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Exchanges that were recorded between a client that splits requests itself and real prefill and
 * decode servers (vLLM 0.32.0 and SGLang 0.5.23, both over NIXL), and between another gateway (SMG)
 * and simulated vLLM servers. The gateway gets what the client wanted, scripted engines answer as
 * the real ones did, and what the gateway sends is compared with what the client sent, member by
 * member.
 */
class RecordedHandoffTest {
    private static final String PARAMS = "kv_transfer_params";
    private static final String ROOM = "bootstrap_room";

    /**
     * The gateway asks for the usage of every stream, and keeps it from a client that did not ask.
     */
    private static final String USAGE_OF_STREAMS = "stream_options";

    private final FakeEngine prefill = new FakeEngine(call -> call.json(500, "{}"));
    private final FakeEngine decode = new FakeEngine(call -> call.json(500, "{}"));
    private GatewayServer gateway;

    @AfterEach
    void stop() throws Exception {
        gateway.close();
        prefill.close();
        decode.close();
    }

    private static List<JsonNode> recorded(String name) throws IOException {
        try (InputStream in =
                RecordedHandoffTest.class.getResourceAsStream("/handoff/" + name + ".jsonl")) {
            final List<JsonNode> exchanges = new ArrayList<>();
            for (String line :
                    new String(in.readAllBytes(), StandardCharsets.UTF_8).lines().toList()) {
                exchanges.add(Json.MAPPER.readTree(line));
            }
            return exchanges;
        }
    }

    private void start(String prefillKeys, String decodeKeys) throws Exception {
        gateway =
                GatewayServer.start(
                        Gateways.config(
                                        WorkerConfig.parse(
                                                prefill.url()
                                                        + ",name=p,role=prefill"
                                                        + prefillKeys),
                                        WorkerConfig.parse(
                                                decode.url() + ",name=d,role=decode" + decodeKeys))
                                .set(GatewaySettings.MODEL, "tiny")
                                .build());
        Gateways.awaitContact(gateway);
    }

    /** The recorded answer, as JSON or as the events of a stream. */
    private static FakeEngine.Script answering(JsonNode exchange) {
        final JsonNode response = exchange.get("response");
        if (!response.isTextual()) {
            return call -> call.json(exchange.get("status").intValue(), response.toString());
        }
        return call -> {
            call.beginEvents();
            call.chunk(response.textValue());
            call.endChunks();
        };
    }

    /** What the client would have asked a gateway for. */
    private static ObjectNode without(JsonNode request, String... members) {
        return ((ObjectNode) request.deepCopy()).remove(List.of(members));
    }

    private static JsonNode last(FakeEngine engine) throws IOException {
        return Json.MAPPER.readTree(engine.calls.getLast().body);
    }

    private HttpResponse<String> ask(JsonNode exchange, JsonNode wanted) throws Exception {
        final HttpResponse<String> answer =
                Gateways.post(gateway, exchange.get("path").textValue(), wanted.toString());
        assertEquals(200, answer.statusCode(), answer.body());
        return answer;
    }

    private static void assertAnswer(JsonNode exchange, HttpResponse<String> answer)
            throws IOException {
        final JsonNode response = exchange.get("response");
        if (response.isTextual()) {
            assertEquals(response.textValue(), answer.body());
        } else {
            assertEquals(response, Json.MAPPER.readTree(answer.body()));
        }
    }

    @Test
    void vllmGetsWhatItGotFromAClientThatSplitsItself() throws Exception {
        start("", "");
        int cases = 0;
        final List<JsonNode> all = recorded("vllm-0.32.0-nixl");
        for (int i = 0; i < all.size(); i++) {
            if (!all.get(i).get("note").textValue().endsWith(": prefill request")) {
                continue; // the same prompt asked of one server, or a fault: see below
            }
            final JsonNode first = all.get(i);
            final JsonNode second = all.get(i + 1);
            prefill.script = answering(first);
            decode.script = answering(second);
            assertAnswer(second, ask(second, without(second.get("request"), PARAMS)));
            assertEquals(first.get("request"), last(prefill), first.get("note").textValue());
            assertEquals(second.get("request"), last(decode), second.get("note").textValue());
            assertEquals(first.get("path").textValue(), prefill.calls.getLast().path);
            assertEquals(second.get("path").textValue(), decode.calls.getLast().path);
            assertEquals( // as in the recording, both legs have one
                    prefill.calls.getLast().headers.get("x-request-id"),
                    decode.calls.getLast().headers.get("x-request-id"));
            cases++;
        }
        assertEquals(4, cases);
        assertEquals(4, prefill.calls.size());
        assertEquals(4, decode.calls.size());
    }

    @Test
    void aRequestWhoseBlocksVllmCouldNotFetchIsAnsweredByOneServer() throws Exception {
        start("", "");
        final List<JsonNode> all = recorded("vllm-0.32.0-nixl");
        final JsonNode alone = all.get(0);
        final JsonNode unreachable = all.get(13);
        assertEquals("remote port with nobody behind", unreachable.get("note").textValue());
        prefill.script = answering(all.get(1));
        decode.script =
                call -> answering(call.text().contains(PARAMS) ? unreachable : alone).answer(call);
        final JsonNode wanted = without(all.get(2).get("request"), PARAMS);
        assertAnswer(alone, ask(alone, wanted));
        assertEquals(2, decode.calls.size());
        assertEquals(wanted, last(decode));
    }

    /** The reference of the recording: no server but one, and the text of the split request. */
    @Test
    void oneServerGetsWhatItGotWithoutAHandOff() throws Exception {
        start("", "");
        int cases = 0;
        final List<JsonNode> all = recorded("vllm-0.32.0-nixl");
        for (int i = 0; i < all.size(); i++) {
            final JsonNode alone = all.get(i);
            if (!alone.get("note").textValue().endsWith(": aggregated reference on P")) {
                continue;
            }
            decode.script = answering(alone); // the prefill server fails
            final HttpResponse<String> answer = ask(alone, alone.get("request"));
            assertAnswer(alone, answer);
            assertEquals(alone.get("request"), last(decode), alone.get("note").textValue());
            assertEquals(alone.get("path").textValue(), decode.calls.getLast().path);
            assertEquals(text(all.get(i + 2)), text(alone));
            cases++;
        }
        assertEquals(4, cases);
        assertEquals(4, decode.calls.size());
    }

    private static String text(JsonNode exchange) {
        final JsonNode choice = exchange.get("response").get("choices").get(0);
        return choice.has("text")
                ? choice.get("text").textValue()
                : choice.get("message").get("content").textValue();
    }

    /** vLLM answered 200 with the wrong text to parameters that another prompt had come with. */
    @Test
    void parametersOfAnotherPromptAreNeverSent() throws Exception {
        start("", "");
        final List<JsonNode> all = recorded("vllm-0.32.0-nixl");
        final JsonNode first = all.get(7);
        final JsonNode second = all.get(8);
        final JsonNode stale = all.get(12);
        assertEquals("stale kv_transfer_params reused", stale.get("note").textValue());
        assertEquals(second.get("request").get(PARAMS), stale.get("request").get(PARAMS));
        prefill.script = answering(first);
        decode.script = answering(second);
        ask(second, without(second.get("request"), PARAMS));
        assertEquals(stale.get("request").get(PARAMS), last(decode).get(PARAMS));
        final JsonNode other = all.get(10); // the next prefill has parameters of its own
        prefill.script = answering(other);
        ask(stale, without(stale.get("request"), PARAMS));
        assertEquals(other.get("response").get(PARAMS), last(decode).get(PARAMS));
        assertEquals(
                without(stale.get("request"), PARAMS), without(last(decode), PARAMS), "the rest");
    }

    /** Without a room SGLang's decode server refused the request. */
    @Test
    void sglangsDecodeServerIsNeverAskedWithoutARoom() throws Exception {
        start(",handoff=sglang,bootstrap=127.0.0.1:8998", ",handoff=sglang");
        final List<JsonNode> all = recorded("sglang-0.5.23-nixl");
        final JsonNode refused = all.get(8);
        assertEquals("decode-without-bootstrap", refused.get("note").textValue());
        assertEquals(400, refused.get("status").intValue());
        decode.script =
                call -> answering(call.text().contains(ROOM) ? all.get(5) : refused).answer(call);
        final JsonNode wanted =
                without(all.get(5).get("request"), "bootstrap_host", "bootstrap_port", ROOM);
        for (int i = 0; i < 10; i++) { // the prefill server fails until it is left out
            final HttpResponse<String> answer =
                    Gateways.post(gateway, all.get(5).get("path").textValue(), wanted.toString());
            assertNotEquals(400, answer.statusCode(), answer.body());
        }
        assertFalse(decode.calls.isEmpty());
        for (FakeEngine.Call call : decode.calls) {
            assertTrue(call.text().contains(ROOM), call.text());
        }
    }

    @Test
    void sglangGetsWhatItGotFromAClientThatSplitsItself() throws Exception {
        start(",handoff=sglang,bootstrap=127.0.0.1:8998", ",handoff=sglang");
        int cases = 0;
        final List<JsonNode> all = recorded("sglang-0.5.23-nixl");
        for (int i = 0; i < all.size(); i++) {
            final JsonNode first = all.get(i);
            if (!first.get("note").textValue().endsWith(":prefill")
                    || first.get("path").textValue().equals("/generate")) {
                continue; // the gateway does not serve SGLang's own route
            }
            final JsonNode second = all.get(i + 1);
            prefill.script = answering(first);
            decode.script = answering(second);
            final ObjectNode wanted =
                    without(second.get("request"), "bootstrap_host", "bootstrap_port", ROOM);
            assertAnswer(second, ask(second, wanted));
            Eventually.holds(
                    "the prefill request", () -> prefill.calls.size() == decode.calls.size());
            // each request meets in a room of its own, drawn by the splitting side
            assertEquals(
                    without(first.get("request"), ROOM),
                    without(last(prefill), ROOM, USAGE_OF_STREAMS));
            assertEquals(
                    without(second.get("request"), ROOM),
                    without(last(decode), ROOM, USAGE_OF_STREAMS));
            assertEquals(last(prefill).get(ROOM), last(decode).get(ROOM));
            assertTrue(last(decode).get(ROOM).canConvertToLong());
            assertTrue(last(decode).get(ROOM).longValue() >= 0);
            cases++;
        }
        assertEquals(3, cases);
    }

    @Test
    void anotherGatewaysEnginesGetTheSameAndWhatNamesTheBlocks() throws Exception {
        start("", "");
        final List<JsonNode> all = recorded("smg");
        prefill.script = answering(all.get(0));
        decode.script = answering(all.get(1));
        assertAnswer(all.get(1), ask(all.get(1), all.get(1).get("request")));
        // SMG asks for no blocks, and these engines name none: the decode server computes the
        // prompt
        assertEquals(all.get(0).get("request"), without(last(prefill), PARAMS));
        assertTrue(last(prefill).get(PARAMS).get("do_remote_decode").booleanValue());
        assertEquals(all.get(1).get("request"), without(last(decode), USAGE_OF_STREAMS));
    }
}
