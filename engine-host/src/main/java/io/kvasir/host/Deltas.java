package io.kvasir.host;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;

import java.util.Map;
import java.util.Set;

/** Deltas of a chat's stream, joined to the message that they make. */
final class Deltas {
    private static final String INDEX = "index";

    /** Members that every delta of a call may repeat. */
    private static final Set<String> REPEATED = Set.of("id", "type", "role");

    private Deltas() {}

    /**
     * Joins a delta to what came before: text is appended; objects are joined by member; elements
     * of arrays with an {@code index} are joined with the one of that index, others are added; a
     * null changes nothing that is known; anything else is replaced.
     */
    static void join(ObjectNode message, ObjectNode delta) {
        for (Map.Entry<String, JsonNode> member : delta.properties()) {
            final JsonNode known = message.get(member.getKey());
            message.set(member.getKey(), joined(member.getKey(), known, member.getValue()));
        }
    }

    private static JsonNode joined(String name, JsonNode known, JsonNode next) {
        if (known != null && next.isNull()) {
            return known;
        }
        if (known instanceof ObjectNode all && next instanceof ObjectNode more) {
            join(all, more);
            return all;
        }
        if (next instanceof ArrayNode more) {
            final ArrayNode all = known instanceof ArrayNode array ? array : more.arrayNode();
            more.forEach(element -> add(all, element));
            return all;
        }
        final boolean isText = known != null && known.isTextual() && next.isTextual();
        return isText && !REPEATED.contains(name)
                ? TextNode.valueOf(known.textValue() + next.textValue())
                : next.deepCopy();
    }

    private static void add(ArrayNode all, JsonNode element) {
        for (JsonNode known : all) {
            if (known instanceof ObjectNode same
                    && element instanceof ObjectNode more
                    && element.has(INDEX)
                    && element.get(INDEX).equals(known.get(INDEX))) {
                join(same, more);
                return;
            }
        }
        all.add(element.deepCopy());
    }
}
