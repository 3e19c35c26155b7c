package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.tokenizer.PromptException;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;

/**
 * A request of Anthropic's Messages API as the chat that vLLM makes of it (its {@code
 * to_chat_completion_request}, version 0.32). What vLLM refuses, fills with the time or writes in
 * Python's own notation is not known here.
 */
final class MessagesRequest {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    /** Blocks that an engine takes and says nothing of to the model. */
    private static final Set<String> LEFT_OUT = Set.of("redacted_thinking", "tool_reference");

    private final JsonNode request;
    private final boolean mergesSystem;
    private final boolean bySglang;
    private final ArrayNode messages = JSON.arrayNode();

    private MessagesRequest(JsonNode request, boolean mergesSystem, PromptRules rules) {
        this.request = request;
        this.mergesSystem = mergesSystem;
        bySglang = rules == PromptRules.SGLANG;
    }

    /**
     * Makes the chat.
     *
     * @param request body, of which {@code messages}, {@code system}, {@code tools}, {@code
     *     thinking}, {@code output_config} and {@code chat_template_kwargs} are read; not changed
     * @param mergesSystem whether system messages within the conversation belong to the leading one
     * @param effortWithoutThinking what reasoning effort stands for thinking that is disabled;
     *     asked where it is needed alone
     * @param rules whose chat it is: SGLang joins texts of the system by ends of lines, and keeps a
     *     text before the results of tools that follow it
     * @return what {@link ChatModel#chatTokens(JsonNode)} takes
     * @throws PromptException if it is not known
     */
    static ObjectNode chat(
            JsonNode request,
            boolean mergesSystem,
            Supplier<String> effortWithoutThinking,
            PromptRules rules) {
        final MessagesRequest reading = new MessagesRequest(request, mergesSystem, rules);
        reading.system();
        reading.messages();
        final ObjectNode chat = JSON.objectNode();
        chat.set("messages", reading.messages);
        reading.tools(chat);
        reading.effort(chat, effortWithoutThinking);
        if (JsonValues.has(request, "chat_template_kwargs")) {
            chat.set("chat_template_kwargs", request.get("chat_template_kwargs"));
        }
        return chat;
    }

    private void system() {
        final List<String> texts = new ArrayList<>();
        final JsonNode system = request.path("system");
        if (system.isTextual()) {
            texts.add(system.textValue());
        } else if (JsonValues.has(request, "system")) {
            texts.addAll(systemTexts(system));
        }
        if (mergesSystem) {
            for (JsonNode message : request.path("messages")) {
                if (isSystem(message)) {
                    texts.add(systemText(message));
                }
            }
        }
        final String text = String.join(bySglang ? "\n" : "", texts);
        if (!text.isEmpty()) {
            add("system").put("content", text);
        }
    }

    private static boolean isSystem(JsonNode message) {
        return message.path("role").asText().equals("system");
    }

    private String systemText(JsonNode message) {
        final JsonNode content = message.path("content");
        if (!content.isTextual()) {
            return String.join(bySglang ? "\n" : "", systemTexts(content));
        }
        return isLeftOut(content.textValue()) ? "" : content.textValue();
    }

    private boolean isLeftOut(String text) {
        return text.isEmpty() || (!bySglang && text.startsWith(ChatMessages.ATTRIBUTION));
    }

    private List<String> systemTexts(JsonNode blocks) {
        final List<String> texts = new ArrayList<>();
        for (JsonNode block : blocks(blocks)) {
            if (type(block).equals("tool_addition") || type(block).equals("tool_removal")) {
                throw PromptException.unknown("messages: tools that change in a conversation");
            }
            final String text = block.path("text").asText();
            if (type(block).equals("text") && !isLeftOut(text)) {
                texts.add(text);
            }
        }
        return texts;
    }

    private void messages() {
        if (!request.path("messages").isArray()) {
            throw PromptException.invalid("messages: expected an array");
        }
        for (JsonNode message : request.get("messages")) {
            final String role = message.path("role").asText();
            final JsonNode content = message.path("content");
            switch (role) {
                case "system" -> {
                    final String text = mergesSystem ? "" : systemText(message);
                    if (!text.isEmpty()) {
                        add(role).put("content", text);
                    }
                }
                case "user", "assistant" -> {
                    if (content.isTextual()) {
                        add(role).set("content", content);
                    } else {
                        blocks(role, content);
                    }
                }
                default -> throw PromptException.invalid("messages: role '" + role + "'");
            }
        }
    }

