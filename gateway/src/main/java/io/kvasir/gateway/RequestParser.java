package io.kvasir.gateway;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.util.Arrays;
import java.util.Set;

/**
 * Reads of a completion request what routing needs, in one pass over the bytes, and refuses what is
 * not one. Of a member given twice the last counts, as in the engines.
 */
final class RequestParser {
    /** What a chat template or its caller may look at. */
    private static final Set<String> CHAT_MEMBERS =
            Set.of(
                    "messages",
                    "tools",
                    "tool_choice",
                    "documents",
                    "chat_template",
                    "chat_template_kwargs",
                    "add_generation_prompt",
                    "continue_final_message",
                    "reasoning_effort");

    private static final int FIRST_IDS = 256;

    private final InferenceRequest request;
    private final JsonParser json;
    private boolean promptSeen;
    private boolean embedsSeen;

    private RequestParser(InferenceRequest request, JsonParser json) {
        this.request = request;
        this.json = json;
    }

    /**
     * Parses one body.
     *
     * @throws ApiException 400 with the member and its value when the body is no completion request
     */
    static InferenceRequest parse(InferenceRequest.Route route, byte[] body) throws ApiException {
        final InferenceRequest request = new InferenceRequest(route, body);
        try (JsonParser json = Json.FACTORY.createParser(body)) {
            new RequestParser(request, json).read();
        } catch (JsonProcessingException e) {
            throw malformed(e);
        } catch (IOException e) {
            throw ApiException.invalid(null, "cannot read the body: " + e.getMessage());
        }
        return request;
    }

    static ApiException malformed(JsonProcessingException e) {
        final String where =
                e.getLocation() == null
                        ? ""
                        : " at line "
                                + e.getLocation().getLineNr()
                                + ", column "
                                + e.getLocation().getColumnNr();
        return ApiException.invalid(
                null, "the body is not valid JSON" + where + ": " + e.getOriginalMessage());
    }

