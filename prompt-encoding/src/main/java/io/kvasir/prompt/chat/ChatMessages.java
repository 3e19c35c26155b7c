package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.tokenizer.PromptException;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Brings the messages and tools of a chat request into the form in which vLLM hands them to a
 * template: the same members in the same order, because templates print them as JSON.
 */
final class ChatMessages {
    private static final Set<String> TEXT_PARTS =
            Set.of("text", "input_text", "output_text", "refusal", "thinking");

    /** Parts that vLLM leaves out where they have no text, unless they are a message's first. */
    private static final Set<String> LEFT_OUT_WITHOUT_TEXT = Set.of("text", "refusal");

    /** Parts that are media, and what vLLM calls each before a template that takes parts. */
    private static final Map<String, String> MEDIA_PARTS =
            Map.of(
                    "image_url", "image",
                    "audio_url", "audio",
                    "input_audio", "audio",
                    "video_url", "video");

    /** What stands for media where their tokens are not known. */
    enum MediaMark {
        /** Nothing does: they are refused. */
        NONE(""),
        /** The part that vLLM gives to a template that takes parts; else a text. */
        PART("\uE000"),
        /** A text that no prompt has. */
        TEXT("\uE001");

        private final String text;

        MediaMark(String text) {
            this.text = text;
        }
    }

    /** Members of content parts that are not passed on to templates. */
    private static final Set<String> CONSUMED_PART_MEMBERS =
            Set.of(
                    "audio_embeds",
                    "audio_url",
                    "closed",
                    "data",
                    "file",
                    "image_embeds",
                    "image_pil",
                    "image_url",
                    "input_audio",
                    "name",
                    "prompt_cache_breakpoint",
                    "refusal",
                    "text",
                    "thinking",
                    "type",
                    "uuid",
                    "video_embeds",
                    "video_url");

    /** Line that some clients put before system text; engines leave it out, as it never repeats. */
    static final String ATTRIBUTION = "x-anthropic-billing-header";

    /**
     * Member of a call's function that is left out and says that its name comes first: engines put
     * the arguments first where they check a call of a chat, and check none of other APIs.
     */
    static final String NAME_FIRST = "\u0000name_first";

    private static final List<String> FURTHER_MEMBERS = List.of("name", "task");

    /** Most messages have no more than role and content. */
    private static final int USUAL_MEMBERS = 2;

    private ChatMessages() {}

    /**
     * Converts messages.
     *
     * @param messages the request's array
     * @param asParts whether the template wants content as a list of parts instead of a string
     * @param media what stands for media. Where a template takes texts, it stands for the whole
     *     content that they are in: engines put their tokens anywhere in it
     * @throws PromptException if a message is malformed, or has parts other than text and media
     */
    static List<Map<String, Object>> convert(JsonNode messages, boolean asParts, MediaMark media) {
        return convert(messages, (role, message) -> message(role, message, asParts, media));
    }

    /** Brings one message into the form in which an engine hands it to a template. */
    interface Form {
        Map<String, Object> of(String role, JsonNode message);
    }

    /**
     * Converts messages, each with a role.
     *
     * @param messages the request's array
     * @throws PromptException if there is none, or one without a role, or the form refuses one
     */
    static List<Map<String, Object>> convert(JsonNode messages, Form form) {
        if (!messages.isArray() || messages.isEmpty()) {
            throw PromptException.invalid("messages: expected an array that is not empty");
        }
        final List<Map<String, Object>> conversation = new ArrayList<>(messages.size());
        for (JsonNode message : messages) {
            final String role = message.path("role").textValue();
            if (role == null) {
                throw PromptException.invalid("messages: a message without role");
            }
            conversation.add(form.of(role, message));
        }
        return conversation;
    }

    /** The part that an image of another API is; what it shows is not needed. */
    static ObjectNode image() {
        return JsonNodeFactory.instance.objectNode().put("type", "image_url");
    }

