package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.testing.Http;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

class OpenAiApiTest {
    private static SimEngine engine;
    private static Http http;

    @BeforeAll
    static void start() {
        engine =
                SimEngine.start(
                        SimConfig.builder()
                                .blocks(256)
                                .maxModelLength(1000)
                                .loraAdapters(List.of("my-lora"))
                                .speedUp(50)
                                .build());
        http = new Http(engine);
    }

    @AfterAll
    static void stop() {
        engine.close();
    }

    @Test
    void aCompletionWithoutALimitGoesOnToItsEnd() {
        final String prompt = "{\"prompt\":[40,41,42],\"ignore_eos\":true";
        assertEquals(16, outputTokens(prompt + "}"));
        assertEquals(1000 - 3, outputTokens(prompt + ",\"max_tokens\":null}"));
    }

    private static int outputTokens(String body) {
        return http.post("/v1/completions", body).at("/usage/completion_tokens").intValue();
    }

    @Test
    void aCompletionHasTheShapeOfVllm() {
        final HttpResponse<String> response =
                http.send(
                        "/v1/completions",
                        "{\"model\":\"kvasir-sim\",\"prompt\":\"Hello\",\"max_tokens\":7,"
                                + "\"ignore_eos\":true,\"return_token_ids\":true}",
                        "X-Request-Id",
                        "abc");
        final JsonNode answer = Http.tree(response.body());
        assertEquals(200, response.statusCode());
        assertEquals("cmpl-abc", answer.get("id").textValue());
        assertEquals("text_completion", answer.get("object").textValue());
        assertEquals("length", answer.at("/choices/0/finish_reason").textValue());
        assertEquals(6, answer.at("/usage/prompt_tokens").intValue());
        assertEquals(7, answer.at("/usage/completion_tokens").intValue());
        assertEquals(13, answer.at("/usage/total_tokens").intValue());
        assertEquals(256, answer.at("/choices/0/prompt_token_ids/0").intValue());
        final String text = answer.at("/choices/0/text").textValue();
        assertArrayEquals(text.chars().toArray(), Http.outputIds(answer));
        assertTrue(text.matches("[ -~]{7}"), text);
        assertTrue(
                Integer.parseInt(
                                response.headers().firstValue("x-sim-event-sequence").orElseThrow())
                        >= -1);
    }

    @Test
    void aChatIsWrittenAsChatMl() {
        final JsonNode tokens =
                http.post(
                        "/tokenize",
                        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                                + "\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}");
        final JsonNode text = http.post("/detokenize", "{\"tokens\":" + tokens.get("tokens") + "}");
        assertEquals(
                "<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n",
                text.get("prompt").textValue());
        assertEquals(258, tokens.at("/tokens/0").intValue());

        final JsonNode answer =
                http.post(
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                                + "\"max_completion_tokens\":5,\"ignore_eos\":true}");
        assertEquals("chat.completion", answer.get("object").textValue());
        assertEquals(5, answer.at("/choices/0/message/content").textValue().length());
        assertEquals("assistant", answer.at("/choices/0/message/role").textValue());
    }

    @Test
    void anAnswerDependsOnThePromptOnlyAndGoesOnWhereItWasCut() {
        final int[] prompt = IntStream.range(40, 90).toArray();
        final int[] whole = Http.outputIds(http.complete(prompt, 40));
        final int[] begun =
                IntStream.concat(IntStream.of(prompt), IntStream.of(whole).limit(15)).toArray();
        assertArrayEquals(
                IntStream.of(whole).skip(15).toArray(), Http.outputIds(http.complete(begun, 25)));
    }

