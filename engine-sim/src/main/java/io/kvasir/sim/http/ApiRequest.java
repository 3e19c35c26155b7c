package io.kvasir.sim.http;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.registry.FailureText;

import java.io.CharConversionException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * The fields of a request body that the simulator knows; others are skipped. Read as a stream, so
 * that a prompt of many token ids goes straight into an array.
 */
final class ApiRequest {
    /** One message of a conversation; text parts are joined by newlines. */
    record Message(String role, String content) {}

    private static final List<String> TEXTS = List.of("text", "input_text", "output_text");
    private static final JsonFactory JSON = new ObjectMapper().getFactory();

    String model;
    final List<Object> prompts = new ArrayList<>(); // each a String or an int[]
    boolean promptGiven;
    List<Message> messages;
    String instructions; // the system's text of the other APIs
    int[] tokens;
    Integer maxTokens;
    boolean unlimited; // max_tokens is there and null
    Integer maxCompletionTokens;
    int minTokens;
    int n = 1;
    boolean ignoreEos;
    boolean stream;
    boolean includeUsage;
    boolean continuousUsage;
    boolean returnTokenIds;
    boolean returnTokenStrings;
    boolean addSpecialTokens = true;
    boolean addGenerationPrompt = true;
    boolean includeStop;
    final List<String> stops = new ArrayList<>();
    final List<Integer> stopTokens = new ArrayList<>();
    String salt;
    String session;
    boolean announceHits;
    JsonNode kvTransfer;
    JsonNode disaggregated;
    JsonNode bootstrapHost;
    JsonNode bootstrapPort;
    JsonNode bootstrapRoom;

    /**
     * Reads a body to its end, also when it is refused.
     *
     * @throws ApiException 400 when it is no JSON object or a field has the wrong type
     * @throws IOException when the body cannot be read
     */
    static ApiRequest read(InputStream body) throws IOException {
        try {
            return parse(body);
        } finally {
            body.transferTo(OutputStream.nullOutputStream());
        }
    }

    private static ApiRequest parse(InputStream body) throws IOException {
        final ApiRequest request = new ApiRequest();
        try (JsonParser json = JSON.createParser(body)) {
            json.disable(JsonParser.Feature.AUTO_CLOSE_SOURCE);
            if (json.nextToken() != JsonToken.START_OBJECT) {
                throw ApiException.badRequest("The body is not a JSON object.", null);
            }
            while (json.nextToken() != JsonToken.END_OBJECT) {
                final String field = json.currentName();
                json.nextToken();
                if (json.currentToken() != JsonToken.VALUE_NULL) {
                    request.field(field, json);
                } else if (field.equals("max_tokens")) {
                    request.unlimited = true;
                }
            }
        } catch (JsonProcessingException e) {
            throw ApiException.badRequest("Invalid JSON: " + FailureText.of(e), null);
        } catch (CharConversionException e) { // it begins as UTF-32, and is none
            throw ApiException.badRequest("Invalid JSON: " + FailureText.of(e), null);
        }
        return request;
    }

    private void field(String field, JsonParser json) throws IOException {
        switch (field) {
            case "model" -> model = string(field, json);
            case "prompt" -> prompt(json);
            case "messages" -> messages = messages(json);
            case "input" ->
                    messages =
                            json.currentToken() == JsonToken.VALUE_STRING
                                    ? List.of(new Message("user", json.getText()))
                                    : messages(json);
            case "system", "instructions" -> instructions = content(json);
            case "max_output_tokens" -> maxTokens = integer(field, json);
            case "tokens" -> tokens = ids(field, json);
            case "max_tokens" -> maxTokens = integer(field, json);
            case "max_completion_tokens" -> maxCompletionTokens = integer(field, json);
            case "min_tokens" -> minTokens = integer(field, json);
            case "n" -> n = integer(field, json);
            case "ignore_eos" -> ignoreEos = bool(field, json);
            case "stream" -> stream = bool(field, json);
            case "stream_options" -> streamOptions(json);
            case "return_token_ids" -> returnTokenIds = bool(field, json);
            case "return_token_strs" -> returnTokenStrings = bool(field, json);
            case "add_special_tokens" -> addSpecialTokens = bool(field, json);
            case "add_generation_prompt" -> addGenerationPrompt = bool(field, json);
            case "include_stop_str_in_output" -> includeStop = bool(field, json);
            case "stop" -> stops(json);
            case "stop_token_ids" -> Arrays.stream(ids(field, json)).forEach(stopTokens::add);
            case "cache_salt" -> salt = string(field, json);
            case "session_id" -> session = string(field, json);
            case "vllm_xargs" -> extraArguments(json);
            case "kv_transfer_params" -> kvTransfer = object(field, json);
            case "disaggregated_params" -> disaggregated = object(field, json);
            case "bootstrap_host" -> bootstrapHost = json.readValueAsTree();
            case "bootstrap_port" -> bootstrapPort = json.readValueAsTree();
            case "bootstrap_room" -> bootstrapRoom = json.readValueAsTree();
            default -> json.skipChildren();
        }
    }