    private void read() throws IOException, ApiException {
        if (json.nextToken() != JsonToken.START_OBJECT) {
            throw ApiException.invalid(
                    null,
                    request.body.length == 0
                            ? "the body is empty; a JSON object is needed"
                            : "the body must be a JSON object");
        }
        request.afterBrace = offset() + 1;
        if (request.route == InferenceRequest.Route.CHAT) {
            request.chat = JsonNodeFactory.instance.objectNode();
        }
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            final String name = json.currentName();
            json.nextToken();
            member(name);
        }
        if (json.currentToken() != JsonToken.END_OBJECT) {
            throw new JsonParseException(json, "unexpected end of input");
        }
        if (json.nextToken() != null) {
            throw ApiException.invalid(null, "the body has something behind its JSON object");
        }
        check();
    }

    private void member(String name) throws IOException, ApiException {
        switch (name) {
            case "model" -> request.model = string(name);
            case "stream" -> request.stream = Boolean.TRUE.equals(bool(name));
            case "stream_options" -> streamOptions();
            case "cache_salt" -> request.cacheSalt = string(name);
            case "add_special_tokens" -> request.addSpecialTokens = bool(name);
            case "truncate_prompt_tokens" -> truncate();
            case "prompt" -> {
                if (request.chat == null) {
                    prompt();
                } else {
                    json.skipChildren();
                }
            }
            case "prompt_embeds" -> {
                embedsSeen = json.currentToken() != JsonToken.VALUE_NULL;
                json.skipChildren();
            }
            default -> {
                if (request.chat != null && CHAT_MEMBERS.contains(name)) {
                    request.chat.set(name, json.<JsonNode>readValueAsTree());
                } else {
                    json.skipChildren();
                }
            }
        }
    }

    private void check() throws ApiException {
        if (request.chat == null) {
            if (!promptSeen && !embedsSeen) {
                throw ApiException.invalid("prompt", "'prompt' is missing");
            }
            return;
        }
        final JsonNode messages = request.chat.get("messages");
        if (messages == null || messages.isNull()) {
            throw ApiException.invalid("messages", "'messages' is missing");
        }
        if (!(messages instanceof ArrayNode list)) {
            throw wrongType("messages", "a list of messages", messages.getNodeType().name());
        }
        if (list.isEmpty()) {
            throw ApiException.invalid("messages", "'messages' is empty");
        }
        for (int i = 0; i < list.size(); i++) {
            if (!(list.get(i) instanceof ObjectNode message)) {
                throw wrongType(
                        "messages[" + i + "]", "an object", list.get(i).getNodeType().name());
            }
            if (!message.path("role").isTextual()) {
                throw ApiException.invalid(
                        "messages[" + i + "].role", "'messages[" + i + "].role' must be a string");
            }
        }
        final JsonNode tools = request.chat.get("tools");
        if (tools != null && !tools.isNull() && !tools.isArray()) {
            throw wrongType("tools", "a list", tools.getNodeType().name());
        }
    }

    private String string(String name) throws IOException, ApiException {
        return switch (json.currentToken()) {
            case VALUE_STRING -> json.getText();
            case VALUE_NULL -> null;
            default -> throw wrongType(name, "a string");
        };
    }

    private Boolean bool(String name) throws ApiException {
        return switch (json.currentToken()) {
            case VALUE_TRUE -> Boolean.TRUE;
            case VALUE_FALSE -> Boolean.FALSE;
            case VALUE_NULL -> null;
            default -> throw wrongType(name, "a boolean");
        };
    }

    private void truncate() throws IOException, ApiException {
        if (json.currentToken() == JsonToken.VALUE_NULL) {
            request.truncatePromptTokens = 0;
        } else if (json.currentToken() == JsonToken.VALUE_NUMBER_INT) {
            request.truncatePromptTokens = Math.clamp(json.getLongValue(), 0, Integer.MAX_VALUE);
        } else {
            throw wrongType("truncate_prompt_tokens", "an integer");
        }
    }

    private void streamOptions() throws IOException, ApiException {
        request.includeUsage = false;
        request.usageValue = -1;
        request.optionsAfterBrace = -1;
        request.optionsNull = -1;
        if (json.currentToken() == JsonToken.VALUE_NULL) {
            request.optionsNull = offset();
            return;
        }
        if (json.currentToken() != JsonToken.START_OBJECT) {
            throw wrongType("stream_options", "an object");
        }
        request.optionsAfterBrace = offset() + 1;
        request.optionsEmpty = true;
        while (json.nextToken() == JsonToken.FIELD_NAME) {
            request.optionsEmpty = false;
            final boolean isUsage = json.currentName().equals("include_usage");
            json.nextToken();
            if (isUsage) {
                request.includeUsage = Boolean.TRUE.equals(bool("stream_options.include_usage"));
                request.usageValue = request.includeUsage ? -1 : offset();
                request.usageValueLength = json.getTextLength();
            } else {
                json.skipChildren();
            }
        }
    }

    private void prompt() throws IOException, ApiException {
        promptSeen = true;
        request.promptText = null;
        request.promptIds = null;
        request.prompts = 1;
        switch (json.currentToken()) {
            case VALUE_STRING -> request.promptText = json.getText();
            case START_ARRAY -> promptList();
            case VALUE_NULL -> promptSeen = false;
            default ->
                    throw wrongType(
                            "prompt", "a string, a list of token ids, or a list of either of them");
        }
    }

    private void promptList() throws IOException, ApiException {
        switch (json.nextToken()) {
            case END_ARRAY -> throw ApiException.invalid("prompt", "'prompt' is empty");
            case VALUE_STRING -> {
                request.promptText = json.getText();
                skipBatch(JsonToken.VALUE_STRING, "a string");
            }
            case START_ARRAY -> {
                json.nextToken();
                request.promptIds = ids("prompt[0]");
                skipBatch(JsonToken.START_ARRAY, "a list of token ids");
            }
            default -> request.promptIds = ids("prompt");
        }
    }

    /** Counts the rest of a batch; routing looks at its first prompt only. */
    private void skipBatch(JsonToken kind, String what) throws IOException, ApiException {
        for (JsonToken token = json.nextToken();
                token != JsonToken.END_ARRAY;
                token = json.nextToken()) {
            if (token != kind) {
                throw wrongType("prompt[" + request.prompts + "]", what + " like the first one");
            }
            json.skipChildren();
            request.prompts++;
        }
    }

    /** Reads ids from the current token to the end of the list. */
    private int[] ids(String name) throws IOException, ApiException {
        int[] ids = new int[FIRST_IDS];
        int count = 0;
        for (JsonToken token = json.currentToken();
                token != JsonToken.END_ARRAY;
                token = json.nextToken()) {
            if (token != JsonToken.VALUE_NUMBER_INT) {
                throw ApiException.invalid(
                        name,
                        "'"
                                + name
                                + "["
                                + count
                                + "]' must be a token id, an integer in 0.."
                                + Integer.MAX_VALUE
                                + ", but is "
                                + (token == null || token.isStructStart()
                                        ? "a nested value"
                                        : json.getText()));
            }
            if (json.getNumberType() != JsonParser.NumberType.INT || json.getIntValue() < 0) {
                throw ApiException.invalid(
                        name,
                        "'"
                                + name
                                + "["
                                + count
                                + "]' = "
                                + json.getText()
                                + " is no token id; ids are integers in 0.."
                                + Integer.MAX_VALUE);
            }
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, 2 * count);
            }
            ids[count++] = json.getIntValue();
        }
        if (count == 0) {
            throw ApiException.invalid(name, "'" + name + "' is empty");
        }
        return Arrays.copyOf(ids, count);
    }

    private int offset() {
        return (int) json.currentTokenLocation().getByteOffset();
    }

    private ApiException wrongType(String name, String wanted) {
        return wrongType(name, wanted, json.currentToken().name());
    }

    private static ApiException wrongType(String name, String wanted, String found) {
        return ApiException.invalid(
                name,
                "'"
                        + name
                        + "' must be "
                        + wanted
                        + ", but is "
                        + switch (found) {
                            case "VALUE_STRING", "STRING" -> "a string";
                            case "VALUE_NUMBER_INT", "VALUE_NUMBER_FLOAT", "NUMBER" -> "a number";
                            case "VALUE_TRUE", "VALUE_FALSE", "BOOLEAN" -> "a boolean";
                            case "VALUE_NULL", "NULL" -> "null";
                            case "START_ARRAY", "ARRAY" -> "a list";
                            default -> "an object";
                        });
    }
}