    /** Whether a message has media. */
    static boolean haveMedia(JsonNode messages) {
        for (JsonNode message : messages) {
            if (hasMedia(message.path("content"))) {
                return true;
            }
        }
        return false;
    }

    private static boolean hasMedia(JsonNode content) {
        if (content.isArray()) {
            for (JsonNode part : content) {
                if (isMedia(part)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isMedia(JsonNode part) {
        final String type = part.path("type").textValue();
        return type != null && MEDIA_PARTS.containsKey(type);
    }

    private static Map<String, Object> message(
            String role, JsonNode message, boolean asParts, MediaMark media) {
        final Map<String, Object> result = LinkedHashMap.newLinkedHashMap(USUAL_MEMBERS);
        result.put("role", role);
        result.put("content", content(role, message.path("content"), asParts, media));
        switch (role) {
            case "assistant" -> {
                if (JsonValues.has(message, "tool_calls") && !message.get("tool_calls").isEmpty()) {
                    result.put("tool_calls", toolCalls(message.get("tool_calls")));
                }
                final String reasoning =
                        JsonValues.has(message, "reasoning")
                                ? message.get("reasoning").textValue()
                                : message.path("reasoning_content").textValue();
                if (reasoning != null) {
                    result.put("reasoning", reasoning);
                    result.put("reasoning_content", reasoning);
                }
            }
            case "tool" -> {
                if (message.has("tool_call_id")) {
                    final JsonNode id = message.get("tool_call_id");
                    if (!id.isTextual() && !id.isNull()) {
                        throw PromptException.invalid("messages: tool_call_id is not text");
                    }
                    result.put("tool_call_id", id.textValue());
                }
            }
            default -> {
                // nothing but the content
            }
        }
        if (message.has("name") && !message.get("name").isTextual() && !role.equals("tool")) {
            throw PromptException.invalid("messages: name is not text");
        }
        for (String member : FURTHER_MEMBERS) {
            if (message.path(member).isTextual()) {
                result.put(member, message.get(member).textValue());
            }
        }
        if (role.equals("developer")) {
            result.put("tools", JsonValues.of(message.path("tools")));
        }
        return result;
    }

    private static Object content(String role, JsonNode content, boolean asParts, MediaMark media) {
        if (content.isNull() && !role.equals("assistant")) {
            throw PromptException.invalid("messages: content is null");
        }
        if (content.isTextual() && (!asParts || role.equals("tool"))) {
            final String text = withoutAttribution(role, content.textValue());
            return text == null ? "" : text;
        }
        if (!asParts && media != MediaMark.NONE && hasMedia(content)) {
            return media.text;
        }
        final List<Map<String, Object>> parts = parts(role, content, media);
        final boolean onlyText = parts.stream().allMatch(part -> "text".equals(part.get("type")));
        return asParts && !(role.equals("tool") && onlyText) ? parts : joined(parts, asParts);
    }

    /** The texts of a message; engines leave empty ones out where the template takes one text. */
    private static String joined(List<Map<String, Object>> parts, boolean withEmpty) {
        final List<String> texts = new ArrayList<>(parts.size());
        for (Map<String, Object> part : parts) {
            final String text = (String) part.getOrDefault("text", part.get("name"));
            if (withEmpty || !text.isEmpty()) {
                texts.add(text);
            }
        }
        return String.join("\n", texts);
    }

    private static List<Map<String, Object>> parts(String role, JsonNode content, MediaMark media) {
        final List<Map<String, Object>> parts = new ArrayList<>();
        if (content.isTextual()) {
            addText(parts, role, content.textValue(), null);
        } else if (content.isArray()) {
            for (int i = 0; i < content.size(); i++) {
                final JsonNode part = content.get(i);
                if (media != MediaMark.NONE && isMedia(part)) {
                    addMedia(parts, part, media);
                } else {
                    addPart(parts, role, part, i == 0);
                }
            }
        } else if (!isAbsent(content)) {
            throw PromptException.invalid("messages: content is neither text nor a list of parts");
        }
        return parts;
    }

    private static void addPart(
            List<Map<String, Object>> parts, String role, JsonNode part, boolean first) {
        if (part.isTextual()) {
            addText(parts, role, part.textValue(), null);
            return;
        }
        final String type = part.path("type").textValue();
        if (type == null) {
            throw PromptException.unknown("messages: a content part without type");
        }
        if (JsonValues.has(part, "uuid")) { // engines look for media in such a part
            throw PromptException.unknown("messages: a content part with a uuid");
        }
        if (type.equals("tool_reference")) {
            if (!part.path("name").isTextual()) {
                throw PromptException.invalid("messages: a tool_reference without a name");
            }
            final Map<String, Object> reference = new LinkedHashMap<>();
            reference.put("type", type);
            reference.put("name", part.path("name").textValue());
            parts.add(reference);
            return;
        }
        if (!TEXT_PARTS.contains(type)) {
            throw PromptException.unknown(
                    "messages: tokens of a content part of type '" + type + "' are not known here");
        }
        final JsonNode text =
                part.path(type.equals("refusal") || type.equals("thinking") ? type : "text");
        if (text.isTextual()) {
            addText(parts, type.equals("text") ? role : "", text.textValue(), part);
        } else if (first || !LEFT_OUT_WITHOUT_TEXT.contains(type) || !isAbsent(text)) {
            throw PromptException.invalid(
                    "messages: a content part of type '" + type + "' whose text is not text");
        }
    }

    private static void addMedia(List<Map<String, Object>> parts, JsonNode part, MediaMark media) {
        if (media == MediaMark.TEXT) {
            addText(parts, "", media.text, null);
        } else {
            parts.add(
                    new LinkedHashMap<>(
                            Map.of("type", MEDIA_PARTS.get(part.path("type").textValue()))));
        }
    }

    private static boolean isAbsent(JsonNode member) {
        return member.isNull() || member.isMissingNode();
    }

    private static void addText(
            List<Map<String, Object>> parts, String role, String given, JsonNode part) {
        final String text = withoutAttribution(role, given);
        if (text == null) {
            return;
        }
        final Map<String, Object> result = new LinkedHashMap<>();
        result.put("type", "text");
        result.put("text", text);
        if (part != null) {
            part.properties()
                    .forEach(
                            member -> {
                                if (!CONSUMED_PART_MEMBERS.contains(member.getKey())) {
                                    result.put(member.getKey(), JsonValues.of(member.getValue()));
                                }
                            });
        }
        parts.add(result);
    }

    /** Null where there is nothing else. */
    private static String withoutAttribution(String role, String text) {
        if (!role.equals("system") || !text.startsWith(ATTRIBUTION)) {
            return text;
        }
        final int lineEnd = text.indexOf('\n');
        return lineEnd < 0 || lineEnd == text.length() - 1 ? null : text.substring(lineEnd + 1);
    }

    private static List<Object> toolCalls(JsonNode calls) {
        if (!calls.isArray()) {
            throw PromptException.invalid("messages: tool_calls is not an array");
        }
        final List<Object> out = new ArrayList<>(calls.size());
        for (JsonNode call : calls) {
            final JsonNode function = call.path("function");
            if (!function.isObject() || !call.path("type").asText("function").equals("function")) {
                throw PromptException.invalid("messages: only tool_calls of functions are known");
            }
            final Map<String, Object> named = new LinkedHashMap<>();
            if (function.has(NAME_FIRST)) {
                copy(function, named, "name");
                named.put("arguments", arguments(function.path("arguments")));
            } else {
                named.put("arguments", arguments(function.path("arguments")));
                copy(function, named, "name");
                rest(function, named);
            }
            final Map<String, Object> result = new LinkedHashMap<>();
            copy(call, result, "id");
            result.put("function", named);
            copy(call, result, "type");
            rest(call, result);
            out.add(result);
        }
        return out;
    }

    private static Map<String, Object> arguments(JsonNode given) {
        if (given.isObject()) {
            return JsonValues.dict(given);
        }
        return given.isTextual() && !given.textValue().isEmpty()
                ? JsonValues.parseDict(given.textValue())
                : new LinkedHashMap<>();
    }

    private static void copy(JsonNode from, Map<String, Object> to, String member) {
        if (from.has(member)) {
            to.put(member, JsonValues.of(from.get(member)));
        }
    }

    private static void rest(JsonNode from, Map<String, Object> to) {
        from.properties()
                .forEach(
                        member ->
                                to.putIfAbsent(member.getKey(), JsonValues.of(member.getValue())));
    }

    /**
     * Converts tools; null when there are none.
     *
     * @throws PromptException if a tool has no function with a name
     */
    static List<Object> tools(JsonNode tools) {
        if (isAbsent(tools)) {
            return null;
        }
        if (!tools.isArray() || tools.isEmpty()) {
            throw PromptException.invalid("tools: expected an array that is not empty");
        }
        final List<Object> out = new ArrayList<>(tools.size());
        for (JsonNode tool : tools) {
            final JsonNode function = tool.path("function");
            if (!function.path("name").isTextual()) {
                throw PromptException.invalid("tools: a function without name");
            }
            final Map<String, Object> described = new LinkedHashMap<>();
            for (String member : new String[] {"name", "description", "parameters"}) {
                described.put(member, JsonValues.of(function.path(member)));
            }
            if (JsonValues.has(function, "strict")) {
                described.put("strict", JsonValues.of(function.get("strict")));
            }
            final boolean toolDefers = JsonValues.has(tool, "defer_loading");
            final JsonNode defer =
                    JsonValues.has(function, "defer_loading")
                            ? function.get("defer_loading")
                            : tool.path("defer_loading");
            if (!isAbsent(defer)) {
                described.put("defer_loading", JsonValues.of(defer));
            }
            final Map<String, Object> result = new LinkedHashMap<>();
            result.put("type", "function");
            result.put("function", described);
            if (toolDefers) {
                result.put("defer_loading", JsonValues.of(tool.get("defer_loading")));
            }
            out.add(result);
        }
        return out;
    }

    /**
     * Replaces developer messages for a template that does not know them; one system message leads.
     */
    static List<Map<String, Object>> withoutDevelopers(List<Map<String, Object>> conversation) {
        final List<Map<String, Object>> converted = new ArrayList<>(conversation.size());
        for (Map<String, Object> message : conversation) {
            if (message.get("role").equals("developer")) {
                final Map<String, Object> system = new LinkedHashMap<>(message);
                system.put("role", "system");
                system.remove("tools");
                converted.add(system);
            } else {
                converted.add(message);
            }
        }
        return consolidated(converted);
    }

    private static List<Map<String, Object>> consolidated(List<Map<String, Object>> conversation) {
        final List<String> texts = new ArrayList<>();
        final List<Map<String, Object>> others = new ArrayList<>();
        boolean needed = false;
        for (int i = 0; i < conversation.size(); i++) {
            final Map<String, Object> message = conversation.get(i);
            if (!message.get("role").equals("system")) {
                others.add(message);
                continue;
            }
            needed |= i > 0;
            final String text = plainText(message.get("content"));
            if (!text.isEmpty()) {
                texts.add(text);
            }
        }
        if (!needed) {
            return conversation;
        }
        final Map<String, Object> merged = new LinkedHashMap<>();
        merged.put("role", "system");
        merged.put("content", String.join("\n\n", texts));
        others.addFirst(merged);
        return others;
    }

    private static String plainText(Object content) {
        if (content instanceof String text) {
            return text;
        }
        final List<String> texts = new ArrayList<>();
        for (Object part : (List<?>) content) {
            if (part instanceof Map<?, ?> map && map.get("text") instanceof String text) {
                texts.add(text);
            }
        }
        return String.join("\n", texts);
    }
}
