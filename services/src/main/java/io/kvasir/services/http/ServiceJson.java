package io.kvasir.services.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.math.BigInteger;

/** JSON values of answers, in which identifiers are unsigned numbers of 64 bits. */
public final class ServiceJson {
    private ServiceJson() {}

    /** An empty object. */
    public static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    /** An empty array. */
    public static ArrayNode array() {
        return JsonNodeFactory.instance.arrayNode();
    }

    /** Adds a member that is an unsigned number. */
    public static ObjectNode putUnsigned(ObjectNode object, String name, long value) {
        return value >= 0
                ? object.put(name, value)
                : object.put(name, new BigInteger(Long.toUnsignedString(value)));
    }
}
