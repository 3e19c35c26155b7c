package io.kvasir.gateway.openai;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.net.ProtocolException;
import java.util.Map;

/**
 * Turns the answer of {@code /v1/completions} into that of {@code /v1/chat/completions}: the text
 * of each choice becomes its message or delta, its logprobs take the chat's form; usage, finish
 * reasons and members that are not known stay as they are. Immutable.
 */
public final class ChatAnswer {
    private static final String COMPLETION_ID = "cmpl-";

    private final int mostChoices;
    private final ChatLogprobs logprobs;

    /**
     * @param mostChoices answers that were asked for; one with a greater index is a fault
     * @param topLogprobs likely tokens that are stated beside each
     */
    ChatAnswer(int mostChoices, int topLogprobs) {
        this.mostChoices = mostChoices;
        this.logprobs = new ChatLogprobs(topLogprobs);
    }

    /**
     * Turns a whole answer.
     *
     * @param length of the completion in bytes, from 0 on
     * @throws ProtocolException if it is no completion
     */
    public byte[] whole(byte[] completion, int length) throws ProtocolException {
        final ObjectNode answer = object(completion, 0, length);
        if (!answer.path("choices").isArray()) {
            throw new ProtocolException("a completion without choices");
        }
        final ObjectNode chat = head(answer, "chat.completion");
        final ArrayNode choices = chat.putArray("choices");
        for (JsonNode each : answer.get("choices")) {
            final ObjectNode given = choice(each);
            final JsonNode text = given.get("text");
            if (text == null || !text.isTextual()) {
                throw new ProtocolException("a choice of a completion without text");
            }
            final ObjectNode choice = choiceHead(choices, given);
            choice.putObject("message").put("role", "assistant").set("content", text);
            rest(choice, given);
        }
        tail(chat, answer);
        return bytes(chat);
    }

    /**
     * Turns a chunk of a streamed one; its choices are {@link #choice checked}.
     *
     * @param chunk with a list {@code choices}
     */
    byte[] chunk(ObjectNode chunk) throws ProtocolException {
        final ObjectNode chat = head(chunk, "chat.completion.chunk");
        final ArrayNode choices = chat.putArray("choices");
        for (JsonNode each : chunk.get("choices")) {
            final ObjectNode given = choice(each);
            final ObjectNode choice = choiceHead(choices, given);
            final ObjectNode delta = choice.putObject("delta");
            if (given.path("text").isTextual()) {
                delta.set("content", given.get("text"));
            }
            rest(choice, given);
        }
        tail(chat, chunk);
        return bytes(chat);
    }

    /** The chunk that opens a choice: it says the role. */
    byte[] opening(ObjectNode chunk, int index) {
        final ObjectNode chat = head(chunk, "chat.completion.chunk");
        final ObjectNode choice = chat.putArray("choices").addObject().put("index", index);
        choice.putObject("delta").put("role", "assistant").put("content", "");
        choice.putNull("logprobs").putNull("finish_reason");
        return bytes(chat);
    }

    /** A choice whose index is one that was asked for. */
    ObjectNode choice(JsonNode each) throws ProtocolException {
        if (!(each instanceof ObjectNode choice)) {
            throw new ProtocolException("a choice of a completion that is no object");
        }
        final int index = index(choice);
        if (index < 0 || index >= mostChoices) {
            throw new ProtocolException(
                    "a choice whose index is none of the " + mostChoices + " asked for");
        }
        return choice;
    }

    static int index(ObjectNode choice) {
        final JsonNode index = choice.get("index");
        return index == null ? 0 : index.canConvertToInt() ? index.intValue() : -1;
    }

    /**
     * @throws ProtocolException if it is no JSON object
     */
    static ObjectNode object(byte[] bytes, int from, int to) throws ProtocolException {
        try {
            if (Json.MAPPER.readTree(bytes, from, to - from) instanceof ObjectNode object) {
                return object;
            }
        } catch (IOException e) {
            throw fault(e);
        }
        throw new ProtocolException("an answer that is no JSON object");
    }

    /** Says nothing of the answer's text, which Jackson's message has. */
    private static ProtocolException fault(IOException cause) {
        final ProtocolException fault = new ProtocolException("an answer that is not JSON");
        fault.addSuppressed(cause);
        return fault;
    }

    /** What comes before the choices. */
    private static ObjectNode head(ObjectNode completion, String object) {
        final ObjectNode chat = Json.MAPPER.createObjectNode();
        final String id = completion.path("id").asText();
        chat.put("id", id.startsWith(COMPLETION_ID) ? "chat" + id : id).put("object", object);
        for (String name : new String[] {"created", "model"}) {
            if (completion.has(name)) {
                chat.set(name, completion.get(name));
            }
        }
        return chat;
    }

    /** What comes after the choices. */
    private static void tail(ObjectNode chat, ObjectNode completion) {
        for (Map.Entry<String, JsonNode> member : completion.properties()) {
            if (!chat.has(member.getKey())) {
                chat.set(member.getKey(), member.getValue());
            }
        }
    }

    private static ObjectNode choiceHead(ArrayNode choices, ObjectNode given) {
        return choices.addObject().put("index", index(given));
    }

    private void rest(ObjectNode choice, ObjectNode given) {
        choice.set("logprobs", logprobs.of(given.path("logprobs")));
        for (Map.Entry<String, JsonNode> member : given.properties()) {
            if (!choice.has(member.getKey()) && !member.getKey().equals("text")) {
                choice.set(member.getKey(), member.getValue());
            }
        }
    }

    private static byte[] bytes(ObjectNode chat) {
        try {
            return Json.MAPPER.writeValueAsBytes(chat);
        } catch (IOException e) {
            throw new AssertionError("a tree is always writable", e);
        }
    }
}
