package io.kvasir.prompt.jinja;

import java.util.Map;
import java.util.regex.Pattern;

/**
 * A string marked as HTML by {@code safe} or {@code escape}. Prints like any string; a plain string
 * added to it is escaped first.
 *
 * @param text the marked text
 */
record Markup(String text) {
    private static final int LONGEST_ESCAPE = 6;

    private static final Pattern NO_NAME = Pattern.compile("[ \\t\\n\\x0B\\f\\r/>=]");

    static Markup escape(Object value) {
        if (value instanceof Markup markup) {
            return markup;
        }
        final String text = Text.of(value);
        Budget.current().text(LONGEST_ESCAPE * (long) text.length());
        return new Markup(
                text.replace("&", "&amp;")
                        .replace(">", "&gt;")
                        .replace("<", "&lt;")
                        .replace("'", "&#39;")
                        .replace("\"", "&#34;"));
    }

    /**
     * The entries of a dict as attributes of an element, without those that have no value.
     *
     * @param spaceBefore whether a space comes first, where there are any
     */
    static String attributes(Object value, boolean spaceBefore) {
        if (!(value instanceof Map<?, ?> dict)) {
            throw new ValueException(
                    "xmlattr needs a dict, not '" + PythonValues.typeName(value) + "'");
        }
        final StringBuilder out = new StringBuilder();
        dict.forEach(
                (key, of) -> {
                    if (of != null && !(of instanceof Undefined)) {
                        out.append(spaceBefore || !out.isEmpty() ? " " : "")
                                .append(name(key))
                                .append("=\"")
                                .append(escape(of).text())
                                .append('"');
                    }
                });
        return out.toString();
    }

    private static String name(Object key) {
        final String name = Methods.text(key);
        if (NO_NAME.matcher(name).find()) {
            throw new ValueException(
                    "xmlattr: white space, /, > or = in the name " + Text.repr(name));
        }
        return escape(key).text();
    }
}
