package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.prompt.tokenizer.PromptException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Requests of the Messages and the Responses API become the prompts that a real vLLM rendered for
 * them; see chat/ORIGIN.md.
 */
class MessagesAndResponsesTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String STRICT =
            "{% for message in messages %}{% if message.role == 'system' and not loop.first %}"
                    + "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
                    + "[{{ message.role }}]{{ message.content }}{% endfor %}";

    @TempDir private Path folder;

    private ChatModel model(String template) throws IOException {
        Files.write(
                folder.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        final ObjectNode config = MAPPER.createObjectNode();
        config.put("chat_template", template);
        MAPPER.writeValue(folder.resolve("tokenizer_config.json").toFile(), config);
        return ChatModel.load(folder);
    }

    private static List<JsonNode> recorded(String name) throws IOException {
        final List<JsonNode> lines = new ArrayList<>();
        for (String line :
                new String(TestFiles.read("chat/" + name), StandardCharsets.UTF_8)
                        .lines()
                        .toList()) {
            lines.add(MAPPER.readTree(line));
        }
        return lines;
    }

    private static ObjectNode chat(ChatModel model, String api, JsonNode request) {
        return api.equals("messages") ? model.ofMessages(request) : model.ofResponses(request);
    }

    @ParameterizedTest
    @ValueSource(strings = {"messages", "responses"})
    void promptsAreThoseThatVllmRenders(String api) throws IOException {
        final List<JsonNode> lines = recorded(api + ".jsonl");
        try (ChatModel model = model(lines.removeFirst().get("template").asText())) {
            for (JsonNode line : lines) {
                final JsonNode request = line.get("request");
                final JsonNode before = request.deepCopy();
                final String text;
                try {
                    text = model.chat(chat(model, api, request)).text();
                } catch (PromptException e) {
                    assertFalse(line.has("text"), e.getMessage() + ": " + request);
                    continue;
                } finally {
                    assertEquals(before, request, "not changed");
                }
                if (line.has("text")) {
                    assertEquals(line.get("text").asText(), text, request.toString());
                }
            }
        }
        assertTrue(lines.stream().filter(line -> line.has("text")).count() > 90, "enough");
    }

    /** As vLLM encodes them; the texts above are the same for all. */
    @Test
    void promptsOfResponsesAloneBeginWithTheSpecialTokensOfTheTokenizer() throws IOException {
        final JsonNode request =
                MAPPER.readTree(
                        "{\"input\":\"what\",\"messages\":[{\"role\":\"user\",\"content\":\"what\"}]}");
        try (ChatModel model = model("{{ messages[0].content }}")) {
            assertArrayEquals(
                    model.encode("what", false), model.chatTokens(model.ofMessages(request)));
            assertArrayEquals(
                    model.encode("what", true), model.chatTokens(model.ofResponses(request)));
            assertEquals(0, model.chatTokens(model.ofResponses(request))[0], "begin of text");
        }
    }

    @Test
    void systemMessagesAreMergedWhereTheTemplateRefusesThemWithinAConversation()
            throws IOException {
        final JsonNode request =
                MAPPER.readTree(
                        "{\"system\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"b\"},"
                            + "{\"role\":\"system\",\"content\":\"c\"},{\"role\":\"user\",\"content\":\"d\"}]}");
        try (ChatModel model = model(STRICT)) {
            assertEquals("[system]ac[user]b[user]d", model.chat(model.ofMessages(request)).text());
        }
    }

    @Test
    void aTemplateThatKnowsNoThinkingIsAskedForLittle() throws IOException {
        final JsonNode request =
                MAPPER.readTree(
                        "{\"thinking\":{\"type\":\"disabled\"},\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}");
        try (ChatModel model = model("{{ messages[0].content }}")) {
            assertEquals("low", model.ofMessages(request).get("reasoning_effort").asText());
        }
        try (ChatModel model = model("{{ messages[0].content }}{{ enable_thinking }}")) {
            assertEquals("none", model.ofMessages(request).get("reasoning_effort").asText());
        }
    }

    /** Those of a tool's result follow it, as a user's, before the tools that it refers to. */
    @Test
    void imagesAreThoseOfTheChatThatVllmMakes() throws IOException {
        final String image = "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"u\"}}";
        final String part = "{\"type\":\"image_url\"}";
        final JsonNode request =
                MAPPER.readTree(
                        ("{'messages':[{'role':'user','content':[{'type':'text','text':'a'},{'type':'image'},"
                             + "IMAGE]},{'role':'user','content':[IMAGE]},{'role':'user','content':["
                             + "{'type':'tool_result','tool_use_id':'t','content':[IMAGE,"
                             + "{'type':'tool_reference','name':'n'},{'type':'text','text':'b'}]}]}],"
                             + "'input':[{'role':'user','content':[{'type':'input_text','text':'a'},"
                             + "{'type':'input_image','image_url':'u'}]}]}")
                                .replace('\'', '"')
                                .replace("IMAGE", image));
        try (ChatModel model = model("{{ messages | tojson }}")) {
            assertEquals(
                    MAPPER.readTree(
                            ("[{'role':'user','content':[{'type':'text','text':'a'},IMAGE]},"
                                            + "{'role':'user','content':[IMAGE]},"
                                            + "{'role':'tool','tool_call_id':'t','content':'b'},"
                                            + "{'role':'user','content':[IMAGE]},"
                                            + "{'role':'tool','tool_call_id':'t',"
                                            + "'content':[{'type':'tool_reference','name':'n'}]}]")
                                    .replace('\'', '"')
                                    .replace("IMAGE", part)),
                    model.ofMessages(request).get("messages"));
            assertEquals(
                    MAPPER.readTree(
                            "[{'role':'user','content':[{'type':'input_text','text':'a'},IMAGE]}]"
                                    .replace('\'', '"')
                                    .replace("IMAGE", part)),
                    model.ofResponses(request).get("messages"));
        }
    }

    /** Whatever a client sends is known or not known. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "{}",
                "{\"messages\":{},\"input\":{}}",
                "{\"messages\":[],\"input\":[]}",
                "{\"messages\":[1],\"input\":[1]}",
                "{\"messages\":[null],\"input\":[null]}",
                "{\"messages\":[{}],\"input\":[{}]}",
                "{\"messages\":[{\"role\":\"user\"}],\"input\":[{\"role\":\"user\"}]}",
                "{\"messages\":[{\"role\":\"user\",\"content\":5}],\"input\":[{\"role\":\"user\",\"content\":5}]}",
                "{\"messages\":[{\"role\":\"user\",\"content\":[5]}],\"input\":[{\"role\":\"user\",\"content\":[5]}]}",
                "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"data\":\"\"}}]}],"
                    + "\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\"}]}]}",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"input\":\"x\",\"tools\":[1]}",
                "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"input\":\"x\",\"tools\":[{\"type\":\"web_search\"}]}"
            })
    void whatIsNoSuchRequestIsNotKnown(String request) throws IOException {
        try (ChatModel model = model("{{ messages | tojson }}")) {
            for (String api : new String[] {"messages", "responses"}) {
                assertThrows(
                        PromptException.class,
                        () -> model.chat(chat(model, api, MAPPER.readTree(request))));
            }
        }
    }
}
