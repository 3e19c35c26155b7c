package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.IntStream;

class TokenFormTest {
    private static final String MESSAGES = "\"messages\":[{\"role\":\"user\",\"content\":\"ä\"}]";

    private static TokenForm form(InferenceRequest.Route route, String body, int[]... prompts)
            throws ApiException {
        return TokenForm.of(RequestParser.parse(route, bytes(body)), List.of(prompts));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String completion(String body, int[]... prompts) throws Exception {
        final TokenForm form = form(InferenceRequest.Route.COMPLETIONS, body, prompts);
        assertNull(form.chatOrNull());
        return new String(form.body(bytes(body)), StandardCharsets.UTF_8);
    }

    private static String chat(String members) throws Exception {
        final String body = "{" + members + "}";
        final TokenForm form = form(InferenceRequest.Route.CHAT, body, new int[] {7, 8});
        assertNotNull(form.chatOrNull());
        return new String(form.body(bytes(body)), StandardCharsets.UTF_8);
    }

    @Test
    void aCompletionKeepsEveryOtherByte() throws Exception {
        assertEquals(
                "{ \"x\" : 1.50e0, \"prompt\" : [7,8] ,\"y\":\"\\u00e4 \", \"max_tokens\":3 }",
                completion(
                        "{ \"x\" : 1.50e0, \"prompt\" : \"a \\\"b\" ,\"y\":\"\\u00e4 \","
                                + " \"max_tokens\":3 }",
                        new int[] {7, 8}));
    }

    @Test
    void aBatchStaysABatch() throws Exception {
        assertEquals(
                "{\"prompt\":[[7,8],[9]],\"n\":2}",
                completion("{\"prompt\":[\"a\",\"b\"],\"n\":2}", new int[] {7, 8}, new int[] {9}));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"prompt\":[1, 2]}",
                "{\"prompt\":[[1], [2, 3]],\"logprobs\":2}",
                "{\"prompt\":[1],\"prompt\":[2]}"
            })
    void idsGoAsTheyCame(String body) throws Exception {
        assertEquals(body, completion(body, new int[] {99}));
    }

    @Test
    void aMemberGivenTwiceCountsAsInTheEngines() throws Exception {
        assertEquals(
                "{\"prompt\":[7],\"n\":2}",
                completion("{\"prompt\":\"a\",\"n\":1,\"prompt\":\"b\",\"n\":2}", new int[] {7}));
    }

    @Test
    void aBodyThatNestsTooDeepIsRefused() throws Exception {
        final String most = "[".repeat(256) + "]".repeat(256);
        assertEquals(
                "{\"prompt\":[7],\"x\":" + most + "}",
                completion("{\"prompt\":\"a\",\"x\":" + most + "}", new int[] {7}));
        final TokenForm none =
                form(
                        InferenceRequest.Route.COMPLETIONS,
                        "{\"prompt\":\"a\",\"x\":[" + most + "]}",
                        new int[] {7});
        assertFalse(none.isPossible());
        final ApiException refusal = none.refusal();
        assertEquals(400, refusal.status());
        assertTrue(refusal.getMessage().contains("nests deeper than 256"), refusal.getMessage());
        final String ids = "{\"prompt\":[7],\"x\":[" + most + "]}";
        assertEquals(ids, completion(ids), "is sent as it is");
    }

    @Test
    void aHugePromptIsWrittenWhole() throws Exception {
        final int[] ids = IntStream.range(0, 1 << 17).toArray();
        final JsonNode tree = Json.MAPPER.readTree(completion("{\"prompt\":\"x\"}", ids));
        assertEquals(ids.length, tree.get("prompt").size());
        assertEquals(ids.length - 1, tree.get("prompt").get(ids.length - 1).intValue());
    }

