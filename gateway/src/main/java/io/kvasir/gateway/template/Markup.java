package io.kvasir.gateway.template;

/**
 * A string marked as HTML by {@code safe} or {@code escape}. Prints like any string; a plain string
 * added to it is escaped first.
 *
 * @param text the marked text
 */
record Markup(String text) {
    static Markup escape(Object value) {
        if (value instanceof Markup markup) {
            return markup;
        }
        return new Markup(
                Text.of(value)
                        .replace("&", "&amp;")
                        .replace(">", "&gt;")
                        .replace("<", "&lt;")
                        .replace("'", "&#39;")
                        .replace("\"", "&#34;"));
    }
}
