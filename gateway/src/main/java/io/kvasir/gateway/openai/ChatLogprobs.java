package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/**
 * Log probabilities of a completion (lists of tokens, of their values and of likely others) in the
 * form of a chat (an object for each token). Immutable.
 */
final class ChatLogprobs {
    /** What engines write where they have no value. */
    private static final double NO_VALUE = -9999.0;

    private final int top;

    /**
     * @param top most likely tokens stated for each
     */
    ChatLogprobs(int top) {
        this.top = top;
    }

    /** Null (the JSON value) for what are none. */
    JsonNode of(JsonNode completion) {
        if (!completion.path("tokens").isArray()) {
            return Json.MAPPER.nullNode();
        }
        final ObjectNode chat = Json.MAPPER.createObjectNode();
        final ArrayNode content = chat.putArray("content");
        final JsonNode tokens = completion.get("tokens");
        for (int i = 0; i < tokens.size(); i++) {
            final ObjectNode token =
                    token(
                            content.addObject(),
                            tokens.get(i).asText(),
                            completion.path("token_logprobs").path(i));
            final ArrayNode likely = token.putArray("top_logprobs");
            for (Map.Entry<String, JsonNode> each :
                    likeliest(completion.path("top_logprobs").path(i))) {
                token(likely.addObject(), each.getKey(), each.getValue());
            }
        }
        return chat;
    }

    private List<Map.Entry<String, JsonNode>> likeliest(JsonNode byToken) {
        final List<Map.Entry<String, JsonNode>> all = new ArrayList<>(byToken.properties());
        all.sort(
                Comparator.comparingDouble(
                        (Map.Entry<String, JsonNode> each) -> -each.getValue().asDouble(NO_VALUE)));
        return all.subList(0, Math.min(top, all.size())); // the chosen one may be one more
    }

    private static ObjectNode token(ObjectNode into, String token, JsonNode value) {
        into.put("token", token);
        if (value.isNumber()) {
            into.set("logprob", value);
        } else {
            into.put("logprob", NO_VALUE);
        }
        final ArrayNode bytes = into.putArray("bytes");
        for (byte each : token.getBytes(StandardCharsets.UTF_8)) {
            bytes.add(Byte.toUnsignedInt(each));
        }
        return into;
    }
}
