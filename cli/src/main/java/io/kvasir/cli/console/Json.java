package io.kvasir.cli.console;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.PrintWriter;

/** The one JSON mapper of the command line and its way of printing results. */
public final class Json {
    /** Shared, thread-safe, default settings. */
    public static final ObjectMapper MAPPER = new ObjectMapper();

    private static final ObjectWriter PRETTY = MAPPER.writerWithDefaultPrettyPrinter();

    private Json() {}

    /** An empty JSON object. */
    public static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    /**
     * Reads a JSON text of this program's own.
     *
     * @throws IllegalStateException if it is none
     */
    public static JsonNode parse(String text) {
        try {
            return MAPPER.readTree(text);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("not JSON: " + text, e);
        }
    }

    /** Prints one indented JSON value and a line end, and flushes. */
    public static void print(ObjectNode value, PrintWriter out) {
        try {
            out.println(PRETTY.writeValueAsString(value));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a tree of plain values must be printable", e);
        }
        out.flush();
    }
}