    /** A message of blocks: results of tools become messages of their own before it. */
    private void blocks(String role, JsonNode content) {
        ArrayNode parts = JSON.arrayNode();
        final ArrayNode calls = JSON.arrayNode();
        final StringBuilder reasoning = new StringBuilder();
        boolean reasons = false;
        for (JsonNode block : blocks(content)) {
            switch (type(block)) {
                case "text" -> {
                    final String text = block.path("text").asText();
                    if (!text.isEmpty()) {
                        parts.add(text(text));
                    }
                }
                case "thinking" -> {
                    if (block.path("thinking").isTextual()) {
                        reasons = true;
                        reasoning.append(block.get("thinking").textValue());
                    }
                }
                case "tool_use" -> calls.add(call(block));
                case "tool_result" -> {
                    if (role.equals("user")) {
                        if (bySglang && !parts.isEmpty()) {
                            add(role).set("content", parts);
                            parts = JSON.arrayNode();
                        }
                        result(block);
                    } else {
                        parts.add(text("Tool result: " + plainResult(block)));
                    }
                }
                case "image" -> {
                    if (!block.path("source").isEmpty()) {
                        parts.add(ChatMessages.image());
                    }
                }
                default -> {
                    if (!LEFT_OUT.contains(type(block))) {
                        throw PromptException.unknown(
                                "messages: tokens of a block of type '"
                                        + type(block)
                                        + "' are not known here");
                    }
                }
            }
        }
        if (role.equals("user") && parts.isEmpty()) {
            return;
        }
        final ObjectNode message = add(role);
        if (reasons) {
            message.put("reasoning", reasoning.toString());
        }
        if (!calls.isEmpty()) {
            message.set("tool_calls", calls);
        }
        if (parts.size() == 1 && parts.get(0).has("text")) {
            message.set("content", parts.get(0).get("text"));
        } else if (!parts.isEmpty()) {
            message.set("content", parts);
        }
    }

    private static ObjectNode call(JsonNode block) {
        final String id = block.path("id").asText();
        if (id.isEmpty()) {
            throw PromptException.unknown("messages: a tool_use without id");
        }
        final ObjectNode call = JSON.objectNode();
        call.put("id", id);
        call.put("type", "function");
        final ObjectNode function = call.putObject("function");
        function.put("name", block.path("name").asText());
        function.set(
                "arguments",
                block.path("input").isObject() ? block.get("input") : JSON.objectNode());
        return call;
    }

    private static String plainResult(JsonNode block) {
        final JsonNode content = block.path("content");
        if (content.isArray() && !content.isEmpty()) {
            throw PromptException.unknown("messages: a tool_result of an assistant, of blocks");
        }
        return content.asText("");
    }

    private void result(JsonNode block) {
        final JsonNode content = block.path("content");
        final List<String> texts = new ArrayList<>();
        final ArrayNode images = JSON.arrayNode();
        final ArrayNode references = JSON.arrayNode();
        if (content.isTextual()) {
            texts.add(content.textValue());
        } else {
            for (JsonNode item : content) {
                switch (type(item)) {
                    case "text" -> texts.add(item.path("text").asText());
                    case "image" -> images.add(ChatMessages.image());
                    case "tool_reference" -> references.add(reference(item));
                    default ->
                            throw PromptException.unknown(
                                    "messages: a tool_result with a block of type '"
                                            + type(item)
                                            + "'");
                }
            }
        }
        final String id = block.path("tool_use_id").asText();
        add("tool").put("tool_call_id", id).put("content", String.join("\n", texts));
        if (!images.isEmpty()) {
            add("user").set("content", images);
        }
        if (!references.isEmpty()) {
            add("tool").put("tool_call_id", id).set("content", references);
        }
    }

    private static ObjectNode reference(JsonNode item) {
        final String name = item.path("tool_name").asText(item.path("name").asText());
        if (name.isEmpty()) {
            throw PromptException.unknown("messages: a tool_reference without a name");
        }
        return JSON.objectNode().put("type", "tool_reference").put("name", name);
    }

    private void tools(ObjectNode chat) {
        if (request.path("tools").isEmpty()) {
            return;
        }
        final ArrayNode tools = chat.putArray("tools");
        for (JsonNode tool : request.get("tools")) {
            if (!tool.path("input_schema").isObject()) { // one of the API's own, which vLLM refuses
                throw PromptException.unknown("tools: a tool without input_schema");
            }
            final ObjectNode schema = tool.get("input_schema").deepCopy();
            if (!schema.has("type")) {
                schema.put("type", "object");
            }
            final ObjectNode function = tools.addObject().putObject("function");
            JsonValues.copy(tool, function, "name", "description", "strict", "defer_loading");
            function.set("parameters", schema);
        }
    }

    private void effort(ObjectNode chat, Supplier<String> effortWithoutThinking) {
        if (request.at("/thinking/type").asText().equals("disabled")) {
            chat.put("reasoning_effort", effortWithoutThinking.get());
        } else if (request.at("/output_config/effort").isTextual()) {
            chat.set("reasoning_effort", request.at("/output_config/effort"));
        }
    }

    private ObjectNode add(String role) {
        return messages.addObject().put("role", role);
    }

    private static ObjectNode text(String text) {
        return JSON.objectNode().put("type", "text").put("text", text);
    }

    private static String type(JsonNode block) {
        return block.path("type").asText();
    }

    private static JsonNode blocks(JsonNode content) {
        if (!content.isArray()) {
            throw PromptException.invalid("messages: content is neither text nor a list of blocks");
        }
        return content;
    }
}