    private void prompt(JsonParser json) throws IOException {
        promptGiven = true;
        if (json.currentToken() == JsonToken.VALUE_STRING) {
            prompts.add(json.getText());
            return;
        }
        expect("prompt", json, JsonToken.START_ARRAY);
        switch (json.nextToken()) {
            case VALUE_NUMBER_INT -> prompts.add(idsFromFirst("prompt", json));
            case VALUE_STRING -> {
                while (json.currentToken() != JsonToken.END_ARRAY) {
                    prompts.add(string("prompt", json));
                    json.nextToken();
                }
            }
            case START_ARRAY -> {
                while (json.currentToken() != JsonToken.END_ARRAY) {
                    prompts.add(ids("prompt", json));
                    json.nextToken();
                }
            }
            case END_ARRAY -> {
                // no prompt at all: refused where the prompts are used
            }
            default -> throw wrongType("prompt", json);
        }
    }

    private static int[] ids(String field, JsonParser json) throws IOException {
        expect(field, json, JsonToken.START_ARRAY);
        json.nextToken();
        return idsFromFirst(field, json);
    }

    private static int[] idsFromFirst(String field, JsonParser json) throws IOException {
        int[] ids = new int[256];
        int count = 0;
        for (; json.currentToken() != JsonToken.END_ARRAY; json.nextToken()) {
            expect(field, json, JsonToken.VALUE_NUMBER_INT);
            if (count == ids.length) {
                ids = Arrays.copyOf(ids, count * 2);
            }
            final long id = json.getLongValue();
            if (id < 0 || id > Integer.MAX_VALUE) {
                throw ApiException.badRequest("Token id " + id + " is out of vocabulary", field);
            }
            ids[count++] = (int) id;
        }
        return Arrays.copyOf(ids, count);
    }

    private static List<Message> messages(JsonParser json) throws IOException {
        expect("messages", json, JsonToken.START_ARRAY);
        final List<Message> messages = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
            expect("messages", json, JsonToken.START_OBJECT);
            String role = null;
            String content = "";
            while (json.nextToken() != JsonToken.END_OBJECT) {
                final String field = json.currentName();
                json.nextToken();
                switch (field) {
                    case "role" -> role = string("role", json);
                    case "content" -> content = content(json);
                    default -> json.skipChildren();
                }
            }
            if (role == null) {
                throw ApiException.badRequest("A message has no role.", "messages");
            }
            messages.add(new Message(role, content));
        }
        return messages;
    }

    private static String content(JsonParser json) throws IOException {
        if (json.currentToken() == JsonToken.VALUE_NULL) {
            return "";
        }
        if (json.currentToken() == JsonToken.VALUE_STRING) {
            return json.getText();
        }
        expect("content", json, JsonToken.START_ARRAY);
        final List<String> texts = new ArrayList<>();
        while (json.nextToken() != JsonToken.END_ARRAY) {
            expect("content", json, JsonToken.START_OBJECT);
            String type = "text";
            String text = null;
            while (json.nextToken() != JsonToken.END_OBJECT) {
                final String field = json.currentName();
                json.nextToken();
                switch (field) {
                    case "type" -> type = string("type", json);
                    case "text" -> text = string("text", json);
                    default -> json.skipChildren();
                }
            }
            if (!TEXTS.contains(type) || text == null) {
                throw ApiException.badRequest(
                        "The simulated model takes text only, got a part of type " + type + ".",
                        "messages");
            }
            texts.add(text);
        }
        return String.join("\n", texts);
    }

    private void streamOptions(JsonParser json) throws IOException {
        expect("stream_options", json, JsonToken.START_OBJECT);
        while (json.nextToken() != JsonToken.END_OBJECT) {
            final String field = json.currentName();
            json.nextToken();
            switch (field) {
                case "include_usage" -> includeUsage = bool(field, json);
                case "continuous_usage_stats" -> continuousUsage = bool(field, json);
                default -> json.skipChildren();
            }
        }
    }

    private void extraArguments(JsonParser json) throws IOException {
        expect("vllm_xargs", json, JsonToken.START_OBJECT);
        while (json.nextToken() != JsonToken.END_OBJECT) {
            final String field = json.currentName();
            json.nextToken();
            if (field.equals("kv_cache_report_mode")) {
                announceHits = string(field, json).equals("full");
            } else {
                json.skipChildren();
            }
        }
    }

    private void stops(JsonParser json) throws IOException {
        if (json.currentToken() == JsonToken.VALUE_STRING) {
            stops.add(json.getText());
        } else {
            expect("stop", json, JsonToken.START_ARRAY);
            while (json.nextToken() != JsonToken.END_ARRAY) {
                stops.add(string("stop", json));
            }
        }
        if (stops.contains("")) {
            throw ApiException.badRequest("stop cannot contain an empty string.", "stop");
        }
    }

    private static JsonNode object(String field, JsonParser json) throws IOException {
        expect(field, json, JsonToken.START_OBJECT);
        return json.readValueAsTree();
    }

    private static String string(String field, JsonParser json) throws IOException {
        expect(field, json, JsonToken.VALUE_STRING);
        return json.getText();
    }

    private static int integer(String field, JsonParser json) throws IOException {
        expect(field, json, JsonToken.VALUE_NUMBER_INT);
        return json.getIntValue();
    }

    private static boolean bool(String field, JsonParser json) throws IOException {
        if (!json.currentToken().isBoolean()) {
            throw wrongType(field, json);
        }
        return json.getBooleanValue();
    }

    private static void expect(String field, JsonParser json, JsonToken token) {
        if (json.currentToken() != token) {
            throw wrongType(field, json);
        }
    }

    private static ApiException wrongType(String field, JsonParser json) {
        return ApiException.badRequest(
                "`" + field + "` has the wrong type: " + json.currentToken(), field);
    }
}
