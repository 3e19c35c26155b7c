package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.net.ProtocolException;
import java.nio.charset.StandardCharsets;

/** The event stream of an answer that has come whole: all of it in one event. */
public final class WholeStream {
    private static final String CHAT = "chat.completion";

    private WholeStream() {}

    /**
     * Turns an answer of either endpoint.
     *
     * @param usage whether the usage follows in an event of its own
     * @throws ProtocolException if it is no JSON object
     */
    public static byte[] of(byte[] answer, boolean usage) throws ProtocolException {
        final ObjectNode chunk = ChatAnswer.object(answer, 0, answer.length);
        if (chunk.path("object").asText().equals(CHAT)) {
            chunk.put("object", CHAT + ".chunk");
        }
        for (JsonNode choice : chunk.path("choices")) {
            if (choice.get("message") instanceof ObjectNode message) {
                ((ObjectNode) choice).remove("message");
                ((ObjectNode) choice).set("delta", message);
            }
        }
        final JsonNode used = chunk.remove("usage");
        final StringBuilder events = new StringBuilder(event(chunk.toString()));
        if (usage && used != null) {
            chunk.putArray("choices");
            chunk.set("usage", used);
            events.append(event(chunk.toString()));
        }
        return events.append(event("[DONE]")).toString().getBytes(StandardCharsets.UTF_8);
    }

    private static String event(String data) {
        return "data: " + data + "\n\n";
    }
}
