package io.kvasir.sim.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;

import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/** A prefill and a decode engine of one protocol, for tests. */
public record Pair(SimEngine prefill, SimEngine decode) implements AutoCloseable {
    private static final String ASK =
            "{\"do_remote_decode\":true,\"do_remote_prefill\":false,\"remote_engine_id\":null,"
                    + "\"remote_block_ids\":null,\"remote_host\":null,\"remote_port\":null}";

    public static Pair of(SimHandoff protocol) {
        return of(protocol, handoff -> handoff);
    }

    public static Pair of(SimHandoff protocol, UnaryOperator<HandoffConfig> change) {
        return new Pair(
                SimEngine.start(config(SimRole.PREFILL, protocol, change).build()),
                SimEngine.start(config(SimRole.DECODE, protocol, change).build()));
    }

    public static SimConfig.Builder config(
            SimRole role, SimHandoff protocol, UnaryOperator<HandoffConfig> change) {
        return SimConfig.builder()
                .blockSize(4)
                .blocks(64)
                .interTokenMillis(1)
                .handoff(
                        change.apply(
                                HandoffConfig.of(role, protocol)
                                        .withPatience(Duration.ofMinutes(1))));
    }

    public static int[] tokens(int from, int count) {
        return IntStream.range(from, from + count).toArray();
    }

    /** What one engine alone says. */
    public static String aggregated(int[] prompt, int maxTokens) {
        try (SimEngine engine = SimEngine.start(SimConfig.builder().blockSize(4).build())) {
            return text(new Http(engine).complete(prompt, maxTokens));
        }
    }

    public static String text(JsonNode answer) {
        return answer.at("/choices/0/text").textValue();
    }

    /** A prefill as vLLM is asked for one; its whole answer. */
    public JsonNode vllmPrefill(int[] prompt) {
        return new Http(prefill)
                .post(
                        "/v1/completions",
                        Http.body(prompt, 1, ",\"kv_transfer_params\":" + ASK),
                        "X-Request-Id",
                        "one");
    }

    public HttpResponse<String> vllmDecode(int[] prompt, int maxTokens, JsonNode params) {
        return new Http(decode)
                .send(
                        "/v1/completions",
                        Http.body(prompt, maxTokens, ",\"kv_transfer_params\":" + params));
    }

    /** The same without waiting; cancelled, it is a client that leaves. */
    public CompletableFuture<HttpResponse<String>> vllmDecodeAsync(
            int[] prompt, int maxTokens, JsonNode params) {
        return new Http(decode)
                .sendAsync(
                        "/v1/completions",
                        Http.body(prompt, maxTokens, ",\"kv_transfer_params\":" + params));
    }

    public CompletableFuture<HttpResponse<String>> inRoom(
            SimEngine engine, int[] prompt, int maxTokens, long room) {
        return new Http(engine)
                .sendAsync("/v1/completions", Http.body(prompt, maxTokens, bootstrap(room)));
    }

    public String bootstrap(Object room) {
        final ObjectNode fields = Http.JSON.createObjectNode();
        fields.put("bootstrap_host", "127.0.0.1");
        fields.put("bootstrap_port", prefill.sidePort());
        fields.putPOJO("bootstrap_room", room);
        final String json = fields.toString();
        return "," + json.substring(1, json.length() - 1);
    }

    @Override
    public void close() {
        try (prefill;
                decode) {
            // both end, whatever the first of them throws
        }
    }
}
