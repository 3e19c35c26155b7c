package io.kvasir.prompt.jinja;

/** Strips text outside of a template as one strips it: by Python's idea of white space. */
public final class WhiteSpace {
    private WhiteSpace() {}

    /** {@code text.strip()}. */
    public static String strip(String text) {
        return Text.stripped(text, null, true, true);
    }

    /** {@code text.rstrip()}. */
    public static String stripTrailing(String text) {
        return Text.stripped(text, null, false, true);
    }
}
