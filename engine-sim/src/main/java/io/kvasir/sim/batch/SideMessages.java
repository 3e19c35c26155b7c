package io.kvasir.sim.batch;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.FailureText;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Messages between the side port of a prefill engine and a decode engine: one JSON object per line,
 * each request answered by one line.
 *
 * <pre>
 * {"pull": key, "engine": id, "room": n, "model": name, "block_size": n}   what is held?
 *     {"tokens": n, "print": n, "blocks": [...], "record": base64, "first_block": n} | {"stale": why} | {"refused": why}
 * {"done": key}    pulled, free it         {"freed": true|false}
 * {"free": key}    never pulled, free it   {"freed": true|false}
 * </pre>
 */
final class SideMessages {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LONGEST = 4 << 20;

    private SideMessages() {}

    static ObjectNode object() {
        return JSON.createObjectNode();
    }

    static void write(OutputStream out, JsonNode message) throws IOException {
        out.write((message + "\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    /**
     * Reads a message.
     *
     * @return null at the end of the stream
     * @throws IOException if it is no JSON object or is too long
     */
    static JsonNode read(InputStream in) throws IOException {
        final ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                return null;
            }
            if (line.size() == LONGEST) {
                throw new IOException("a message of more than " + LONGEST + " bytes");
            }
            line.write(b);
        }
        try {
            final JsonNode message = JSON.readTree(line.toByteArray());
            if (message != null && message.isObject()) {
                return message;
            }
        } catch (JsonProcessingException e) {
            throw new IOException("no JSON: " + FailureText.of(e), e);
        }
        throw new IOException("not a JSON object");
    }

    static ObjectNode order(PullOrder order) {
        return object().put("pull", order.key())
                .put("engine", order.engineId())
                .put("room", order.room())
                .put("model", order.model())
                .put("block_size", order.blockSize());
    }

    static PullOrder order(JsonNode message) {
        return new PullOrder(
                message.path("pull").asText(),
                message.path("engine").textValue(),
                message.path("room").asLong(-1),
                message.path("model").asText(),
                message.path("block_size").asInt());
    }

    static ObjectNode offer(PullOffer offer) {
        if (offer.stale() != null) {
            return object().put("stale", offer.stale());
        }
        if (offer.refused() != null) {
            return object().put("refused", offer.refused());
        }
        final ObjectNode message =
                object().put("tokens", offer.tokens()).put("print", offer.print());
        final ArrayNode blocks = message.putArray("blocks");
        offer.blocks().forEach(blocks::add);
        if (offer.record() != null) {
            message.put("record", offer.record()).put("first_block", offer.firstBlock());
        }
        return message;
    }

    static PullOffer offer(JsonNode message) {
        final List<Integer> blocks = new ArrayList<>();
        message.path("blocks").forEach(block -> blocks.add(block.asInt()));
        return new PullOffer(
                message.path("tokens").asInt(),
                message.path("print").asLong(),
                blocks,
                message.path("record").textValue(),
                message.path("first_block").asInt(),
                message.path("stale").textValue(),
                message.path("refused").textValue());
    }
}
