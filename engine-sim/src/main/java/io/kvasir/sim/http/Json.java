package io.kvasir.sim.http;

import com.fasterxml.jackson.core.io.JsonStringEncoder;

/** The little JSON that answers need, written into a builder. */
final class Json {
    private Json() {}

    /** Appends a quoted string, or null. */
    static StringBuilder string(StringBuilder out, String value) {
        if (value == null) {
            return out.append("null");
        }
        out.append('"');
        JsonStringEncoder.getInstance().quoteAsString(value, out);
        return out.append('"');
    }

    /** Appends a string or a number, or null. */
    static StringBuilder value(StringBuilder out, Object value) {
        return value instanceof String text ? string(out, text) : out.append(value);
    }

    /** Appends an array of numbers, or null. */
    static StringBuilder array(StringBuilder out, int[] values) {
        if (values == null) {
            return out.append("null");
        }
        out.append('[');
        for (int i = 0; i < values.length; i++) {
            if (i > 0) {
                out.append(',');
            }
            out.append(values[i]);
        }
        return out.append(']');
    }
}
