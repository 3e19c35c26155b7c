package io.kvasir.pipeline.log;

/**
 * Makes text of clients, workers and files fit for a line of a log or a message: printable
 * characters only, so that it cannot end the line or steer a terminal, and not too many of them.
 */
public final class LineText {
    /** Longer text is cut to this many characters. */
    public static final int MAX_LENGTH = 300;

    private LineText() {}

    /**
     * Escapes and cuts a text.
     *
     * @param text null is written as such
     */
    public static String of(String text) {
        if (text == null) {
            return "null";
        }
        final int end = Math.min(text.length(), MAX_LENGTH);
        final StringBuilder line = new StringBuilder(end + 16);
        for (int i = 0; i < end; ) {
            final int character = text.codePointAt(i);
            if (isPrintable(character)) {
                line.appendCodePoint(character);
            } else {
                line.append("\\u{").append(Integer.toHexString(character)).append('}');
            }
            i += Character.charCount(character);
        }
        if (end < text.length()) {
            line.append("... (").append(text.length()).append(" characters)");
        }
        return line.toString();
    }

    private static boolean isPrintable(int character) {
        return switch (Character.getType(character)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR,
                    Character.SURROGATE,
                    Character.PRIVATE_USE,
                    Character.UNASSIGNED ->
                    false;
            default -> true;
        };
    }
}
