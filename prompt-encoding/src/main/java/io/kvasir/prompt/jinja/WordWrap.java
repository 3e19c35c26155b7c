package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Jinja's filter {@code wordwrap}: lines of at most so many characters, cut between words as
 * Python's {@code textwrap} does.
 */
final class WordWrap {
    private static final String SPACE = "[\\t\\n\\x0B\\f\\r ]";
    private static final String OTHER = "[^\\t\\n\\x0B\\f\\r ]";
    private static final String WORD = "[\\p{L}\\p{N}_]";
    private static final String LETTER = "[\\p{L}\\p{Nl}\\p{No}_]";
    private static final String WORD_OR_SIGN = "[\\p{L}\\p{N}_!\"'&.,?]";

    /** White space, dashes between words, and words, which may end at a hyphen. */
    private static final Pattern PARTS =
            Pattern.compile(
                    (SPACE + "+")
                            + ("|(?<=" + WORD_OR_SIGN + ")-{2,}(?=" + WORD + ")")
                            + ("|" + OTHER + "+?(?:")
                            + ("-(?:(?<=" + LETTER + "{2}-)|")
                            + ("(?<=" + LETTER + "-" + WORD_OR_SIGN + "-))")
                            + ("(?=" + LETTER + "-?" + LETTER + ")")
                            + ("|(?=" + SPACE + "|\\z)")
                            + ("|(?<=" + WORD_OR_SIGN + ")(?=-{2,}" + WORD + "))"));

    private static final Pattern WORDS = Pattern.compile(SPACE + "+|" + OTHER + "+");

    /** A part of a line takes as much as so many items of a list. */
    private static final int PART_ITEMS = 6;

    /** A line takes as much as a text so many times as long while it is cut. */
    private static final int LINE_TEXTS = 6;

    private final int[] text;
    private final List<Integer> ends;
    private final long width;
    private final boolean breaksWords;
    private final boolean breaksAtHyphens;
    private int next; // index of the part that follows
    private int nextStart; // where what is left of it starts

    private WordWrap(String line, long width, boolean breaksWords, boolean breaksAtHyphens) {
        this.text = line.codePoints().toArray();
        this.ends = ends(line, breaksAtHyphens ? PARTS : WORDS);
        this.width = width;
        this.breaksWords = breaksWords;
        this.breaksAtHyphens = breaksAtHyphens;
    }

    /** The filter {@code wordwrap(width, break_long_words, wrapstring, break_on_hyphens)}. */
    static Object apply(Object value, Arguments arguments) {
        final Object width = arguments.take("width", 79L);
        final boolean breaksWords = PythonValues.truth(arguments.take("break_long_words", true));
        final Object separator = arguments.take("wrapstring", null);
        final boolean atHyphens = PythonValues.truth(arguments.take("break_on_hyphens", true));
        arguments.end();
        final String between = separator == null ? "\n" : Methods.text(separator);
        final List<String> wrapped = new ArrayList<>();
        for (String line : Text.lines(Methods.text(value))) {
            final long limit = Numbers.index(width);
            if (limit < 1) {
                throw new ValueException("wordwrap: width has to be at least 1, not " + limit);
            }
            Budget.current().text((long) LINE_TEXTS * line.length());
            wrapped.add(joined(new WordWrap(line, limit, breaksWords, atHyphens).lines(), between));
        }
        return joined(wrapped, between);
    }

    private static String joined(List<String> lines, String between) {
        for (String line : lines) {
            Budget.current().text((long) line.length() + between.length());
        }
        return String.join(between, lines);
    }

    /** Where each part of a line ends, in code points. */
    private static List<Integer> ends(String line, Pattern parts) {
        final List<Integer> ends = new ArrayList<>();
        final Matcher matcher = parts.matcher(line);
        int from = 0;
        int end = 0;
        while (matcher.find()) {
            Budget.current().items(PART_ITEMS);
            if (matcher.start() > from) {
                end += line.codePointCount(from, matcher.start());
                ends.add(end);
            }
            end += line.codePointCount(matcher.start(), matcher.end());
            ends.add(end);
            from = matcher.end();
        }
        if (from < line.length()) {
            ends.add(end + line.codePointCount(from, line.length()));
        }
        return ends;
    }

    private List<String> lines() {
        final List<String> lines = new ArrayList<>();
        while (next < ends.size()) {
            Budget.current().items(PART_ITEMS);
            if (!lines.isEmpty() && isBlank(nextStart, ends.get(next))) {
                skip();
            }
            final int start = nextStart;
            final int end = lineEnd(start);
            if (end > start) {
                lines.add(new String(text, start, end - start));
            }
        }
        return lines;
    }

    private void skip() {
        nextStart = ends.get(next);
        next++;
    }

    /** Takes the parts of a line that starts there; white space at its end is no part of it. */
    private int lineEnd(int start) {
        int last = start; // where the line's last part starts
        while (next < ends.size() && ends.get(next) - start <= width) {
            last = nextStart;
            skip();
        }
        if (next < ends.size() && ends.get(next) - nextStart > width) {
            if (breaksWords) {
                last = nextStart;
                nextStart += broken(nextStart, (int) (width - (nextStart - start)));
            } else if (nextStart == start) {
                skip();
            }
        }
        return nextStart > start && isBlank(last, nextStart) ? last : nextStart;
    }

    /** How much of a word that is too long the rest of a line takes. */
    private int broken(int from, int room) {
        if (breaksAtHyphens) {
            int hyphen = from + room - 1;
            while (hyphen > from && text[hyphen] != '-') {
                hyphen--;
            }
            for (int i = from; i < hyphen; i++) {
                if (text[i] != '-') {
                    return hyphen + 1 - from;
                }
            }
        }
        return room;
    }

    private boolean isBlank(int from, int to) {
        for (int i = from; i < to; i++) {
            if (!Text.isSpace(text[i])) {
                return false;
            }
        }
        return true;
    }
}
