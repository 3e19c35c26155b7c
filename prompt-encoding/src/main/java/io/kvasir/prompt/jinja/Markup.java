package io.kvasir.prompt.jinja;

/**
 * A string marked as HTML by {@code safe} or {@code escape}. Prints like any string; a plain string
 * added to it is escaped first.
 *
 * @param text the marked text
 */
record Markup(String text) {
    private static final int LONGEST_ESCAPE = 6;

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
}
