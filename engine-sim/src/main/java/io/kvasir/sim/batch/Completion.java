package io.kvasir.sim.batch;

import java.util.Arrays;
import java.util.List;

/**
 * What one request will compute and answer, decided before it runs.
 *
 * <p>Each output token follows from all tokens before it and nothing else, as greedy decoding of a
 * real model: the same prompt gives the same text on every engine, and a prompt that ends with the
 * beginning of an answer is answered with the rest of it.
 */
public final class Completion {
    private final int[] tokens;
    private final int promptTokens;
    private final String text;
    private final String finishReason;
    private final Object stopReason;

    Completion(
            int[] tokens, int promptTokens, String text, String finishReason, Object stopReason) {
        this.tokens = tokens;
        this.promptTokens = promptTokens;
        this.text = text;
        this.finishReason = finishReason;
        this.stopReason = stopReason;
    }

    /**
     * Where an answer ends.
     *
     * @param maxTokens most output tokens, at least 1
     * @param minTokens no end of any kind before this many, except {@code maxTokens}
     * @param endToken token that ends an answer by itself, or -1 to go on to {@code maxTokens}
     * @param meanTokens mean length of an answer that ends by itself
     * @param stops strings that end it
     * @param stopTokens tokens that end it
     * @param includeStop whether the visible answer contains what ended it
     */
    public record Limits(
            int maxTokens,
            int minTokens,
            int endToken,
            int meanTokens,
            List<String> stops,
            List<Integer> stopTokens,
            boolean includeStop) {}

    // letters by frequency, so that an answer looks like words; nothing that JSON escapes
    private static final String LETTERS =
            "      eeeeeetttttaaaaooooiiiinnnnssssrrrrhhhddlllcuummwwffgypbvk,.";

    static {
        assert LETTERS.length() == 66 : "letters=" + LETTERS.length();
    }

    /** The prompt, then the output; not to be changed. */
    public int[] tokens() {
        return tokens;
    }

    /** How many of the tokens are the prompt. */
    public int promptTokens() {
        return promptTokens;
    }

    /** The visible answer; character i belongs to output token i. */
    public String text() {
        return text;
    }

    /** Either {@code stop} or {@code length}. */
    public String finishReason() {
        return finishReason;
    }

    /** Stop string or stop token that ended the answer, or null. */
    public Object stopReason() {
        return stopReason;
    }

    /** How many tokens are generated. */
    public int outputTokens() {
        return tokens.length - promptTokens;
    }

    /** Visible text of some output tokens. */
    public String text(int from, int to) {
        return text.substring(Math.min(from, text.length()), Math.min(to, text.length()));
    }

    /** Output tokens from one to another. */
    public int[] output(int from, int to) {
        return Arrays.copyOfRange(tokens, promptTokens + from, promptTokens + to);
    }

    /**
     * Decides an answer.
     *
     * @param prompt tokens; not changed
     * @param variant 0 for the answer proper, other numbers for further samples of it
     */
    public static Completion of(int[] prompt, int variant, Limits limits) {
        long state = mix(variant);
        for (int token : prompt) {
            state = mix(state ^ token);
        }
        int[] tokens = Arrays.copyOf(prompt, prompt.length + Math.min(limits.maxTokens, 1024));
        final StringBuilder text = new StringBuilder();
        int count = 0;
        while (count < limits.maxTokens) {
            final boolean mayEnd = count >= limits.minTokens;
            final boolean ends =
                    mayEnd
                            && limits.endToken >= 0
                            && Long.remainderUnsigned(state, limits.meanTokens) == 0;
            final int token = ends ? limits.endToken : LETTERS.charAt(letter(state));
            if (prompt.length + count == tokens.length) {
                tokens = Arrays.copyOf(tokens, tokens.length * 2);
            }
            tokens[prompt.length + count++] = token;
            if (ends) {
                return end(tokens, prompt.length, count, text, "stop", null);
            }
            text.append((char) token);
            if (mayEnd && limits.stopTokens.contains(token)) {
                text.setLength(text.length() - (limits.includeStop ? 0 : 1));
                return end(tokens, prompt.length, count, text, "stop", token);
            }
            final String stop = mayEnd ? stopAtEnd(text, limits.stops) : null;
            if (stop != null) {
                text.setLength(text.length() - (limits.includeStop ? 0 : stop.length()));
                return end(tokens, prompt.length, count, text, "stop", stop);
            }
            state = mix(state ^ token);
        }
        return end(tokens, prompt.length, count, text, "length", null);
    }

    private static Completion end(
            int[] tokens, int prompt, int count, CharSequence text, String reason, Object stop) {
        return new Completion(
                Arrays.copyOf(tokens, prompt + count), prompt, text.toString(), reason, stop);
    }

    private static String stopAtEnd(StringBuilder text, List<String> stops) {
        for (String stop : stops) {
            final int at = text.length() - stop.length();
            if (at >= 0 && text.indexOf(stop, at) == at) {
                return stop;
            }
        }
        return null;
    }

    private static int letter(long state) {
        return (int) (((state >>> 40) * LETTERS.length()) >>> 24);
    }

    static long mix(long value) {
        long z = value + 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
