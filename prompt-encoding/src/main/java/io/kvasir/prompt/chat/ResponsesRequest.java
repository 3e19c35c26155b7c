package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.tokenizer.PromptException;

import java.util.Set;

/**
 * A request of OpenAI's Responses API as the chat that vLLM makes of it (its {@code
 * construct_input_messages}, version 0.32): items that one turn of the assistant consists of become
 * one message. What vLLM refuses, or knows from answers that it keeps, is not known here.
 */
final class ResponsesRequest {
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final Set<String> INPUT_ROLES = Set.of("user", "system", "developer");
    private static final Set<String> UNFINISHED = Set.of("in_progress", "incomplete");

    private final ArrayNode messages = JSON.arrayNode();

    private ResponsesRequest() {}

    /**
     * Makes the chat.
     *
     * @param request body, of which {@code input}, {@code instructions}, {@code tools}, {@code
     *     reasoning} and {@code chat_template_kwargs} are read; not changed
     * @return what {@link ChatModel#chatTokens(JsonNode)} takes
     * @throws PromptException if it is not known
     */
    static ObjectNode chat(JsonNode request) {
        final ResponsesRequest reading = new ResponsesRequest();
        final String instructions = request.path("instructions").asText("");
        if (!instructions.isEmpty()) {
            reading.add("system").put("content", instructions);
        }
        final ObjectNode chat = JSON.objectNode();
        final JsonNode input = request.path("input");
        if (input.isTextual()) {
            reading.add("user").set("content", input);
        } else if (input.isArray()) {
            input.forEach(reading::item);
            goOn(input.path(input.size() - 1), chat);
        } else {
            throw PromptException.invalid("input: neither text nor a list of items");
        }
        chat.set("messages", reading.messages);
        chat.put("add_special_tokens", true); // in chats and Messages it is false
        tools(request.path("tools"), chat);
        if (request.at("/reasoning/effort").isTextual()) {
            chat.set("reasoning_effort", request.at("/reasoning/effort"));
        }
        if (JsonValues.has(request, "chat_template_kwargs")) {
            chat.set("chat_template_kwargs", request.get("chat_template_kwargs"));
        }
        return chat;
    }

    /** An answer that was cut is continued. */
    private static void goOn(JsonNode last, ObjectNode chat) {
        final String type = last.path("type").asText("message");
        if ((type.equals("message") || type.equals("reasoning"))
                && UNFINISHED.contains(last.path("status").asText())) {
            chat.put("continue_final_message", true);
            chat.put("add_generation_prompt", false);
        }
    }

    private void item(JsonNode item) {
        switch (item.path("type").asText("message")) {
            case "function_call" -> call(item);
            case "function_call_output" -> output(item);
            case "reasoning" -> reasoning(item);
            case "message" -> message(item);
            default ->
                    throw PromptException.unknown(
                            "input: tokens of an item of type '"
                                    + item.path("type").asText()
                                    + "' are not known here");
        }
    }

    private void call(JsonNode item) {
        if (JsonValues.has(item, "namespace")
                || !item.path("name").isTextual()
                || !item.path("arguments").isTextual()
                || !item.path("call_id").isTextual()) {
            throw PromptException.unknown("input: a function_call that is not known here");
        }
        final ObjectNode turn = turn();
        final ArrayNode calls =
                turn.get("tool_calls") instanceof ArrayNode some
                        ? some
                        : turn.putArray("tool_calls");
        final ObjectNode call = calls.addObject();
        call.set("id", item.get("call_id"));
        final ObjectNode function = call.putObject("function");
        function.set("name", item.get("name"));
        function.set("arguments", item.get("arguments"));
        function.put(ChatMessages.NAME_FIRST, true);
        call.put("type", "function");
    }

    private void output(JsonNode item) {
        final ObjectNode message = add("tool");
        message.set("content", content(item.path("output")));
        message.set("tool_call_id", item.path("call_id"));
    }

    private void reasoning(JsonNode item) {
        if (JsonValues.has(item, "encrypted_content") || !item.path("summary").isArray()) {
            throw PromptException.unknown("input: reasoning that is not known here");
        }
        final JsonNode first =
                item.path("content").isEmpty()
                        ? item.path("summary").path(0)
                        : item.path("content").path(0);
        ofTurn("reasoning", first.path("text").asText(""));
    }

    private void message(JsonNode item) {
        final String role = item.path("role").asText();
        final JsonNode content = item.path("content");
        if (INPUT_ROLES.contains(role)) {
            add(role).set("content", content(content));
        } else if (!role.equals("assistant")) {
            throw PromptException.invalid("input: a message of role '" + role + "'");
        } else if (content.isTextual()) {
            ofTurn("content", content.textValue());
        } else if (content.path(0).path("type").asText().equals("output_text")) {
            ofTurn("content", content.path(0).path("text").asText());
        } else {
            throw PromptException.unknown("input: an answer that is not known here");
        }
    }

    /** Text, or parts of text and images, as chats have them. */
    private static JsonNode content(JsonNode content) {
        if (content.isTextual()) {
            return content;
        }
        if (!content.isArray()) {
            throw PromptException.invalid("input: content is neither text nor a list of parts");
        }
        final ArrayNode parts = JSON.arrayNode();
        for (JsonNode part : content) {
            switch (part.path("type").asText()) {
                case "input_text" ->
                        parts.addObject().put("type", "input_text").set("text", part.path("text"));
                case "input_image" -> parts.add(ChatMessages.image());
                default ->
                        throw PromptException.unknown(
                                "input: tokens of a part of type '"
                                        + part.path("type").asText()
                                        + "' are not known here");
            }
        }
        return parts;
    }

    /** Adds to the assistant's turn; what that has already begins another one. */
    private void ofTurn(String member, String text) {
        final ObjectNode turn = turn();
        (turn.has(member) ? add("assistant") : turn).put(member, text);
    }

    /** The assistant's turn that the last message is, else a new one. */
    private ObjectNode turn() {
        return messages.path(messages.size() - 1) instanceof ObjectNode last
                        && last.get("role").asText().equals("assistant")
                ? last
                : add("assistant");
    }

    private static void tools(JsonNode given, ObjectNode chat) {
        if (given.isEmpty()) {
            return;
        }
        final ArrayNode tools = chat.putArray("tools");
        for (JsonNode tool : given) {
            if (!tool.path("type").asText().equals("function")) {
                throw PromptException.unknown("tools: tools other than functions");
            }
            JsonValues.copy(
                    tool,
                    tools.addObject().putObject("function"),
                    "name",
                    "description",
                    "parameters",
                    "strict",
                    "defer_loading");
        }
    }

    private ObjectNode add(String role) {
        return messages.addObject().put("role", role);
    }
}
