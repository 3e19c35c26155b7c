package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Python's {@code json.dumps}, as chat templates get it: by default no escaping of other than
 * control characters, {@code ", "} between items and {@code ": "} after keys. Every byte counts:
 * the text becomes part of the prompt.
 */
final class Json {
    private static final HexFormat HEX = HexFormat.of();

    private final boolean asciiOnly;
    private final String indent;
    private final String itemSeparator;
    private final String keySeparator;
    private final boolean sortKeys;
    private final Budget budget = Budget.current();
    private final StringBuilder out = new StringBuilder();

    private Json(
            boolean asciiOnly,
            String indent,
            String itemSeparator,
            String keySeparator,
            boolean sortKeys) {
        this.asciiOnly = asciiOnly;
        this.indent = indent;
        this.itemSeparator = itemSeparator;
        this.keySeparator = keySeparator;
        this.sortKeys = sortKeys;
    }

    /** The filter {@code tojson(ensure_ascii, indent, separators, sort_keys)}. */
    static String dumps(Object value, Arguments arguments) {
        final boolean ascii = PythonValues.truth(arguments.take("ensure_ascii", false));
        final Object indent = arguments.take("indent", null);
        final Object separators = arguments.take("separators", null);
        final boolean sort = PythonValues.truth(arguments.take("sort_keys", false));
        arguments.end();
        final boolean plain = PythonValues.isText(value); // for which the layout does not matter
        String item = indent == null ? ", " : ",";
        String key = ": ";
        if (separators != null) {
            final List<Object> pair = PythonValues.list(separators);
            if (pair.size() != 2) {
                throw new ValueException("tojson: separators have to be two");
            }
            if (!plain) {
                item = Methods.text(pair.get(0));
                key = Methods.text(pair.get(1));
            }
        }
        final Json json = new Json(ascii, plain ? null : indentText(indent), item, key, sort);
        json.write(value, 0);
        json.budget.text(json.out.length());
        return json.out.toString();
    }

    private static String indentText(Object indent) {
        if (indent == null || PythonValues.isText(indent)) {
            return indent == null ? null : Text.of(indent);
        }
        return Text.repeat(" ", Math.max(0, Numbers.index(indent)));
    }

    private void write(Object value, int depth) {
        budget.step();
        budget.depth(depth);
        switch (value) {
            case null -> out.append("null");
            case Boolean b -> out.append(b ? "true" : "false");
            case Double d -> out.append(number(d));
            case String s -> string(s);
            case Markup markup -> string(markup.text());
            case Range range -> throw notSerializable(range);
            case List<?> list -> list(list, depth);
            case Map<?, ?> dict -> dict(dict, depth);
            default -> {
                if (!Numbers.isWhole(value)) {
                    throw notSerializable(value);
                }
                append(Numbers.text(Numbers.big(value)));
            }
        }
    }

    private static ValueException notSerializable(Object value) {
        return new ValueException(
                "Object of type " + PythonValues.typeName(value) + " is not JSON serializable");
    }

    private static String number(double value) {
        if (Double.isNaN(value)) {
            return "NaN";
        }
        if (Double.isInfinite(value)) {
            return value > 0 ? "Infinity" : "-Infinity";
        }
        return Numbers.text(value);
    }

    private void list(List<?> list, int depth) {
        if (list.isEmpty()) {
            out.append("[]");
            return;
        }
        out.append('[');
        boolean first = true;
        for (Object item : list) {
            if (!first) {
                append(itemSeparator);
            }
            first = false;
            newLine(depth + 1);
            write(item, depth + 1);
        }
        newLine(depth);
        out.append(']');
    }

    private void dict(Map<?, ?> dict, int depth) {
        if (dict.isEmpty()) {
            out.append("{}");
            return;
        }
        final List<Map.Entry<?, ?>> entries = new ArrayList<>(dict.entrySet());
        if (sortKeys) {
            entries.sort((a, b) -> PythonValues.compare("<", a.getKey(), b.getKey()));
        }
        out.append('{');
        final Iterator<Map.Entry<?, ?>> each = entries.iterator();
        while (each.hasNext()) {
            final Map.Entry<?, ?> entry = each.next();
            newLine(depth + 1);
            string(key(entry.getKey()));
            append(keySeparator);
            write(entry.getValue(), depth + 1);
            if (each.hasNext()) {
                append(itemSeparator);
            }
        }
        newLine(depth);
        out.append('}');
    }

    private static String key(Object key) {
        return switch (key) {
            case null -> "null";
            case String s -> s;
            case Markup markup -> markup.text();
            case Boolean b -> b ? "true" : "false";
            case Double d -> number(d);
            default -> {
                if (!Numbers.isWhole(key)) {
                    throw new ValueException(
                            "keys must be str, int, float, bool or None, not "
                                    + PythonValues.typeName(key));
                }
                yield Numbers.text(Numbers.big(key));
            }
        };
    }

    private void newLine(int depth) {
        if (indent != null) {
            budget.text(1 + (long) indent.length() * depth);
            out.append('\n').repeat(indent, depth);
        }
    }

    private void append(String text) {
        budget.text(text.length());
        out.append(text);
    }

    private void string(String text) {
        budget.text(text.length());
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            final char c = text.charAt(i);
            switch (c) {
                case '"' -> out.append("\\\"");
                case '\\' -> out.append("\\\\");
                case '\n' -> out.append("\\n");
                case '\r' -> out.append("\\r");
                case '\t' -> out.append("\\t");
                case '\f' -> out.append("\\f");
                case '\b' -> out.append("\\b");
                default -> {
                    if (c < 0x20 || (asciiOnly && c > 0x7E)) {
                        append("\\u");
                        append(HEX.toHexDigits(c));
                    } else {
                        out.append(c);
                    }
                }
            }
        }
        out.append('"');
    }
}
