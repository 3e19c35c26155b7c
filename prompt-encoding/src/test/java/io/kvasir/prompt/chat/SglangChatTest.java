package io.kvasir.prompt.chat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.prompt.tokenizer.PromptException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Chats become the prompts that a real SGLang computed for them; see chat/ORIGIN.md. */
class SglangChatTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String PLAIN =
            "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"
                    + "{% if add_generation_prompt %}[assistant]{% endif %}";

    @TempDir private Path folder;

    private ChatModel model(String template) throws IOException {
        Files.write(
                folder.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        final ObjectNode config = MAPPER.createObjectNode();
        config.put("chat_template", template);
        MAPPER.writeValue(folder.resolve("tokenizer_config.json").toFile(), config);
        return ChatModel.load(folder);
    }

    private static int[] tokens(ChatModel model, JsonNode chat) {
        return model.chatTokens(chat, Integer.MAX_VALUE, null, PromptRules.SGLANG);
    }

    @Test
    void promptsAreThoseThatSglangComputes() throws IOException {
        final List<String> lines =
                new ArrayList<>(
                        new String(TestFiles.read("chat/sglang.jsonl"), StandardCharsets.UTF_8)
                                .lines()
                                .toList());
        final String template = MAPPER.readTree(lines.removeFirst()).get("template").asText();
        int compared = 0;
        try (ChatModel model = model(template)) {
            for (String line : lines) {
                final JsonNode recorded = MAPPER.readTree(line);
                final JsonNode request = recorded.get("request");
                if (!recorded.has("text")) {
                    continue; // refused
                }
                compared++;
                final int[] tokens;
                try {
                    tokens = tokens(model, request);
                } catch (PromptException e) {
                    throw new AssertionError("not known: " + request, e);
                }
                final String text = recorded.get("text").asText();
                assertEquals(text, model.render(request, PromptRules.SGLANG), request.toString());
                assertArrayEquals(model.encode(text, false), tokens, request.toString());
            }
        }
        assertTrue(compared > 90, "enough");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}]}"
                        + "|[user]a[user]b[assistant]",
                "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}],"
                        + "'add_generation_prompt':false}|[user]a[user]b[assistant]",
                "{'messages':[{'role':'user','content':'a'},{'role':'assistant','content':'b'}],"
                        + "'continue_final_message':true}|[user]a[assistant]b",
                "{'messages':[{'role':'user','content':[{'type':'text','text':'a'},"
                        + "{'type':'text','text':'b'}]}]}|[user]a b[assistant]",
                "{'messages':[{'role':'developer','content':'a'},{'role':'user','content':'b'}],"
                        + "'add_special_tokens':true}|[developer]a[user]b[assistant]",
                "{'messages':[{'role':'System','content':'a'},{'role':'ASSISTANT','content':'b'},"
                        + "{'role':'user','content':'c'}]}|[system]a[assistant]b[user]c[assistant]",
            })
    void chatsAreThoseOfSglang(String request, String prompt) throws IOException {
        final JsonNode chat = MAPPER.readTree(request.replace('\'', '"'));
        try (ChatModel model = model(PLAIN)) {
            assertEquals(prompt, model.render(chat, PromptRules.SGLANG));
            assertArrayEquals(model.encode(prompt, false), tokens(model, chat));
        }
    }

    @Test
    void messagesHaveTheirSystemTextsOnLinesAndTextsBeforeResults() throws IOException {
        final JsonNode request =
                MAPPER.readTree(
                        """
                        {"system":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
                         "messages":[{"role":"user","content":[{"type":"text","text":"c"},
                          {"type":"tool_result","tool_use_id":"i","content":"d"}]}]}\
                        """);
        try (ChatModel model = model(PLAIN)) {
            assertEquals(
                    "[system]a\nb[user]c[tool]d[assistant]",
                    model.render(
                            model.ofMessages(request, PromptRules.SGLANG), PromptRules.SGLANG));
            assertEquals(
                    "[system]ab[tool]d[user]c[assistant]", model.render(model.ofMessages(request)));
        }
    }

    private void assertRenders(String prompt, String template, String chat) throws IOException {
        final JsonNode request =
                MAPPER.readTree(
                        chat.replace("HI", "'messages':[{'role':'user','content':'hi'}]")
                                .replace('\'', '"'));
        try (ChatModel model = model(template)) {
            assertEquals(prompt, model.render(request, PromptRules.SGLANG), chat);
        }
    }

    @Test
    void answersShowTheReasoningThatIsCalledReasoningContent() throws IOException {
        final String template =
                "{% for message in messages %}[{{ message.reasoning_content }}]{% endfor %}";
        assertRenders(
                "[a][][]",
                template,
                """
                {'messages':[{'role':'assistant','content':'','reasoning_content':'a'},
                 {'role':'assistant','content':'','reasoning':'b'},
                 {'role':'user','content':'c'}]}\
                """);
    }

    @Test
    void messagesHaveToolsOfTheirOwn() throws IOException {
        assertRenders(
                """
                [{"type": "function", "function": {"parameters": {"type": "integer"}, "name": "f",\
                 "description": null}, "defer_loading": null}]\
                """,
                "{{ messages[0].tools | tojson }}",
                """
                {'messages':[{'role':'system','content':'',
                  'tools':[{'function':{'parameters':{'type':'int'},'name':'f'}}]},
                 {'role':'user','content':'c'}]}\
                """);
    }

    /** Each was computed by a real SGLang. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "{HI}|,,",
                "{HI,'reasoning_effort':'low'}|low,True,True",
                "{HI,'reasoning_effort':'none'}|none,False,False",
                "{HI,'reasoning_effort':0.5}|0.5,True,True",
                "{HI,'reasoning_effort':'0.5'}|0.5,True,True",
                "{HI,'reasoning_effort':0}|0.0,True,True",
                "{HI,'reasoning_effort':'low','chat_template_kwargs':{'reasoning_effort':'high'}}"
                        + "|high,True,True",
                "{HI,'reasoning_effort':'low','chat_template_kwargs':{'reasoning_effort':null}}"
                        + "|low,True,True",
                "{HI,'chat_template_kwargs':{'reasoning_effort':'none'}}|none,,",
                "{HI,'chat_template_kwargs':{'reasoning_effort':null}}|,,",
                "{HI,'reasoning':{'effort':'none'}}|none,False,False",
                "{HI,'reasoning':{'effort':'high'},'reasoning_effort':'low'}|high,True,True",
                "{HI,'reasoning':{'reasoning_effort':'max'}}|max,True,True",
                "{HI,'reasoning':{'enabled':true}}|,True,True",
                "{HI,'reasoning':{'enable':' YES '}}|,True,True",
                "{HI,'reasoning':{'enabled':false,'enable':true}}|,,",
                "{HI,'reasoning':{'enabled':true},'reasoning_effort':'none'}|none,False,False",
                "{HI,'reasoning':{'enabled':true},'chat_template_kwargs':{'thinking':false}}"
                        + "|,False,True",
            })
    void effortsAreThoseOfSglang(String chat, String prompt) throws IOException {
        assertRenders(prompt, "{{ reasoning_effort }},{{ thinking }},{{ enable_thinking }}", chat);
    }

    @Test
    void lowEffortIsAskedForByAVariableWhereTheTemplateHasOne() throws IOException {
        final String template = "{# truncate_history_thinking #}{{ low_effort }}";
        assertRenders("True", template, "{HI,'reasoning_effort':'low'}");
        assertRenders("", template, "{HI,'reasoning_effort':'high'}");
        assertRenders(
                "False",
                template,
                "{HI,'reasoning_effort':'low','chat_template_kwargs':{'low_effort':false}}");
    }

    @Test
    void documentsAreThoseOfTheTemplatesVariables() throws IOException {
        final String template = "{{ documents is none }}";
        assertRenders("True", template, "{HI,'documents':[{'title':'a'}]}");
        assertRenders(
                "False", template, "{HI,'chat_template_kwargs':{'documents':[{'title':'a'}]}}");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "message|message.content|False",
                "msg|msg['content']|False",
                "m|m.content[1:]|False",
                "turn|turn.content|True",
                "message|(message.content or [])|True",
                "vision|vision.content|False",
            })
    void aLoopOverContentMeansPartsByTheNameOfItsMessage(String name, String content, boolean text)
            throws IOException {
        final String template =
                "{% for NAME in messages %}{{ NAME.content is string }}{% for p in CONTENT %}"
                        + "{% endfor %}{% endfor %}";
        assertRenders(
                text ? "True" : "False",
                template.replace("NAME", name).replace("CONTENT", content),
                "{'messages':[{'role':'user','content':[{'type':'text','text':'a'}]}]}");
    }

    /** Each was computed by a real SGLang. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "{'type':'varchar(255)'}|{'type': 'string'}",
                "{'type':' Float '}|{'type': 'number'}",
                "{'type':'String'}|{'type': 'string'}",
                "{'type':'int32'}|{'type': 'integer'}",
                "{'type':'list[str]'}|{'type': 'array'}",
                "{'type':['int','integer','null']}|{'type': ['integer', 'null']}",
                "{'properties':{'type':{'type':'dict'}}}"
                        + "|{'properties': {'type': {'type': 'object'}}}",
                "{'anyOf':[{'type':'bool'}],'items':{'type':'tuple'},'not':{'type':'uuid'}}"
                        + "|{'anyOf': [{'type': 'boolean'}], 'items': {'type': 'array'},"
                        + " 'not': {'type': 'string'}}",
                "{'default':{'type':'int'}}|{'default': {'type': 'int'}}",
            })
    void typesOfToolsAreThoseOfJsonSchema(String schema, String prompt) throws IOException {
        assertRenders(
                prompt.replace('\'', '"'),
                "{{ tools[0].function.parameters | tojson }}",
                "{HI,'tools':[{'function':{'name':'f','parameters':" + schema + "}}]}");
    }

    @Test
    void aTemplateThatFailsIsGivenTheFunctionsAlone() throws IOException {
        final String template =
                "{% for tool in tools %}{% if tool.function %}{{ raise_exception('no') }}"
                        + "{% endif %}{{ tool.name }}{% endfor %}";
        assertRenders("f", template, "{HI,'tools':[{'function':{'name':'f'}}]}");
    }

    @Test
    void chatsWithToolsHaveTheFirstTemplate() throws IOException {
        Files.write(
                folder.resolve("tokenizer.json"), TestFiles.read("tokenizer/tiny/tokenizer.json"));
        final ObjectNode config = MAPPER.createObjectNode();
        config.putArray("chat_template")
                .add(MAPPER.createObjectNode().put("name", "default").put("template", "a"))
                .add(MAPPER.createObjectNode().put("name", "tool_use").put("template", "b"));
        MAPPER.writeValue(folder.resolve("tokenizer_config.json").toFile(), config);
        final JsonNode request =
                MAPPER.readTree(
                        """
                        {"messages":[{"role":"user","content":"a"}],
                         "tools":[{"type":"function","function":{"name":"f"}}]}\
                        """);
        try (ChatModel model = ChatModel.load(folder)) {
            assertEquals("a", model.render(request, PromptRules.SGLANG));
            assertEquals("b", model.render(request));
        }
        MAPPER.writeValue(
                folder.resolve("processor_config.json").toFile(),
                MAPPER.createObjectNode().put("chat_template", "c"));
        try (ChatModel model = ChatModel.load(folder)) {
            assertEquals("c", model.render(request, PromptRules.SGLANG));
            assertEquals("b", model.render(request));
        }
    }
}
