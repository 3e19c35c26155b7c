package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.prompt.tokenizer.PromptException;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Brings the messages and tools of a chat request into the form in which SGLang hands them to a
 * template (its {@code _apply_jinja_template}, version 0.5.23): texts of a message are joined by a
 * blank, an answer at the end is the user's, and tools keep the order of their members.
 */
final class SglangChat {
    private static final Set<String> TEXT_PARTS = Set.of("text", "input_text");
    private static final List<String> FURTHER_MEMBERS = List.of("tool_call_id", "name", "phase");
    private static final List<String> THINKING_FLAGS = List.of("thinking", "enable_thinking");
    private static final Set<String> ON = Set.of("1", "true", "yes", "y", "on");
    private static final String EFFORT = "reasoning_effort";
    private static final String LOW_EFFORT = "low_effort";

    private SglangChat() {}

    /**
     * Converts messages.
     *
     * @param asParts whether the template wants content as a list of parts instead of a string
     * @throws PromptException if a message is malformed, or has parts other than text
     */
    static List<Map<String, Object>> convert(JsonNode messages, boolean asParts) {
        return ChatMessages.convert(messages, (role, message) -> message(role, message, asParts));
    }

    /**
     * Takes the text of an answer at the end out of a conversation: the prompt goes on with it.
     *
     * @return empty where there is none
     */
    static String takeAnswer(List<Map<String, Object>> conversation) {
        return endsWithAnswer(conversation)
                ? (String) conversation.removeLast().get("content")
                : "";
    }

    /** Makes an answer at the end a message of the user. */
    static void giveAnswerToUser(List<Map<String, Object>> conversation) {
        if (endsWithAnswer(conversation)) {
            final Map<String, Object> ofUser = new LinkedHashMap<>();
            ofUser.put("role", "user");
            ofUser.put("content", conversation.removeLast().get("content"));
            conversation.add(ofUser);
        }
    }

    private static boolean endsWithAnswer(List<Map<String, Object>> conversation) {
        final Map<String, Object> last = conversation.getLast();
        return last.get("role").equals("assistant") && last.get("content") instanceof String;
    }

    private static Map<String, Object> message(String role, JsonNode message, boolean asParts) {
        final String lower = role.toLowerCase(Locale.ROOT);
        final Map<String, Object> result = new LinkedHashMap<>();
        result.put("role", lower);
        result.put("content", content(message.path("content"), asParts && !lower.equals("tool")));
        if (lower.equals("user")) {
            return result;
        }
        for (String member : FURTHER_MEMBERS) {
            if (message.path(member).isTextual()) {
                result.put(member, message.get(member).textValue());
            }
        }
        final String reasoning = message.path("reasoning_content").textValue();
        if (reasoning != null) {
            result.put("reasoning_content", reasoning);
        }
        if (JsonValues.has(message, "tool_calls")) {
            result.put("tool_calls", toolCalls(message.get("tool_calls")));
        }
        if (JsonValues.has(message, "tools")) {
            final List<Object> tools = new ArrayList<>();
            message.get("tools").forEach(tool -> tools.add(tool(tool)));
            result.put("tools", tools);
        }
        return result;
    }

    private static Object content(JsonNode content, boolean asParts) {
        if (!content.isArray()) {
            return content.isTextual() ? content.textValue() : "";
        }
        final List<String> texts = new ArrayList<>(content.size());
        final List<Object> parts = new ArrayList<>(content.size());
        for (JsonNode part : content) {
            final String text = part.path("text").textValue();
            if (text == null || !TEXT_PARTS.contains(part.path("type").asText())) {
                throw PromptException.unknown(
                        "messages: tokens of a content part of type '"
                                + part.path("type").asText()
                                + "' are not known here");
            }
            texts.add(text);
            final Map<String, Object> known = new LinkedHashMap<>();
            known.put("type", "text");
            known.put("text", text);
            parts.add(known);
        }
        return asParts ? parts : String.join(" ", texts);
    }

    private static List<Object> toolCalls(JsonNode calls) {
        if (!calls.isArray()) {
            throw PromptException.invalid("messages: tool_calls is not an array");
        }
        final List<Object> out = new ArrayList<>(calls.size());
        for (JsonNode call : calls) {
            final JsonNode given = call.path("function");
            final JsonNode arguments = given.path("arguments");
            final Map<String, Object> function = new LinkedHashMap<>();
            function.put("name", JsonValues.of(given.path("name")));
            function.put(
                    "arguments",
                    arguments.isTextual()
                            ? JsonValues.parseDict(arguments.textValue())
                            : JsonValues.of(arguments));
            final Map<String, Object> result = new LinkedHashMap<>();
            result.put("id", JsonValues.of(call.path("id")));
            result.put("index", JsonValues.of(call.path("index")));
            result.put("type", "function");
            result.put("function", function);
            out.add(result);
        }
        return out;
    }

