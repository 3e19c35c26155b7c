package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.routing.PromptReader;
import io.kvasir.gateway.routing.RoutedPrompt;
import io.kvasir.prompt.chat.ChatModel;
import io.kvasir.prompt.chat.PromptRules;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

class RequestParserTest {
    /** As vLLM's CompletionRequest reads them. */
    @ParameterizedTest
    @ValueSource(strings = {"[1,0,7]", "[1.0,0.0,7.0]", "[true,false,7]", "[1,-0.0,7e0]"})
    void idsMayBeWholeFloatsAndBooleans(String prompt) throws Exception {
        final InferenceRequest request = completion("{\"prompt\":" + prompt + "}");
        assertArrayEquals(new int[] {1, 0, 7}, request.promptIds);
    }

    @Test
    void readsWhatRoutingNeedsOfACompletion() throws Exception {
        final InferenceRequest request =
                completion(
                        "{\"max_tokens\":3,\"model\":\"m\",\"prompt\":[5,6,2147483647],\"stream\":true,"
                            + "\"stream_options\":{\"include_usage\":true},\"cache_salt\":\"s\",\"x\":{\"prompt\":1}}");
        assertEquals("m", request.model);
        assertArrayEquals(new int[] {5, 6, Integer.MAX_VALUE}, request.promptIds);
        assertTrue(request.stream);
        assertTrue(request.includeUsage);
        assertEquals("s", request.cacheSalt);
    }

    @Test
    void readsWhatRoutingNeedsOfAChat() throws Exception {
        final InferenceRequest request =
                chat(
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"tools\":[{\"a\":1}],"
                            + "\"temperature\":0.5,\"add_generation_prompt\":false}");
        assertNull(request.model);
        assertFalse(request.stream);
        assertEquals("hi", request.messages().get(0).get("content").textValue());
        assertEquals(1, request.chat.get("tools").get(0).get("a").intValue());
        assertFalse(request.chat.get("add_generation_prompt").booleanValue());
        assertNull(request.chat.get("temperature"));
    }

