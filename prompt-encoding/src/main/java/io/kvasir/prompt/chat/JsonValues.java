package io.kvasir.prompt.chat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON trees as the plain values that templates work with; order of members is kept. */
final class JsonValues {
    /** Reads what Python's {@code json.loads} reads. */
    private static final ObjectMapper PYTHON =
            JsonMapper.builder()
                    .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
                    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                    .build();

    private JsonValues() {}

    static Object of(JsonNode node) {
        return switch (node.getNodeType()) {
            case OBJECT -> dict(node);
            case ARRAY -> {
                final List<Object> list = new ArrayList<>(node.size());
                node.forEach(item -> list.add(of(item)));
                yield list;
            }
            case STRING -> node.textValue();
            case BOOLEAN -> node.booleanValue();
            case NUMBER -> node.isIntegralNumber() ? whole(node) : (Object) node.doubleValue();
            default -> null;
        };
    }

    private static Object whole(JsonNode number) {
        return number.canConvertToLong()
                ? (Object) number.longValue()
                : (Object) number.bigIntegerValue();
    }

    static Map<String, Object> dict(JsonNode object) {
        final Map<String, Object> dict = LinkedHashMap.newLinkedHashMap(object.size());
        object.properties().forEach(member -> dict.put(member.getKey(), of(member.getValue())));
        return dict;
    }

    /** A JSON object written as text; empty for any other text. */
    static Map<String, Object> parseDict(String text) {
        try {
            final JsonNode node = PYTHON.readTree(text);
            return node.isObject() ? dict(node) : new LinkedHashMap<>();
        } catch (JsonProcessingException e) {
            // what the model wrote may be broken; the engine continues, too
            return new LinkedHashMap<>();
        }
    }

    /** Whether a member exists and is not null. */
    static boolean has(JsonNode object, String name) {
        return object.hasNonNull(name);
    }

    /** Copies the members that are there and not null. */
    static void copy(JsonNode from, ObjectNode to, String... members) {
        for (String member : members) {
            if (has(from, member)) {
                to.set(member, from.get(member));
            }
        }
    }
}
