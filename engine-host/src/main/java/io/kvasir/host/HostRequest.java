package io.kvasir.host;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.FailureText;

import java.io.CharConversionException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * A request of a client: its body checked as far as the host reads it, and its prompts one by one.
 *
 * @param prompts of each the ids as {@code int[]} or the text as {@code String}; null of a chat
 * @param samples answers to each prompt
 * @param includeUsage whether a stream ends with the usage
 */
record HostRequest(
        boolean chat,
        ObjectNode body,
        String model,
        List<Object> prompts,
        int samples,
        boolean stream,
        boolean includeUsage) {
    private static final ObjectMapper JSON =
            new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private static final int MOST_ANSWERS = 1024;

    /** Reads a body; what it says wrong is refused with the member's name. */
    static HostRequest read(boolean chat, byte[] bytes, EngineNames names)
            throws IOException, RefusedException {
        final ObjectNode body = object(bytes);
        final JsonNode model = body.path("model");
        if (body.hasNonNull("model") && !model.isTextual()) {
            throw RefusedException.invalid("model must be a string");
        }
        final String name = names.served(model.textValue()); // null where it says none
        final int samples = count(body, "n", 1);
        final List<Object> prompts = chat ? chatPrompt(body) : prompts(body.get("prompt"));
        if ((long) samples * prompts.size() > MOST_ANSWERS) {
            throw RefusedException.invalid(
                    "n="
                            + samples
                            + " answers to "
                            + prompts.size()
                            + " prompts are more than "
                            + MOST_ANSWERS);
        }
        return new HostRequest(
                chat,
                body,
                name,
                prompts,
                samples,
                flag(body, "stream"),
                flag(body.path("stream_options"), "include_usage"));
    }

    /** Reads a body that has to be an object. */
    static ObjectNode object(byte[] bytes) throws IOException, RefusedException {
        try {
            if (JSON.readTree(bytes) instanceof ObjectNode body) {
                return body;
            }
        } catch (JsonProcessingException e) {
            throw RefusedException.invalid("the body is not JSON: " + FailureText.of(e));
        } catch (CharConversionException e) { // it begins as UTF-32, and is none
            throw RefusedException.invalid("the body is not JSON: " + FailureText.of(e));
        }
        throw RefusedException.invalid("the body is no JSON object");
    }

    private static boolean flag(JsonNode of, String name) throws RefusedException {
        final JsonNode flag = of.get(name);
        if (flag == null || flag.isNull()) {
            return false;
        }
        if (!flag.isBoolean()) {
            throw RefusedException.invalid(name + " must be true or false");
        }
        return flag.booleanValue();
    }

    private static int count(ObjectNode body, String name, int otherwise) throws RefusedException {
        final JsonNode count = body.get(name);
        if (count == null || count.isNull()) {
            return otherwise;
        }
        if (!count.canConvertToInt() || !count.isIntegralNumber() || count.intValue() < 1) {
            throw RefusedException.invalid(name + " must be a number from 1 on, not " + count);
        }
        return count.intValue();
    }

    private static List<Object> chatPrompt(ObjectNode body) throws RefusedException {
        if (!body.path("messages").isArray() || body.get("messages").isEmpty()) {
            throw RefusedException.invalid("messages must be an array of at least one message");
        }
        final List<Object> one = new ArrayList<>();
        one.add(null);
        return one;
    }

    private static List<Object> prompts(JsonNode prompt) throws RefusedException {
        if (prompt == null) {
            throw RefusedException.invalid("prompt is missing");
        }
        final boolean isOne = prompt.isTextual() || prompt.path(0).isNumber();
        final List<Object> all = new ArrayList<>();
        if (isOne) {
            all.add(promptOf(prompt));
        } else if (prompt.isArray()) {
            for (JsonNode each : prompt) {
                all.add(promptOf(each));
            }
        }
        if (all.isEmpty()) {
            throw RefusedException.invalid(
                    "prompt must be a string, an array of token ids, or an array of these");
        }
        return all;
    }

    private static Object promptOf(JsonNode prompt) throws RefusedException {
        if (prompt.isTextual()) {
            return prompt.textValue();
        }
        if (!prompt.isArray() || prompt.isEmpty()) {
            throw RefusedException.invalid("a prompt must be a string or an array of token ids");
        }
        final int[] ids = new int[prompt.size()];
        for (int i = 0; i < ids.length; i++) {
            final JsonNode id = prompt.get(i);
            if (!id.isIntegralNumber() || !id.canConvertToInt() || id.intValue() < 0) {
                throw RefusedException.invalid("prompt[" + i + "]=" + id + " is no token id");
            }
            ids[i] = id.intValue();
        }
        return ids;
    }

    /** Prompts with their samples, in the order of the answer's choices. */
    List<GenerateRequest> parts(String id, int dpRank) {
        final List<GenerateRequest> parts = new ArrayList<>(prompts.size() * samples);
        for (Object prompt : prompts) {
            for (int sample = 0; sample < samples; sample++) {
                parts.add(
                        new GenerateRequest(
                                id,
                                model,
                                body,
                                prompt instanceof int[] ids ? ids : null,
                                prompt instanceof String text ? text : null,
                                sample,
                                dpRank));
            }
        }
        return parts;
    }
}