    @Test
    void readsEveryPromptOfABatch() throws Exception {
        final InferenceRequest ids = completion("{\"prompt\":[[1,2],[3],[4]],\"n\":4}");
        assertArrayEquals(new int[] {1, 2}, ids.promptIds);
        assertArrayEquals(new int[] {3}, ids.moreIds.get(0));
        assertArrayEquals(new int[] {4}, ids.moreIds.get(1));
        assertEquals(3, ids.prompts());
        assertEquals(12, ids.sequences());
        final InferenceRequest texts =
                completion("{\"prompt\":[\"a\",\"b\"],\"n\":2,\"best_of\":5}");
        assertEquals("a", texts.promptText);
        assertEquals(List.of("b"), texts.moreTexts);
        assertEquals(10, texts.sequences());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "2 | 2",
                "2.0 | 2",
                "20e-1 | 2",
                "2.5 | 0",
                "-2.0 | 0",
                "1e30 | 2147483647",
                "NaN | 0",
                "true | 1",
                "false | 0",
                "null | 0",
                "[2] | 0",
                "\"2\" | 2",
                "\" +02\\n\" | 2",
                "\"\\u00a02\\u2028\" | 2",
                "\"1_0.00\" | 10",
                "\"-2\" | 0",
                "\"2.5\" | 0",
                "\"2.\" | 0",
                "\"_2\" | 0",
                "\"2e0\" | 0",
                "\"true\" | 0",
                "\"\" | 0",
                "\"9999999999\" | 2147483647",
            })
    void takesForAnIntegerWhatEnginesTake(String given, int expected) throws Exception {
        final int samples = Math.clamp(expected, 1, 1 << 14);
        assertEquals(samples, completion("{\"prompt\":[1],\"n\":" + given + "}").sequences());
        assertEquals(samples, completion("{\"prompt\":[1],\"best_of\":" + given + "}").sequences());
        assertEquals(
                expected,
                chat("{\"messages\":[{\"role\":\"user\"}],\"top_logprobs\":" + given + "}")
                        .topLogprobs);
        if (expected > 0) {
            assertEquals(
                    expected,
                    completion("{\"prompt\":[1],\"truncate_prompt_tokens\":" + given + "}")
                            .truncatePromptTokens);
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"prompt_embeds\":\"A\"} | 1",
                "{\"prompt_embeds\":[\"A\"]} | 1",
                "{\"prompt_embeds\":[\"A\",\"B\",[\"C\"]]} | 3",
                "{\"prompt_embeds\":[\"A\",\"B\"],\"prompt\":null} | 2",
                "{\"prompt\":[],\"prompt_embeds\":[\"A\",\"B\"]} | 2",
                "{\"prompt_embeds\":\"A\",\"prompt\":[]} | 1",
                "{\"prompt\":[],\"prompt_embeds\":\"A\",\"prompt\":\"x\"} | 2",
                "{\"prompt_embeds\":[\"A\",\"B\"],\"prompt\":[[1],[2]]} | 4",
                "{\"prompt\":\"x\",\"prompt_embeds\":\"A\"} | 2",
                "{\"prompt\":\"x\",\"prompt_embeds\":[]} | 1",
                "{\"prompt\":\"x\",\"prompt_embeds\":null} | 1",
                "{\"prompt\":\"x\",\"prompt_embeds\":[\"A\",\"B\"],\"prompt_embeds\":\"A\"} | 2",
            })
    void eachEmbeddingIsAPromptOfItsOwn(String body, int prompts) throws Exception {
        final InferenceRequest request = completion(body);
        assertEquals(prompts, request.prompts());
        assertEquals(prompts, request.sequences());
        request.dropPrompts();
        assertEquals(prompts, request.prompts());
    }

    @Test
    void aLongTextThatIsNoNumberIsReadInOnePass() throws Exception {
        final String zeros = "0_".repeat(1 << 20);
        assertEquals(1, completion("{\"prompt\":[1],\"n\":\"" + zeros + "x\"}").sequences());
        assertEquals(2, completion("{\"prompt\":[1],\"n\":\"" + zeros + "2\"}").sequences());
    }

    @ParameterizedTest
    @CsvSource({
        "true, true",
        "1, true",
        "1.0, true",
        "\"true\", true",
        "\"Yes\", true",
        "\"ON\", true",
        "\"t\", true",
        "\"1\", true",
        "0, false",
        "\"off\", false",
        "\"N\", false",
        "null, false"
    })
    void takesForABooleanWhatEnginesTake(String given, boolean expected) throws Exception {
        assertEquals(
                expected, completion("{\"prompt\":[1],\"stream\":" + given + "}").stream, given);
        final InferenceRequest chat =
                chat(
                        "{\"messages\":[{\"role\":\"user\"}],\"continue_final_message\":"
                                + given
                                + ",\"stream_options\":{\"include_usage\":"
                                + given
                                + "}}");
        assertEquals(expected, chat.includeUsage);
        assertEquals(expected, chat.chat.path("continue_final_message").booleanValue());
    }

    @Test
    void doesNotKeepAPromptThatHasBeenRead() throws Exception {
        final PromptReader reader =
                new PromptReader(
                        GatewayConfig.builder().set(GatewaySettings.MODEL, "m").build(),
                        null,
                        () -> UsageReader.UNKNOWN,
                        () -> false,
                        () -> PromptRules.VLLM,
                        _ -> false);
        final InferenceRequest chat = chat("{\"messages\":[{\"role\":\"user\"}],\"n\":2}");
        final InferenceRequest batch = completion("{\"prompt\":[[1,2],[3],[4]],\"n\":4}");
        reader.read(chat, null, "id");
        final RoutedPrompt prompt = reader.read(batch, null, "id");
        assertNull(chat.chat);
        assertEquals(2, chat.sequences());
        assertNull(batch.promptIds);
        assertEquals(3, batch.prompts());
        assertEquals(12, batch.sequences());
        assertArrayEquals(new int[] {1, 2, 3, 4}, prompt.tokens());
    }

    /** SGLang computes them instead of the messages; completions have no such member. */
    @Test
    void doesNotKnowTheTokensOfAChatThatBringsItsOwn() throws Exception {
        final PromptReader reader = reader(PromptRules.VLLM);
        final String messages = "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]";
        assertEquals(0, read(reader, chat("{\"input_ids\":[1]," + messages + "}")).length);
        assertNotEquals(0, read(reader, chat("{\"input_ids\":null," + messages + "}")).length);
        assertArrayEquals(
                new int[] {1}, read(reader, completion("{\"input_ids\":[2],\"prompt\":[1]}")));
    }

    /** SGLang makes other prompts of media, and what is cut off may be the beginning. */
    @Test
    void knowsWhatAChatWithAnImageBeginsWithAtVllm() throws Exception {
        final PromptReader reader = reader(PromptRules.VLLM);
        final String image =
                "{\"role\":\"user\",\"content\":[{\"type\":\"image_url\","
                        + "\"image_url\":{\"url\":\"data:,\"}}]}]";
        final String system = "\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"}";
        final int[] text = read(reader, chat("{" + system + "]}"));
        final RoutedPrompt prompt = reader.read(chat("{" + system + "," + image + "}"), null, "id");
        final int known = prompt.tokens().length;
        assertTrue(known > "be brief".length(), "tokens: " + known);
        final int common = Arrays.mismatch(text, prompt.tokens());
        assertTrue(common < 0 || common > "be brief".length(), "tokens in common: " + common);
        assertFalse(prompt.known());
        assertEquals(
                text.length + 1,
                reader.tokensOrRefusal(chat("{\"add_special_tokens\":true," + system + "]}"))
                        .length);
        assertEquals(
                known + 1,
                read(reader, chat("{\"add_special_tokens\":true," + system + "," + image + "}"))
                        .length);
        assertEquals(
                0,
                read(reader, chat("{\"truncate_prompt_tokens\":5," + system + "," + image + "}"))
                        .length);
        assertEquals(
                0, read(reader(PromptRules.SGLANG), chat("{" + system + "," + image + "}")).length);
    }

    @Test
    void knowsWhatOtherConversationsWithAnImageBeginWithAtVllm() throws Exception {
        final PromptReader reader = reader(PromptRules.VLLM);
        final String chat =
                "{\"messages\":[{\"role\":\"system\",\"content\":\"be brief\"},{\"role\":\"user\","
                        + "\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}}]}]}";
        final int[] known = read(reader, chat(chat));
        final byte[] messages =
                ("{\"system\":\"be brief\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":"
                                + "\"image\",\"source\":{\"type\":\"url\",\"url\":\"u\"}}]}]}")
                        .getBytes(UTF_8);
        final byte[] responses =
                ("{\"instructions\":\"be"
                                + " brief\",\"input\":[{\"role\":\"user\",\"content\":[{\"type\":"
                                + "\"input_image\",\"image_url\":\"u\"}]}]}")
                        .getBytes(UTF_8);
        final RoutedPrompt prompt =
                reader.read(
                        RequestParser.parse(InferenceRequest.Route.MESSAGES, messages), null, "id");
        assertArrayEquals(known, prompt.tokens());
        assertFalse(prompt.known());
        final int[] marked =
                read(reader, RequestParser.parse(InferenceRequest.Route.RESPONSES, responses));
        assertEquals(known.length + 1, marked.length);
        assertEquals(-1, Arrays.mismatch(known, Arrays.copyOfRange(marked, 1, marked.length)));
        assertEquals(
                0,
                read(
                                reader(PromptRules.SGLANG),
                                RequestParser.parse(InferenceRequest.Route.MESSAGES, messages))
                        .length);
    }

    private static PromptReader reader(PromptRules rules) {
        return new PromptReader(
                GatewayConfig.builder().set(GatewaySettings.MODEL, "sim").build(),
                ChatModel.simulated(),
                () -> UsageReader.UNKNOWN,
                () -> false,
                () -> rules,
                _ -> false);
    }

    private static int[] read(PromptReader reader, InferenceRequest request) throws Exception {
        return reader.read(request, null, "id").tokens();
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "\"no\"", "\"\\u0030\"", "0.0"})
    void writesAWordForFalseAnew(String given) throws Exception {
        final InferenceRequest request =
                completion(
                        "{\"stream_options\":{\"a\":1,\"include_usage\":"
                                + given
                                + "},\"prompt\":[1]}");
        final JsonNode tree = Json.MAPPER.readTree(request.bodyWithUsage());
        assertTrue(tree.at("/stream_options/include_usage").booleanValue(), tree.toString());
        assertEquals(1, tree.at("/stream_options/a").intValue());
        assertEquals(1, tree.at("/prompt/0").intValue());
    }

    @Test
    void leavesLongNumbersToTheEngine() throws Exception {
        for (String number :
                new String[] {"9".repeat(5000), "0." + "1".repeat(15_000), "1e400000", "NaN"}) {
            assertEquals(
                    1, completion("{\"seed\":" + number + ",\"prompt\":[1],\"n\":0}").sequences());
        }
        assertEquals(
                Integer.MAX_VALUE,
                completion("{\"prompt\":[1],\"truncate_prompt_tokens\":" + "9".repeat(5000) + "}")
                        .truncatePromptTokens);
        assertThrows(
                ApiException.class,
                () -> completion("{\"seed\":" + "9".repeat(30_000_000) + ",\"prompt\":[1]}"));
    }

    @Test
    void ofAMemberGivenTwiceTheLastCounts() throws Exception {
        final InferenceRequest request =
                completion("{\"model\":\"a\",\"prompt\":\"x\",\"model\":\"b\",\"prompt\":[1]}");
        assertEquals("b", request.model);
        assertNull(request.promptText);
        assertArrayEquals(new int[] {1}, request.promptIds);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "'n':16,'n':1",
                "'best_of':16,'best_of':null",
                "'echo':true,'echo':false",
                "'prompt_logprobs':1,'prompt_logprobs':null",
                "'use_beam_search':true,'use_beam_search':false"
            })
    void whatIsTakenBackIsNotAskedFor(String members) throws Exception {
        final InferenceRequest request =
                completion("{\"prompt\":[1]," + members.replace('\'', '"') + "}");
        assertEquals(1, request.sequences());
        assertNull(request.samplesIn);
        assertNull(request.wholeFor);
        assertTrue(request.statesWhatWasCached());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "                                    |          | the body is empty",
                "[]                                  |          | must be a JSON object",
                "{                                   |          | not valid JSON at line 1",
                "{\"prompt\":[}                      |          | expected ']' (for Array starting"
                        + " at line 1, column 11)",
                "{\"prompt\":\"a\"}}                 |          | not valid JSON",
                "{\"prompt\":\"a\"}{}                |          | something after",
                "{\"prompt\":\"a\",}                 |          | not valid JSON at line 1, column",
                "{\"prompt_embeds\":[\"A\"            |          | not valid JSON at line 1",
                "{}                                  | prompt   | 'prompt' is missing",
                "{\"prompt\":null}                   | prompt   | 'prompt' is missing",
                "{\"prompt\":7}                      | prompt   | must be a string, a list of token"
                        + " ids",
                "{\"prompt\":[]}                     | prompt   | 'prompt' is empty",
                "{\"prompt\":[[]]}                   | prompt[0] | 'prompt[0]' is empty",
                "{\"prompt\":[1,-1]}                 | prompt   | 'prompt[1]' = -1 is no token id",
                "{\"prompt\":[2147483648]}           | prompt   | 'prompt[0]' = 2147483648 is no"
                        + " token id",
                "{\"prompt\":[99999999999999999999]} | prompt   | is no token id",
                "{\"prompt\":[1.5]}                  | prompt   | must be a token id",
                "{\"prompt\":[1e30]}                 | prompt   | 'prompt[0]' = 1e30 is no token"
                        + " id",
                "{\"prompt\":[1.0,-2.0]}             | prompt   | 'prompt[1]' = -2.0 is no token"
                        + " id",
                "{\"prompt\":[null]}                 | prompt   | must be a token id",
                "{\"prompt\":[1,\"a\"]}              | prompt   | 'prompt[1]' must be a token id",
                "{\"prompt\":[\"a\",1]}              | prompt[1] | must be a string like the first"
                        + " one",
                "{\"prompt\":[[1],\"a\"]}            | prompt[1] | must be a list of token ids like"
                        + " the first",
                "{\"prompt\":\"a\",\"stream\":2}     | stream   | 'stream' must be a boolean, but"
                        + " is a number",
                "{\"prompt\":\"a\",\"model\":[]}     | model    | 'model' must be a string, but is"
                        + " a list",
                "{\"prompt\":\"a\",\"truncate_prompt_tokens\":2.5} | truncate_prompt_tokens | must"
                        + " be an integer of at least -1, but is a number",
                "{\"prompt\":\"a\",\"truncate_prompt_tokens\":-2} | truncate_prompt_tokens | must"
                        + " be an integer of at least -1",
                "{\"prompt\":\"a\",\"truncate_prompt_tokens\":\"x\"} | truncate_prompt_tokens |"
                        + " must be an integer of at least -1, but is a string",
                "{\"prompt\":\"a\",\"stream_options\":1} | stream_options | must be an object",
                "{\"prompt\":\"a\",\"cache_salt\":{}} | cache_salt | must be a string, but is an"
                        + " object",
            })
    void refusesWhatIsNoCompletion(String body, String param, String message) {
        final ApiException e =
                assertThrows(ApiException.class, () -> completion(body == null ? "" : body));
        assertEquals(400, e.status());
        assertTrue(e.getMessage().contains(message), e.getMessage());
        final JsonNode error = e.json("id").get("error");
        assertEquals(param, error.get("param").textValue());
        assertEquals("invalid_request_error", error.get("type").textValue());
        assertEquals("client", error.get("kvasir").get("leg").textValue());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\"prompt\":7",
                "\"prompt\":[]",
                "\"prompt\":[[1],{\"a\":[1]}]",
                "\"prompt\":[\"b\",[[2]]]",
                "\"stream\":2",
                "\"stream\":{\"stream\":[1]}",
                "\"model\":[[\"m\"],{}]",
                "\"cache_salt\":{\"cache_salt\":[\"s\"]}",
                "\"truncate_prompt_tokens\":{\"prompt\":7}",
                "\"stream_options\":1",
                "\"stream_options\":{\"include_usage\":[{}],\"x\":{}}"
            })
    void ofOneGivenTwiceTheLastCountsAlsoBehindAWrongOne(String wrong) throws Exception {
        final String right =
                "\"prompt\":\"a\",\"stream\":true,\"model\":\"m\",\"cache_salt\":\"s\","
                        + "\"truncate_prompt_tokens\":null,"
                        + "\"stream_options\":{\"include_usage\":7,\"include_usage\":true}";
        final InferenceRequest request = completion("{" + wrong + "," + right + "}");
        assertEquals("a", request.promptText);
        assertTrue(request.stream && request.includeUsage);
        assertEquals("m", request.model);
        assertEquals("s", request.cacheSalt);
        final ApiException e =
                assertThrows(ApiException.class, () -> completion("{" + right + "," + wrong + "}"));
        assertEquals(400, e.status());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{}                       | text         | neither 'text' nor 'input_ids' is given",
                "{\"text\":null}          | text         | neither 'text' nor 'input_ids' is given",
                "{\"text\":7}             | text         | 'text' must be a string, a list of",
                "{\"input_ids\":[]}       | input_ids    | 'input_ids' is empty",
                "{\"input_ids\":[-1]}     | input_ids    | 'input_ids[0]' = -1 is no token id",
                "{\"input_ids\":[[1],2]}  | input_ids[1] | 'input_ids[1]' must be a list of token",
            })
    void refusesWhatHasNoPromptOfGenerate(String body, String param, String message) {
        final ApiException e = assertThrows(ApiException.class, () -> generate(body));
        assertEquals(400, e.status());
        assertTrue(e.getMessage().contains(message), e.getMessage());
        assertEquals(param, e.json("id").at("/error/param").textValue());
    }

    private static InferenceRequest generate(String body) throws ApiException {
        return RequestParser.parse(InferenceRequest.Route.GENERATE, body.getBytes(UTF_8));
    }

    @Test
    void readsWhatRoutingNeedsOfGenerate() throws Exception {
        final InferenceRequest both =
                generate(
                        "{\"text\":\"a\",\"input_ids\":[1,2],\"stream\":true,\"sampling_params\":"
                                + "{\"max_new_tokens\":null,\"n\":3,\"stop\":[\"x\"]}}");
        assertArrayEquals(new int[] {1, 2}, both.promptIds, "ids count");
        assertTrue(both.stream);
        assertEquals(3, both.sequences());
        assertFalse(both.limitsOutput);
        final InferenceRequest text = generate("{\"input_ids\":null,\"text\":\"a\"}");
        assertEquals("a", text.promptText);
        assertTrue(text.limitsOutput, "by 128");
        assertTrue(text.statesWhatWasCached());
        final InferenceRequest batch =
                generate("{\"input_ids\":[[1],[2,3]],\"text\":\"a\",\"sampling_params\":[{},{}]}");
        assertArrayEquals(new int[] {2, 3}, batch.moreIds.getFirst());
        assertEquals(2, batch.prompts());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'return_logprob':true|false",
                "'return_logprob':true,'logprob_start_len':-1|false",
                "'return_logprob':true,'logprob_start_len':0|true",
                "'logprob_start_len':7,'return_logprob':true|true",
                "'logprob_start_len':0|false",
                "'logprob_start_len':0,'return_logprob':false|false",
            })
    void whatIsAskedOfThePromptsOwnTokensIsComputedAnew(String members, boolean anew)
            throws Exception {
        final InferenceRequest request =
                generate("{'text':'a',".replace('\'', '"') + members.replace('\'', '"') + "}");
        assertEquals(anew, request.isComputedAnew());
        assertEquals(!anew, request.statesWhatWasCached());
    }

    @Test
    void readsWhatRoutingNeedsOfTokens() throws Exception {
        final InferenceRequest request =
                tokens(
                        "{'model':'m','token_ids':[1,2],'stream':true,'cache_salt':'s','text':'x',"
                                + "'sampling_params':{'max_tokens':7,'n':2}}");
        assertArrayEquals(new int[] {1, 2}, request.promptIds);
        assertEquals("m", request.model);
        assertEquals("s", request.cacheSalt);
        assertTrue(request.stream && request.limitsOutput);
        assertEquals(2, request.sequences());
        assertFalse(request.isComputedAnew());
        assertFalse(tokens("{'token_ids':[1]}").limitsOutput);
        for (String anew :
                List.of("'prompt_logprobs':0", "'skip_reading_prefix_cache':true", "'n':1")) {
            assertEquals(
                    !anew.equals("'n':1"),
                    tokens("{'token_ids':[1],'sampling_params':{" + anew + "}}").isComputedAnew(),
                    anew);
        }
        assertTrue(tokens("{'token_ids':[1],'features':{}}").hasOtherTokens());
        assertEquals(
                "'token_ids' is missing",
                assertThrows(ApiException.class, () -> tokens("{}")).getMessage());
    }

    private static InferenceRequest tokens(String body) throws ApiException {
        return RequestParser.parse(
                InferenceRequest.Route.INFERENCE_GENERATE, body.replace('\'', '"').getBytes(UTF_8));
    }

    @Test
    void ofABatchWithASaltForEachPromptNoneIsFollowed() throws Exception {
        final String salts = "\"cache_salt\":[\"a\",\"b\"]";
        final InferenceRequest batch = completion("{\"prompt\":[[1],[2]]," + salts + "}");
        assertTrue(batch.severalSalts && batch.hasOtherTokens());
        assertTrue(generate("{\"text\":[\"a\",\"b\"]," + salts + "}").severalSalts);
        final InferenceRequest one =
                completion("{\"prompt\":[1]," + salts + ",\"cache_salt\":\"s\"}");
        assertFalse(one.severalSalts || one.hasOtherTokens());
        assertEquals("s", one.cacheSalt);
        assertThrows(ApiException.class, () -> tokens("{'token_ids':[1]," + salts + "}"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "'input_embeds':[[0.5]]",
                "'text':'a','image_data':'i'",
                "'input_ids':[1],'session_params':{'id':'s'}"
            })
    void doesNotKnowWhatComesBesideAPromptOfGenerate(String members) throws Exception {
        assertTrue(generate(("{" + members + "}").replace('\'', '"')).hasOtherTokens());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{}                               | messages         | 'messages' is missing",
                "{\"messages\":[]}                | messages         | 'messages' is empty",
                "{\"messages\":{}}                | messages         | must be a list",
                "{\"messages\":[1]}               | messages[0]      | must be an object, but is a"
                        + " number",
                "{\"messages\":[{}]}              | messages[0].role | must be a string",
                "{\"messages\":[{\"role\":\"user\"}],\"tools\":{}} | tools | 'tools' must be a"
                        + " list",
            })
    void refusesWhatIsNoChat(String body, String param, String message) {
        final ApiException e = assertThrows(ApiException.class, () -> chat(body));
        assertEquals(400, e.status());
        assertTrue(e.getMessage().contains(message), e.getMessage());
        assertEquals(param, e.json(null).get("error").get("param").textValue());
    }

    @ParameterizedTest
    @CsvSource({
        "C0AF, 23", // a slash in two bytes
        "EDA080, 23", // half of a pair
        "F4908080, 23", // beyond the last character
        "C3, 23", // broken off
        "61616161616161616161C080, 33",
        "C3A9E282ACF09F9880FF, 32"
    })
    void refusesWhatIsNoUtf8(String hex, int at) {
        final ApiException refused =
                assertThrows(
                        ApiException.class,
                        () -> RequestParser.parse(InferenceRequest.Route.COMPLETIONS, prompt(hex)));
        assertEquals(400, refused.status());
        assertTrue(refused.getMessage().contains("at byte " + at), refused.getMessage());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "61", "C3A9", "E282AC", "F09F9880", "EFBFBD", "61616161616161C3A9"})
    void takesUtf8(String hex) throws Exception {
        RequestParser.parse(InferenceRequest.Route.COMPLETIONS, prompt(hex));
        RequestParser.parse(InferenceRequest.Route.COMPLETIONS, prompt(hex.repeat(2_000)));
    }

    private static byte[] prompt(String hex) {
        final ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes("{\"model\":\"m\",\"prompt\":\"".getBytes(UTF_8));
        body.writeBytes(HexFormat.of().parseHex(hex));
        body.writeBytes("\"}".getBytes(UTF_8));
        return body.toByteArray();
    }

    @Test
    void deepNestingIsRefusedInsteadOfOverflowingTheStack() {
        final ApiException e =
                assertThrows(
                        ApiException.class,
                        () ->
                                completion(
                                        "{\"x\":"
                                                + "[".repeat(100_000)
                                                + "]".repeat(100_000)
                                                + "}"));
        assertEquals(400, e.status());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"prompt\":\"a\",\"stream\":true}",
                "  { \"prompt\" : \"ä🙂\" ,\n \"stream\" : true }  ",
                "{\"prompt\":\"a\",\"stream\":true,\"stream_options\":null}",
                "{\"prompt\":\"ä\",\"stream_options\" : {},\"stream\":true}",
                "{\"prompt\":\"a\",\"stream_options\":{ \"include_usage\" : false"
                        + " },\"stream\":true}",
                "{\"prompt\":\"a\",\"stream_options\":{ \"include_usage\" : null"
                        + " },\"stream\":true}",
                "{\"prompt\":\"a\",\"stream_options\":{\"continuous_usage_stats\":false},\"stream\":true}",
                "{\"prompt\":\"a\",\"stream_options\":{\"include_usage\":true},\"stream_options\":null}",
                "\uFEFF{\"prompt\":\"a\",\"stream\":true}",
            })
    void askingForUsageChangesNothingElse(String body) throws Exception {
        final InferenceRequest request = completion(body);
        assertFalse(request.includeUsage);
        final byte[] edited = request.bodyWithUsage();
        final JsonNode tree = Json.MAPPER.readTree(edited);
        assertTrue(tree.get("stream_options").get("include_usage").booleanValue());
        assertEquals(Json.MAPPER.readTree(body.getBytes(UTF_8)).get("prompt"), tree.get("prompt"));
        final InferenceRequest again =
                RequestParser.parse(InferenceRequest.Route.COMPLETIONS, edited);
        assertTrue(again.includeUsage, new String(edited, UTF_8));
        // whatever stands in front of and behind the edit is as it was sent
        final String text = new String(edited, UTF_8);
        assertTrue(text.endsWith(body.substring(body.lastIndexOf('}'))), text);
        assertTrue(
                text.length() - body.length()
                        <= "\"stream_options\":{\"include_usage\":true},".length());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{'a':1}|true",
                "{'b':{'a':1},'c':[{'a':1}]}|false",
                "{'b':[1,{}],'a':[]}|true",
                "{'a':null}|false",
                "{'a':null,'a':0}|true",
                "{'a':{},'a':null}|false",
                "{}|false",
                "['a']|false",
                "''|false"
            })
    void findsAMember(String body, boolean expected) throws Exception {
        assertEquals(expected, RequestParser.has(body.replace('\'', '"').getBytes(UTF_8), "a"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"{", "{\"a\"}", "{\"a\":1,}", "{\"a\":[}"})
    void findsNoMemberInWhatIsNoJson(String body) {
        final ApiException refused =
                assertThrows(
                        ApiException.class, () -> RequestParser.has(body.getBytes(UTF_8), "a"));
        assertEquals(400, refused.status());
    }

    private static InferenceRequest completion(String body) throws ApiException {
        return RequestParser.parse(InferenceRequest.Route.COMPLETIONS, body.getBytes(UTF_8));
    }

    private static InferenceRequest chat(String body) throws ApiException {
        return RequestParser.parse(InferenceRequest.Route.CHAT, body.getBytes(UTF_8));
    }
}