    @Test
    void aStreamedCompletionAddsUpToTheWholeOne() throws IOException {
        final int[] prompt = {1, 2, 3, 4, 5};
        final JsonNode whole = http.complete(prompt, 30);
        final List<JsonNode> events =
                http.events(
                        "/v1/completions",
                        Http.body(
                                prompt,
                                30,
                                ",\"stream\":true,\"stream_options\":{\"include_usage\":true}"));
        final StringBuilder text = new StringBuilder();
        final List<Integer> ids = new ArrayList<>();
        for (JsonNode event : events.subList(0, events.size() - 1)) {
            text.append(event.at("/choices/0/text").textValue());
            event.at("/choices/0/token_ids").forEach(id -> ids.add(id.intValue()));
        }
        assertEquals(whole.at("/choices/0/text").textValue(), text.toString());
        assertEquals(30, ids.size());
        assertEquals(5, events.getFirst().at("/choices/0/prompt_token_ids").size());
        final JsonNode last = events.get(events.size() - 2);
        assertEquals("length", last.at("/choices/0/finish_reason").textValue());
        assertTrue(
                events.stream()
                        .limit(events.size() - 2)
                        .allMatch(e -> e.at("/choices/0/finish_reason").isNull()));
        final JsonNode usage = events.getLast();
        assertEquals(0, usage.get("choices").size());
        assertEquals(5, usage.at("/usage/prompt_tokens").intValue());
        assertEquals(30, usage.at("/usage/completion_tokens").intValue());
        assertEquals(0, Http.cachedTokens(usage));
    }

