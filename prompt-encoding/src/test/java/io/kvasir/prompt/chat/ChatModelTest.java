package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.prompt.jinja.TemplateLimits;
import io.kvasir.prompt.tokenizer.PromptException;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Chats become the ids that vLLM's own code made of the same requests; see chat/ORIGIN.md. */
class ChatModelTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String TEMPLATES = "jinja/templates/";

    private static final TemplatePolicy TRUSTING =
            new TemplatePolicy(true, TemplateLimits.DEFAULT, 1 << 20);

    @TempDir private static Path folder;

    private static JsonNode json(String path) throws IOException {
        return MAPPER.readTree(TestFiles.read(path));
    }

    private static ChatModel model(String name, JsonNode described) throws IOException {
        final Path model = Files.createDirectories(folder.resolve(name));
        Files.write(
                model.resolve("tokenizer.json"),
                TestFiles.read(
                        "tokenizer/" + described.get("tokenizer").asText() + "/tokenizer.json"));
        final ObjectNode config = described.get("config").deepCopy();
        for (Map.Entry<String, JsonNode> file : described.path("files").properties()) {
            final Path target = model.resolve(file.getKey());
            Files.createDirectories(target.getParent());
            Files.write(target, TestFiles.read(TEMPLATES + file.getValue().asText()));
        }
        final ArrayNode named = MAPPER.createArrayNode();
        for (Map.Entry<String, JsonNode> inline : described.path("inline").properties()) {
            named.addObject()
                    .put("name", inline.getKey())
                    .put(
                            "template",
                            new String(
                                    TestFiles.read(TEMPLATES + inline.getValue().asText()),
                                    StandardCharsets.UTF_8));
        }
        if (named.size() == 1) {
            config.put("chat_template", named.get(0).get("template").asText());
        } else if (!named.isEmpty()) {
            config.set("chat_template", named);
        }
        MAPPER.writeValue(model.resolve("tokenizer_config.json").toFile(), config);
        return ChatModel.load(model, TRUSTING);
    }

    private static int[] ids(JsonNode array) {
        final int[] ids = new int[array.size()];
        for (int i = 0; i < ids.length; i++) {
            ids[i] = array.get(i).asInt();
        }
        return ids;
    }

    /** A text with a date in it differs from the recorded one. */
    private static boolean dated(String text) {
        return text != null && (text.contains("Date: ") || text.contains("Current date"));
    }

    @TestFactory
    List<DynamicTest> rendersRequestsLikeVllm() throws IOException {
        final JsonNode expected = json("chat/expected.json");
        final JsonNode requests = json("chat/requests.json");
        final List<DynamicTest> tests = new ArrayList<>();
        for (Map.Entry<String, JsonNode> described : json("chat/models.json").properties()) {
            final ChatModel model = model(described.getKey(), described.getValue());
            final JsonNode own = expected.get(described.getKey());
            for (Map.Entry<String, JsonNode> chat : own.get("chats").properties()) {
                tests.add(
                        DynamicTest.dynamicTest(
                                described.getKey() + ": " + chat.getKey(),
                                () -> check(model, requests.get(chat.getKey()), chat.getValue())));
            }
            for (Map.Entry<String, JsonNode> prompt : own.get("completions").properties()) {
                tests.add(
                        DynamicTest.dynamicTest(
                                described.getKey() + " completes " + prompt.getKey(),
                                () ->
                                        assertArrayEquals(
                                                ids(prompt.getValue()),
                                                model.completionTokens(prompt.getKey()))));
            }
        }
        assertTrue(tests.size() > 250, "requests: " + tests.size());
        return tests;
    }

    private static void check(ChatModel model, JsonNode request, JsonNode expected) {
        if (expected.has("error")) {
            final PromptException refusal =
                    assertThrows(PromptException.class, () -> model.chat(request));
            assertEquals(PromptException.Kind.INVALID, refusal.kind());
            return;
        }
        final RenderedPrompt prompt = model.chat(request);
        if (dated(expected.get("text").asText())) {
            final String day = "[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2} [A-Z][a-z]{2} [0-9]{4}";
            assertEquals(
                    expected.get("text").asText().replaceFirst(day, "DAY"),
                    prompt.text().replaceFirst(day, "DAY"));
            return;
        }
        assertEquals(expected.get("text").asText(), prompt.text());
        assertArrayEquals(ids(expected.get("tokens")), prompt.tokens());
    }

    private static JsonNode request(String json) throws IOException {
        return MAPPER.readTree(json.replace('`', '"'));
    }

    @Test
    void simulatedModelHasOneTokenPerByte() throws IOException {
        try (ChatModel model = ChatModel.simulated()) {
            final String text = "Aé😀\u0000\n ~";
            final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
            final int[] ids = model.completionTokens(text);
            assertEquals(256, ids[0]);
            for (int i = 0; i < bytes.length; i++) {
                assertEquals(bytes[i] & 0xFF, ids[i + 1]);
            }
            assertEquals(text, model.tokenizer().decode(ids, true));
            assertEquals(260, model.tokenizer().idCount());
            assertEquals(257, model.tokenizer().idOf("<|end_of_text|>"));
            final RenderedPrompt chat =
                    model.chat(request("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"));
            assertEquals("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", chat.text());
            assertEquals(258, chat.tokens()[0]);
            assertEquals('u', chat.tokens()[1]);
        }
    }

    /** What vLLM makes of them: empty texts are left out for templates that take one text only. */
    @ParameterizedTest
    @CsvSource({
        "'{{ m.content }}', 'a\nb'",
        "'{% for p in m.content %}[{{ p.text }}]{% endfor %}', '[a][][b][]'"
    })
    void emptyTextsAreJoinedToNoOther(String ofMessage, String expected) throws IOException {
        final Path model = Files.createDirectories(folder.resolve("empty"));
        Files.write(
                model.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        Files.writeString(
                model.resolve("chat_template.jinja"),
                "{% for m in messages %}" + ofMessage + "{% endfor %}");
        final JsonNode request =
                MAPPER.readTree(
                        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
                            + "{\"type\":\"thinking\",\"thinking\":\"\"},{\"type\":\"text\",\"text\":\"b\"},"
                            + "{\"type\":\"text\",\"text\":\"\"}]}],\"add_generation_prompt\":false}");
        try (ChatModel empty = ChatModel.load(model)) {
            assertEquals(expected, empty.chat(request).text());
        }
    }

    /** The reference's prompts, of a template that strips as Python does. */
    @ParameterizedTest
    @CsvSource({
        "'Hi\u00a0', 'Hi'",
        "'Hi\u0085', 'Hi'",
        "'Hi\u2007', 'Hi'",
        "'\u00a0Hi', 'Hi'",
        "'\u202f Hi \u3000', 'Hi'",
        "'Hi\u200b', 'Hi\u200b'"
    })
    void aFinalMessageIsStrippedAsInPython(String content, String expected) throws IOException {
        final Path model = Files.createDirectories(folder.resolve("trims"));
        Files.write(
                model.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        Files.writeString(
                model.resolve("chat_template.jinja"),
                "{% for m in messages %}{{ m.content | trim }}{% endfor %}");
        final ObjectNode request =
                MAPPER.createObjectNode()
                        .put("continue_final_message", true)
                        .put("add_generation_prompt", false);
        request.putArray("messages").addObject().put("role", "assistant").put("content", content);
        try (ChatModel trims = ChatModel.load(model)) {
            assertEquals(expected, trims.chat(request).text());
        }
    }

    @Test
    void tellsImagesFromMistakes() throws IOException {
        try (ChatModel model = ChatModel.simulated()) {
            final JsonNode image =
                    request(
                            "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"u\"}}]}]}");
            assertEquals(
                    PromptException.Kind.UNKNOWN_TOKENS,
                    assertThrows(PromptException.class, () -> model.chat(image)).kind());
            for (String wrong :
                    new String[] {
                        "{}",
                        "{\"messages\":[{\"content\":\"x\"}]}",
                        "{\"messages\":[{\"role\":\"user\",\"content\":5}]}",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":[{}]}",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"add_generation_prompt\":\"yes\"}",
                        "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"chat_template_kwargs\":{\"tokenize\":true}}"
                    }) {
                final JsonNode request = request(wrong);
                assertEquals(
                        PromptException.Kind.INVALID,
                        assertThrows(PromptException.class, () -> model.chat(request), wrong)
                                .kind());
            }
        }
    }

    /** What vLLM 0.32.0 does not take, or prints by the template's type of content. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "{`role`:`user`,`content`:[{`type`:`text`,`text`:5}]}",
                "{`role`:`user`,`content`:[{`type`:`text`,`text`:null}]}",
                "{`role`:`user`,`content`:[{`type`:`text`}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`text`,`text`:{`x`:1}}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`text`,`text`:[`x`]}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`refusal`,`refusal`:true}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`input_text`,`text`:null}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`thinking`}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`tool_reference`}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`tool_reference`,`name`:5}]}",
                "{`role`:`user`,`content`:null}",
                "{`role`:`user`,`content`:`a`,`name`:null}",
                "{`role`:`assistant`,`content`:`a`,`name`:5}",
                "{`role`:`tool`,`content`:`a`,`tool_call_id`:5}"
            })
    void refusesWhatHasNoTextWhereTextBelongs(String message) throws IOException {
        try (ChatModel model = ChatModel.simulated()) {
            final JsonNode request = request("{`messages`:[%s]}".formatted(message));
            assertEquals(
                    PromptException.Kind.INVALID,
                    assertThrows(PromptException.class, () -> model.chat(request)).kind());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{`type`:`foo`,`text`:`b`}",
                "{`type`:5,`text`:`b`}",
                "{`type`:`text`,`text`:`b`,`uuid`:`u`}",
                "{`type`:`input_audio`,`input_audio`:{`data`:``,`format`:`wav`}}",
                "5"
            })
    void knowsNoTokensOfOtherParts(String part) throws IOException {
        try (ChatModel model = ChatModel.simulated()) {
            final JsonNode request =
                    request("{`messages`:[{`role`:`user`,`content`:[`a`,%s]}]}".formatted(part));
            assertEquals(
                    PromptException.Kind.UNKNOWN_TOKENS,
                    assertThrows(PromptException.class, () -> model.chat(request)).kind());
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{`role`:`user`,`content`:[`a`,{`type`:`text`,`text`:null}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`refusal`}]}",
                "{`role`:`user`,`content`:[`a`,{`type`:`text`,`text`:``}]}",
                "{`role`:`user`,`content`:`a`,`tool_call_id`:5}"
            })
    void leavesOutWhatVllmLeavesOut(String message) throws IOException {
        try (ChatModel model = ChatModel.simulated()) {
            assertEquals(
                    model.chat(request("{`messages`:[{`role`:`user`,`content`:`a`}]}")).text(),
                    model.chat(request("{`messages`:[%s]}".formatted(message))).text());
        }
    }

    @Test
    void worksWithoutOrWithABrokenTemplateForCompletions() throws IOException {
        final Path model = Files.createDirectories(folder.resolve("without"));
        Files.write(
                model.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        final JsonNode chat = request("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
        try (ChatModel bare = ChatModel.load(model)) {
            assertFalse(bare.hasChatTemplate());
            assertEquals(0, bare.completionTokens("x")[0]);
            final PromptException error =
                    assertThrows(PromptException.class, () -> bare.chat(chat));
            assertTrue(error.getMessage().contains("no chat template"), error.getMessage());
        }
        Files.writeString(model.resolve("chat_template.jinja"), "a\n{% include 'b' %}");
        try (ChatModel broken = ChatModel.load(model.resolve("tokenizer.json"))) {
            final PromptException error =
                    assertThrows(PromptException.class, () -> broken.chat(chat));
            assertEquals(PromptException.Kind.UNKNOWN_TOKENS, error.kind());
            assertTrue(error.getMessage().contains("line 2"), error.getMessage());
        }
    }

    /** What transformers 5.19.0 makes of the configuration, by the own code and by the library. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\'',
            value = {
                "{`added_tokens_decoder`:{`4`:{`content`:`<pad>`,`lstrip`:true,`special`:true}}}"
                        + "| one  <pad>  two | 83,306,4,225,426",
                "{`added_tokens_decoder`:{`4`:{`content`:`<pad>`,`special`:true}},"
                        + "`extra_special_tokens`:[{`__type`:`AddedToken`,`content`:`<pad>`,"
                        + "`lstrip`:true}]} | one  <pad>  two | 83,306,225,225,4,225,426",
                "{`additional_special_tokens`:[`<x1>`,`<x2>`]}"
                        + "| a <x1> <x2> b | 69,225,696,225,697,273",
                "{`extra_special_tokens`:[`<x2>`],`additional_special_tokens`:[`<x1>`]}"
                        + "| a <x1> <x2> b | 69,225,32,92,21,34,225,696,273",
                "{`additional_special_tokens`:[`<x1>`],`extra_special_tokens`:{`m`:`<x2>`}}"
                        + "| a <x1> <x2> b | 69,225,697,225,696,273",
                "{`extra_special_tokens`:{`m`:{`__type`:`AddedToken`,`content`:`<x1>`,"
                        + "`lstrip`:true},`n`:`<x2>`}} | a <x1> <x2> b | 69,696,225,697,273",
                "{`image_token`:`<x9>`,`extra_special_tokens`:{`k`:`<x7>`},`video_token`:"
                        + "{`__type`:`AddedToken`,`content`:`<x8>`,`lstrip`:true}}"
                        + "| a <x9> <x8> <x7> b | 69,225,697,696,225,698,273",
                "{`extra_special_tokens`:{`m`:`<x1>`},`mask_token`:`<m>`,`added_tokens_decoder`:"
                        + "{`900`:{`content`:`<d>`,`special`:true}}}"
                        + "| a <x1> <m> <d> b | 69,225,698,225,697,225,696,273",
                "{`mask_token`:{`__type`:`AddedToken`,`content`:`<m>`,`lstrip`:true,"
                        + "`normalized`:true}} | a <m> b | 69,696,273"
            })
    void theConfigurationChangesAndAddsTokens(String config, String text, String expected)
            throws IOException {
        final int[] ids = Stream.of(expected.split(",")).mapToInt(Integer::parseInt).toArray();
        final ObjectNode own = (ObjectNode) json("tokenizer/tiny/tokenizer.json");
        final ObjectNode library = own.deepCopy();
        library.putObject("normalizer").put("type", "Lowercase");
        for (ObjectNode tokenizer : List.of(own, library)) {
            final Path model = Files.createDirectories(folder.resolve("configured"));
            MAPPER.writeValue(model.resolve("tokenizer.json").toFile(), tokenizer);
            Files.writeString(model.resolve("tokenizer_config.json"), config.replace('`', '"'));
            try (ChatModel configured = ChatModel.load(model)) {
                assertArrayEquals(ids, configured.encode(text, false), config);
            }
        }
    }

    /** Recorded of transformers 5.19.0, as above; "-" where there is no such file. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\'',
            nullValues = "-",
            value = {
                "{`bos_token`:`<config>`} | {`bos_token`:`<map>`,`eos_token`:{`content`:`<end>`,"
                        + "`lstrip`:true}} | - | a <map> <end> b | <map> | 69,225,696,697,273",
                "- | {`bos_token`:`<map>`} | - | a <map> b | <map> | 69,225,696,273",
                "{`bos_token`:`<config>`,`added_tokens_decoder`:{}} | {`bos_token`:`<map>`,"
                        + "`eos_token`:`<end>`} | {`<x1>`:900} | a <config> <end> <x1> b | <config>"
                        + " | 69,225,696,225,32,275,72,34,225,32,92,21,34,273",
                "{`bos_token`:`<config>`} | {`bos_token`:null} | - | a <config> b | ''"
                        + " | 69,225,32,71,83,82,283,75,34,273",
                "{} | {`additional_special_tokens`:[`<x1>`,`<x2>`]} | - | a <x1> <x2> b | ''"
                        + " | 69,225,696,225,697,273",
                "{`additional_special_tokens`:[`<x2>`]} | {`additional_special_tokens`:[`<x1>`]} |"
                        + " - | a <x1> <x2> b | '' | 69,225,32,92,21,34,225,696,273",
                "{`extra_special_tokens`:[]} | {`additional_special_tokens`:[`<x1>`]} | -"
                        + " | a <x1> b | '' | 69,225,32,92,21,34,273",
                "{`extra_special_tokens`:{`m`:`<x2>`},`additional_special_tokens`:[`<x3>`]}"
                        + "| {`additional_special_tokens`:[`<x1>`]} | - | a <x1> <x2> <x3> b | ''"
                        + " | 69,225,697,225,696,225,32,92,23,34,273",
                "{} | {`bos_token`:`<map>`} | {`<d1>`:900,`<d2>`:800,`<map>`:950,`<pad>`:4}"
                        + " | a <d2> <d1> <map> <pad> b | <map>"
                        + " | 69,225,696,225,697,225,698,225,4,273",
            })
    void olderFilesCountWhereTheConfigurationIsOlderToo(
            String config, String map, String added, String text, String bos, String expected)
            throws IOException {
        final Path model =
                Files.createDirectories(folder.resolve("older" + (config + map).hashCode()));
        Files.writeString(model.resolve("chat_template.jinja"), "{{ bos_token }}");
        final Map<String, String> files = new HashMap<>();
        files.put("tokenizer_config.json", config);
        files.put("special_tokens_map.json", map);
        files.put("added_tokens.json", added);
        for (Map.Entry<String, String> file : files.entrySet()) {
            if (file.getValue() != null) {
                Files.writeString(model.resolve(file.getKey()), file.getValue().replace('`', '"'));
            }
        }
        final ObjectNode own = (ObjectNode) json("tokenizer/tiny/tokenizer.json");
        final ObjectNode library = own.deepCopy();
        library.putObject("normalizer").put("type", "Lowercase");
        for (ObjectNode tokenizer : List.of(own, library)) {
            MAPPER.writeValue(model.resolve("tokenizer.json").toFile(), tokenizer);
            try (ChatModel older = ChatModel.load(model)) {
                assertEquals(
                        expected,
                        IntStream.of(older.encode(text, false))
                                .mapToObj(Integer::toString)
                                .collect(Collectors.joining(",")));
                assertEquals(
                        bos,
                        older.chat(request("{\"messages\":[{\"role\":\"user\",\"content\":\"\"}]}"))
                                .text());
            }
        }
    }

    @Test
    void givesTheLibraryTheTokensOfTheConfiguration() throws IOException {
        final Path model = Files.createDirectories(folder.resolve("library"));
        final ObjectNode tokenizer = (ObjectNode) json("tokenizer/tiny/tokenizer.json");
        tokenizer.putObject("normalizer").put("type", "Lowercase");
        MAPPER.writeValue(model.resolve("tokenizer.json").toFile(), tokenizer);
        Files.writeString(
                model.resolve("tokenizer_config.json"),
                "{\"bos_token\":\"<|begin_of_text|>\",\"eos_token\":{\"content\":\"<end>\"},\"chat_template\":\"{{"
                    + " messages[0].content }}{{ eos_token }}\"}");
        try (ChatModel fallback = ChatModel.load(model)) {
            final RenderedPrompt chat =
                    fallback.chat(
                            request("{\"messages\":[{\"role\":\"user\",\"content\":\"HI\"}]}"));
            assertEquals("HI<end>", chat.text());
            final int[] lower = fallback.encode("hi", false);
            assertEquals(lower.length + 1, chat.tokens().length);
            assertEquals(696, chat.tokens()[lower.length]);
            assertEquals("hi<end>", fallback.tokenizer().decode(chat.tokens()));
        }
    }

    /** As vLLM 0.32 chooses with such files (resolve_chat_template). */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "preprocessor_config.json:{} chat_template.json | json | config",
                "preprocessor_config.json:{} chat_template.json chat_template.jinja | json | jinja",
                "processor_config.json:{} chat_template.json | json | config",
                "video_preprocessor_config.json:{} chat_template.json | json | config",
                "processor_config.json:{`chat_template`:`processor`} chat_template.json | processor"
                        + " | config",
                "preprocessor_config.json:{} chat_template.json chat_template.jinja"
                        + " additional_chat_templates/x.jinja | jinja | jinja",
                "preprocessor_config.json:{} | config | config",
                "chat_template.json | config | config",
            })
    void chatsWithoutToolsHaveTheTemplateOfTheProcessor(String files, String without, String with)
            throws IOException {
        final Path model = Files.createDirectories(folder.resolve("processor" + files.hashCode()));
        Files.write(
                model.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        Files.writeString(model.resolve("tokenizer_config.json"), "{\"chat_template\":\"config\"}");
        for (String file : files.split(" ", -1)) {
            final int content = file.indexOf(':');
            final Path target = model.resolve(content < 0 ? file : file.substring(0, content));
            Files.createDirectories(target.getParent());
            Files.writeString(
                    target,
                    content >= 0
                            ? file.substring(content + 1).replace('`', '"')
                            : file.endsWith(".json") ? "{\"chat_template\":\"json\"}" : "jinja");
        }
        final String chat = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]";
        try (ChatModel multimodal = ChatModel.load(model)) {
            assertTrue(multimodal.hasChatTemplate());
            assertEquals(without, multimodal.chat(request(chat + "}")).text());
            assertEquals(
                    with,
                    multimodal
                            .chat(request(chat + ",\"tools\":[{\"function\":{\"name\":\"f\"}}]}"))
                            .text());
        }
    }

    @Test
    void servesManyThreadsAtOnce() throws Exception {
        final JsonNode requests = json("chat/requests.json");
        final JsonNode described = json("chat/models.json").get("header");
        try (ChatModel model = model("shared", described);
                ExecutorService pool = Executors.newVirtualThreadPerTaskExecutor()) {
            final JsonNode request = requests.get("call-extras");
            final int[] expected = model.chatTokens(request);
            final Callable<Void> work =
                    () -> {
                        for (int i = 0; i < 50; i++) {
                            assertArrayEquals(expected, model.chatTokens(request));
                        }
                        return null;
                    };
            for (Future<Void> done : pool.invokeAll(List.of(work, work, work, work))) {
                done.get();
            }
        }
    }
}
