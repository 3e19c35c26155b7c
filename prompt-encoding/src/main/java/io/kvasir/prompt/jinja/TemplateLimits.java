package io.kvasir.prompt.jinja;

/**
 * What compiling or rendering one template may cost; a template that needs more fails with {@link
 * TemplateException.Kind#LIMIT}. Compiling and each rendering count for themselves.
 *
 * @param maxSteps operations: statements, expressions, items that are walked through, and 64
 *     characters of text that is worked on
 * @param maxOutputChars length of the rendered text
 * @param maxMemoryBytes bytes taken for values in all, live or not; a rendering may take {@value
 *     #BYTES_PER_INPUT_CHAR} more for each character of its variables
 * @param maxDepth nesting of expressions, statements, macro calls and printed values
 */
public record TemplateLimits(
        long maxSteps, long maxOutputChars, long maxMemoryBytes, int maxDepth) {
    /** Enough for any template that is shipped with a model. */
    public static final TemplateLimits DEFAULT =
            new TemplateLimits(20_000_000, 64L << 20, 256L << 20, 500);

    /** Eight copies of what the template was given, two bytes a character. */
    static final int BYTES_PER_INPUT_CHAR = 16;

    /** Checks the values. */
    public TemplateLimits {
        check("maxSteps", maxSteps);
        check("maxOutputChars", maxOutputChars);
        check("maxMemoryBytes", maxMemoryBytes);
        check("maxDepth", maxDepth);
    }

    private static void check(String name, long value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + "=" + value + " must be 0 or more");
        }
    }
}