    @Test
    void aStreamedChatOpensWithTheRoleAndHasNoUsageUnasked() throws IOException {
        final List<JsonNode> events =
                http.events(
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],"
                                + "\"max_tokens\":5,\"ignore_eos\":true,\"stream\":true}");
        assertEquals("assistant", events.getFirst().at("/choices/0/delta/role").textValue());
        assertEquals("", events.getFirst().at("/choices/0/delta/content").textValue());
        assertEquals("length", events.getLast().at("/choices/0/finish_reason").textValue());
        assertTrue(events.stream().noneMatch(e -> e.has("usage")));
        assertTrue(events.getLast().has("system_fingerprint"), "as vLLM without usage");
        assertEquals(1, events.stream().filter(e -> e.has("system_fingerprint")).count());
        assertTrue(
                events.stream()
                        .allMatch(
                                e -> e.get("object").textValue().equals("chat.completion.chunk")));
    }

    @Test
    void severalPromptsAndSamplesAreChoicesOfOneAnswer() throws IOException {
        final String body =
                "{\"prompt\":[[1,2,3],[4,5,6,7]],\"n\":2,\"max_tokens\":4,\"ignore_eos\":true";
        final JsonNode answer = http.post("/v1/completions", body + "}");
        assertEquals(4, answer.get("choices").size());
        assertEquals(3, answer.at("/choices/3/index").intValue());
        assertEquals(7, answer.at("/usage/prompt_tokens").intValue());
        assertEquals(16, answer.at("/usage/completion_tokens").intValue());

        final StringBuilder[] texts = new StringBuilder[4];
        java.util.Arrays.setAll(texts, i -> new StringBuilder());
        for (JsonNode event : http.events("/v1/completions", body + ",\"stream\":true}")) {
            texts[event.at("/choices/0/index").intValue()].append(
                    event.at("/choices/0/text").textValue());
        }
        for (int i = 0; i < 4; i++) {
            assertEquals(answer.at("/choices/" + i + "/text").textValue(), texts[i].toString());
        }
    }

    @Test
    void anAnswerEndsByItselfUnlessToldToGoOn() {
        final JsonNode free =
                http.post(
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"tell me\"}],"
                                + "\"return_token_ids\":true}");
        final int length = free.at("/usage/completion_tokens").intValue();
        assertEquals("stop", free.at("/choices/0/finish_reason").textValue());
        assertEquals(259, Http.outputIds(free)[length - 1]);
        assertEquals(length - 1, free.at("/choices/0/message/content").textValue().length());

        final JsonNode forced =
                http.post(
                        "/v1/chat/completions",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"tell me\"}],"
                                + "\"max_tokens\":"
                                + (length + 5)
                                + ",\"min_tokens\":"
                                + (length + 1)
                                + "}");
        assertTrue(forced.at("/usage/completion_tokens").intValue() > length);
    }

    @Test
    void aStopStringEndsTheAnswerBeforeIt() {
        final int[] prompt = {9, 8, 7};
        final String text = http.complete(prompt, 40).at("/choices/0/text").textValue();
        final String stop = text.substring(20, 24);
        final int at = text.indexOf(stop);
        final JsonNode answer =
                http.post(
                        "/v1/completions",
                        Http.body(prompt, 40, ",\"stop\":[\"<none>\",\"" + stop + "\"]"));
        assertEquals(text.substring(0, at), answer.at("/choices/0/text").textValue());
        assertEquals("stop", answer.at("/choices/0/finish_reason").textValue());
        assertEquals(stop, answer.at("/choices/0/stop_reason").textValue());
        assertEquals(at + 4, answer.at("/usage/completion_tokens").intValue());
    }

    @Test
    void errorsHaveTheShapeOfVllm() {
        assertError(404, "NotFoundError", "{\"model\":\"nope\",\"prompt\":\"x\"}");
        assertError(400, "BadRequestError", "{\"prompt\":");
        assertError(400, "BadRequestError", "\0\0\0{\1"); // begins as UTF-32 does
        assertError(400, "BadRequestError", "[]");
        assertError(400, "BadRequestError", "{}");
        assertError(400, "BadRequestError", "{\"prompt\":[]}");
        assertError(400, "BadRequestError", "{\"prompt\":[-1]}");
        assertError(400, "BadRequestError", "{\"prompt\":\"x\",\"max_tokens\":0}");
        final String message = assertError(400, "BadRequestError", Http.body(new int[1001], 1, ""));
        assertTrue(message.contains("maximum context length is 1000 tokens"), message);
        assertTrue(message.contains("1001 input tokens"), message);
    }

    @Test
    void aBodyThatIsNoJsonIsRefusedWithoutInternalsOfTheReader() {
        for (String body : List.of("{\"prompt\":", "{\"x\":" + "[".repeat(1_001))) {
            final String message = assertError(400, "BadRequestError", body);
            assertFalse(message.contains("[Source") || message.contains("StreamRead"), message);
        }
    }

    private static String assertError(int status, String type, String body) {
        final HttpResponse<String> response = http.send("/v1/completions", body);
        final JsonNode error = Http.tree(response.body()).get("error");
        assertEquals(status, response.statusCode(), response.body());
        assertEquals(status, error.get("code").intValue());
        assertEquals(type, error.get("type").textValue());
        return error.get("message").textValue();
    }

    @Test
    void modelsAndAdaptersAreListed() {
        final JsonNode models = Http.tree(http.get("/v1/models")).get("data");
        assertEquals("kvasir-sim", models.at("/0/id").textValue());
        assertEquals(1000, models.at("/0/max_model_len").intValue());
        assertEquals("my-lora", models.at("/1/id").textValue());
        assertEquals("kvasir-sim", models.at("/1/parent").textValue());
        assertEquals("", http.get("/health"));
    }

    @Test
    void textIsTokenizedByteByByteAndComesBack() {
        final String text = "Grüße <|im_end|> <|x \u20ac";
        final JsonNode tokens =
                http.post("/tokenize", Http.JSON.createObjectNode().put("prompt", text).toString());
        assertEquals(256, tokens.at("/tokens/0").intValue());
        assertEquals(tokens.get("tokens").size(), tokens.get("count").intValue());
        final JsonNode back = http.post("/detokenize", "{\"tokens\":" + tokens.get("tokens") + "}");
        assertEquals("<|begin_of_text|>" + text, back.get("prompt").textValue());
        final JsonNode bare =
                http.post(
                        "/tokenize",
                        "{\"prompt\":\"ab\",\"add_special_tokens\":false,\"return_token_strs\":true}");
        assertEquals("[\"a\",\"b\"]", bare.get("token_strs").toString());
    }

    @Test
    void metricsHaveTheNamesAndLabelsOfVllm() {
        http.complete(new int[] {5, 5, 5}, 3);
        final String page = http.get("/metrics");
        for (String line :
                List.of(
                        "vllm:num_requests_running{engine=\"0\",model_name=\"kvasir-sim\"} ",
                        "vllm:num_requests_waiting{engine=\"0\",model_name=\"kvasir-sim\"} ",
                        "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"kvasir-sim\"} ",
                        "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"kvasir-sim\"} ",
                        "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"kvasir-sim\"} ",
                        "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",",
                        "vllm:inter_token_latency_seconds_sum{engine=\"0\",",
                        "vllm:cache_config_info{block_size=\"16\",",
                        "num_gpu_blocks=\"256\"")) {
            assertTrue(page.contains(line), () -> line + " is not in\n" + page);
        }
    }
}
