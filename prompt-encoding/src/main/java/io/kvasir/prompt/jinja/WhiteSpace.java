package io.kvasir.prompt.jinja;

/** Strips text outside of a template as one strips it: by Python's idea of white space. */
public final class WhiteSpace {
    private WhiteSpace() {}

    /** {@code text.strip()}. */
    public static String strip(String text) {
        int start = 0;
        while (start < text.length() && Text.isSpace(text.charAt(start))) {
            start++;
        }
        return stripTrailing(text.substring(start));
    }

    /** {@code text.rstrip()}. */
    public static String stripTrailing(String text) {
        int end = text.length();
        while (end > 0 && Text.isSpace(text.charAt(end - 1))) {
            end--;
        }
        return text.substring(0, end);
    }
}