    /**
     * Converts tools; null when there are none, or none may be called.
     *
     * @throws PromptException if a tool has no function with a name
     */
    static List<Object> tools(JsonNode request) {
        final JsonNode choice = request.path("tool_choice");
        if (!JsonValues.has(request, "tools") || choice.asText().equals("none")) {
            return null;
        }
        final String only = choice.path("function").path("name").textValue();
        final List<Object> out = new ArrayList<>();
        for (JsonNode tool : request.get("tools")) {
            final Map<String, Object> result = tool(tool);
            if (only == null || only.equals(tool.path("function").path("name").textValue())) {
                out.add(result);
            }
        }
        return out.isEmpty() ? null : out;
    }

    private static Map<String, Object> tool(JsonNode tool) {
        final JsonNode function = tool.path("function");
        if (!function.path("name").isTextual()) {
            throw PromptException.invalid("tools: a function without name");
        }
        final Map<String, Object> result = new LinkedHashMap<>();
        result.put("type", "function");
        result.put("function", function(tool, function));
        result.put("defer_loading", JsonValues.of(tool.path("defer_loading")));
        return result;
    }

    /** Tools as SGLang gives them to a template that fails with the usual ones. */
    static List<Object> functions(List<?> tools) {
        final List<Object> functions = new ArrayList<>(tools.size());
        tools.forEach(tool -> functions.add(((Map<?, ?>) tool).get("function")));
        return functions;
    }

    /** Sets the variables by which a request says how much a model is to think. */
    static void putEffort(JsonNode request, Map<String, Object> variables) {
        final JsonNode reasoning = request.path("reasoning");
        final JsonNode given = request.path("chat_template_kwargs");
        final JsonNode effort =
                first(
                        reasoning.path("effort"),
                        reasoning.path("reasoning_effort"),
                        request.path("reasoning_effort"));
        if (isGiven(effort) || isOn(first(reasoning.path("enabled"), reasoning.path("enable")))) {
            final boolean thinks = !effort.asText().equals("none");
            for (String flag : THINKING_FLAGS) {
                if (!given.has(flag)) {
                    variables.put(flag, thinks);
                }
            }
        }
        if (JsonValues.has(given, EFFORT)) {
            variables.put(EFFORT, JsonValues.of(given.get(EFFORT)));
        } else if (isGiven(effort)) {
            variables.put(EFFORT, effort(effort));
        } else {
            variables.remove(EFFORT);
        }
    }

    /** Sets the variable by which some models are asked for the lowest effort. */
    static void putLowEffort(String template, Map<String, Object> variables) {
        if (template.contains(LOW_EFFORT)
                && template.contains("truncate_history_thinking")
                && "low".equals(variables.get(EFFORT))) {
            variables.putIfAbsent(LOW_EFFORT, true);
        }
    }

    private static JsonNode first(JsonNode... members) {
        for (JsonNode member : members) {
            if (isGiven(member)) {
                return member;
            }
        }
        return members[members.length - 1];
    }

    private static boolean isGiven(JsonNode member) {
        return !member.isNull() && !member.isMissingNode();
    }

    private static boolean isOn(JsonNode member) {
        return member.isTextual()
                ? ON.contains(member.textValue().strip().toLowerCase(Locale.ROOT))
                : member.asBoolean();
    }

    /** A level, or a number. */
    private static Object effort(JsonNode effort) {
        if (effort.isTextual()) {
            try {
                return Double.valueOf(effort.textValue());
            } catch (NumberFormatException e) {
                return effort.textValue();
            }
        }
        return effort.doubleValue();
    }

    /**
     * In the request's order; a description and parameters that are not given are null at the end.
     */
    private static Map<String, Object> function(JsonNode tool, JsonNode given) {
        final Map<String, Object> function = new LinkedHashMap<>();
        given.properties()
                .forEach(
                        member -> {
                            switch (member.getKey()) {
                                case "name", "description" ->
                                        function.put(
                                                member.getKey(), JsonValues.of(member.getValue()));
                                case "parameters" ->
                                        function.put(
                                                member.getKey(),
                                                SglangSchema.normalized(member.getValue()));
                                case "strict", "defer_loading" -> {
                                    if (!member.getValue().isNull()) {
                                        function.put(
                                                member.getKey(), JsonValues.of(member.getValue()));
                                    }
                                }
                                default -> {
                                    // not known to the engine
                                }
                            }
                        });
        function.putIfAbsent("description", null);
        function.putIfAbsent("parameters", null);
        if (JsonValues.has(tool, "defer_loading")) {
            function.putIfAbsent("defer_loading", JsonValues.of(tool.get("defer_loading")));
        }
        return function;
    }
}