    @Test
    void ofAChatStaysWhatACompletionKnows() throws Exception {
        assertEquals(
                "{\"model\":\"m\",\"stream\":true,\"n\":2,\"stop\":[\"x\"],\"temperature\":0.50,"
                        + "\"max_tokens\":9,\"prompt\":[7,8]}",
                chat(
                        "\"model\":\"m\","
                                + MESSAGES
                                + ",\"tools\":[],\"tool_choice\":\"none\",\"stream\":true,\"n\":2,"
                                + "\"chat_template_kwargs\":{\"a\":1},\"stop\":[\"x\"],"
                                + "\"add_generation_prompt\":true,\"temperature\":0.50,"
                                + "\"continue_final_message\":false,\"max_tokens\":9"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "-",
            value = {
                "\"max_tokens\":9 | 9 | -",
                "\"max_completion_tokens\":8 | 8 | -",
                "\"max_tokens\":9,\"max_completion_tokens\":8 | 8 | -",
                "\"max_tokens\":9,\"max_completion_tokens\":null | 9 | -",
                "\"max_tokens\":null | null | -",
                "\"top_p\":1 | null | -",
                "\"logprobs\":true | null | 0",
                "\"logprobs\":true,\"top_logprobs\":3 | null | 3",
                "\"logprobs\":true,\"top_logprobs\":null | null | 0",
                "\"logprobs\":false,\"top_logprobs\":3 | null | -",
                "\"logprobs\":null | null | -",
            })
    void limitsAndLogprobsAreSaidInTheCompletionsWords(
            String members, String maxTokens, String logprobs) throws Exception {
        final JsonNode body = Json.MAPPER.readTree(chat(MESSAGES + "," + members));
        assertTrue(body.has("max_tokens"), "a completion without has 16");
        assertEquals(maxTokens, body.get("max_tokens").asText());
        assertEquals(logprobs, body.has("logprobs") ? body.get("logprobs").asText() : null);
        assertFalse(body.has("top_logprobs"));
        assertFalse(body.has("max_completion_tokens"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"tools\":[{\"type\":\"function\"}] | tools",
                "\"tools\":[{\"type\":\"function\"}],\"tool_choice\":\"required\" | tools",
                "\"tools\":[{\"type\":\"function\"}],\"tool_choice\":{\"type\":\"function\"} |"
                        + " tools",
                "\"echo\":true | echo",
                "\"prompt_logprobs\":1 | prompt_logprobs",
                "\"use_beam_search\":true | use_beam_search",
            })
    void whatACompletionCannotGiveIsNamed(String members, String named) throws Exception {
        final TokenForm form =
                form(
                        InferenceRequest.Route.CHAT,
                        "{" + MESSAGES + "," + members + "}",
                        new int[] {7});
        assertFalse(form.isPossible());
        final JsonNode error = form.refusal().json("r").get("error");
        assertEquals(named, error.get("param").textValue());
        assertEquals("needs_text_worker", error.at("/kvasir/kind").textValue());
        assertTrue(error.get("message").textValue().contains("input=tokens"), error::toString);
    }

    /** Of ids an engine echoes a text of its own, with BOS and the like in it. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"prompt\":\"a\",\"echo\":true | false",
                "\"prompt\":[\"a\",\"b\"],\"echo\":true,\"prompt_logprobs\":1 | false",
                "\"prompt\":\"a\",\"echo\":false | true",
                "\"prompt\":\"a\",\"echo\":null | true",
                "\"prompt\":\"a\",\"prompt_logprobs\":1 | true",
                "\"prompt\":[1,2],\"echo\":true | true",
            })
    void theEchoOfATextNeedsTheText(String members, boolean possible) throws Exception {
        final InferenceRequest.Route route = InferenceRequest.Route.COMPLETIONS;
        final String body = "{" + members + "}";
        final TokenForm form = form(route, body, new int[] {7}, new int[] {8});
        assertEquals(possible, form.isPossible());
        if (!possible) {
            final JsonNode error = form.refusal().json("r").get("error");
            assertEquals("echo", error.get("param").textValue());
            assertEquals("needs_text_worker", error.at("/kvasir/kind").textValue());
            assertFalse(error.get("message").textValue().contains("chat"), error::toString);
            assertEquals(
                    "echo",
                    TokenForm.unknown(RequestParser.parse(route, bytes(body)), false)
                            .refusal()
                            .json("r")
                            .at("/error/param")
                            .textValue());
        }
    }

    @Test
    void aPromptWhoseIdsAreNotKnownSaysTheKnob() throws Exception {
        final InferenceRequest request =
                RequestParser.parse(
                        InferenceRequest.Route.COMPLETIONS, bytes("{\"prompt\":\"secret\"}"));
        final String without = TokenForm.unknown(request, false).refusal().getMessage();
        assertTrue(without.contains("set tokenizer"), without);
        assertFalse(without.contains("secret"), without);
        assertEquals(400, TokenForm.unknown(request, true).refusal().status());
    }
}
