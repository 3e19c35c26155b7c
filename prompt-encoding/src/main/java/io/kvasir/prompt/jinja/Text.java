package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Python's strings: how values are written as text, and operations that count in code points and
 * use Python's idea of white space.
 */
final class Text {
    private static final HexFormat HEX = HexFormat.of();

    /** A string of one character, and its object. */
    private static final int CHARACTER_BYTES = 48;

    private Text() {}

    /** {@code str(value)}. */
    static String of(Object value) {
        return switch (value) {
            case String s -> s;
            case Markup markup -> markup.text();
            case Undefined undefined -> "";
            case null, default -> repr(value);
        };
    }

    /** {@code repr(value)}. */
    static String repr(Object value) {
        final Budget budget = Budget.current();
        budget.step();
        budget.enter();
        final String text = written(value);
        budget.text(text.length());
        budget.leave();
        return text;
    }

    private static String written(Object value) {
        return switch (value) {
            case null -> "None";
            case Boolean b -> b ? "True" : "False";
            case Double d -> Numbers.text(d);
            case String s -> quoted(s);
            case Markup markup -> "Markup(" + quoted(markup.text()) + ")";
            case Undefined undefined -> "Undefined";
            case Range range -> range.describe();
            case Tuple tuple ->
                    tuple.size() == 1
                            ? "(" + repr(tuple.get(0)) + ",)"
                            : "(" + joined(tuple.iterator()) + ")";
            case List<?> list -> "[" + joined(list.iterator()) + "]";
            case Map<?, ?> dict -> dict(dict);
            case DictView view -> "dict_" + view.kind() + "([" + joined(view.iterator()) + "])";
            case ElementSet set -> set.size() == 0 ? "set()" : "{" + joined(set.iterator()) + "}";
            case Namespace namespace -> "<Namespace " + dict(namespace.attributes()) + ">";
            case Long l -> l.toString();
            case java.math.BigInteger big -> Numbers.text(big);
            default ->
                    throw new ValueException(
                            "a "
                                    + PythonValues.typeName(value)
                                    + " has no text that could be printed"
                                    + (value instanceof LazyItems
                                            ? "; the filter list makes one that has"
                                            : ""));
        };
    }

    private static String joined(Iterator<?> items) {
        final StringBuilder out = new StringBuilder();
        while (items.hasNext()) {
            out.append(repr(items.next())).append(items.hasNext() ? ", " : "");
        }
        return out.toString();
    }

    private static String dict(Map<?, ?> dict) {
        final StringBuilder out = new StringBuilder("{");
        dict.forEach(
                (key, value) ->
                        out.append(out.length() > 1 ? ", " : "")
                                .append(repr(key))
                                .append(": ")
                                .append(repr(value)));
        return out.append('}').toString();
    }

    private static String quoted(String text) {
        final char quote = text.indexOf('\'') >= 0 && text.indexOf('"') < 0 ? '"' : '\'';
        final StringBuilder out = new StringBuilder(text.length() + 2).append(quote);
        text.codePoints()
                .forEach(
                        c -> {
                            switch (c) {
                                case '\n' -> out.append("\\n");
                                case '\r' -> out.append("\\r");
                                case '\t' -> out.append("\\t");
                                case '\\' -> out.append("\\\\");
                                default -> {
                                    if (c == quote) {
                                        out.append('\\').append(quote);
                                    } else if (isPrintable(c)) {
                                        out.appendCodePoint(c);
                                    } else if (c < 0x100) {
                                        out.append("\\x").append(HEX.toHexDigits((byte) c));
                                    } else if (c < 0x10000) {
                                        out.append("\\u").append(HEX.toHexDigits((char) c));
                                    } else {
                                        out.append("\\U").append(HEX.toHexDigits(c));
                                    }
                                }
                            }
                        });
        return out.append(quote).toString();
    }

    private static boolean isPrintable(int codePoint) {
        return switch (Character.getType(codePoint)) {
            case Character.CONTROL,
                    Character.FORMAT,
                    Character.SURROGATE,
                    Character.PRIVATE_USE,
                    Character.UNASSIGNED,
                    Character.LINE_SEPARATOR,
                    Character.PARAGRAPH_SEPARATOR ->
                    false;
            case Character.SPACE_SEPARATOR -> codePoint == ' ';
            default -> true;
        };
    }

    /** {@code str.isspace} of one character; none of them lies outside of the basic plane. */
    static boolean isSpace(int c) {
        return (c >= 0x09 && c <= 0x0D)
                || (c >= 0x1C && c <= 0x20)
                || c == 0x85
                || c == 0xA0
                || c == 0x1680
                || (c >= 0x2000 && c <= 0x200A)
                || c == 0x2028
                || c == 0x2029
                || c == 0x202F
                || c == 0x205F
                || c == 0x3000;
    }

    /** Length in code points. */
    static int length(String text) {
        Budget.current().read(text.length());
        return text.codePointCount(0, text.length());
    }

    /** The characters of a text, each a string. */
    static List<Object> characters(String text) {
        Budget.current().items(text.length());
        Budget.current().bytes((long) CHARACTER_BYTES * text.length());
        final List<Object> characters = new ArrayList<>(text.length());
        text.codePoints().forEach(c -> characters.add(Character.toString(c)));
        return characters;
    }

    /** The characters from one index to another, counted in code points. */
    static String substring(String text, int from, int to) {
        Budget.current().read(text.length());
        final int start = text.offsetByCodePoints(0, from);
        final int end = text.offsetByCodePoints(start, to - from);
        Budget.current().text(end - start);
        return text.substring(start, end);
    }

    /** The text so many times. */
    static String repeat(String text, long count) {
        Budget.current().text(product(text.length(), count));
        return text.repeat((int) count);
    }

    private static long product(long a, long b) {
        return a != 0 && b > Long.MAX_VALUE / a ? Long.MAX_VALUE : a * b;
    }

    /** Compares by code points. */
    static int compare(String left, String right) {
        final int shorter = Math.min(left.length(), right.length());
        for (int i = 0; i < shorter; i++) {
            final char a = left.charAt(i);
            final char b = right.charAt(i);
            if (a != b) {
                final boolean surrogates = Character.isSurrogate(a) != Character.isSurrogate(b);
                return surrogates ? (Character.isSurrogate(a) ? 1 : -1) : Character.compare(a, b);
            }
        }
        return Integer.compare(left.length(), right.length());
    }

    /** {@code strip}: which sides, and which characters (null for white space). */
    static String strip(String text, String characters, boolean left, boolean right) {
        final int length = text.length();
        Budget.current().search(length, characters == null ? 1 : characters.length());
        Budget.current().text(length);
        return stripped(text, characters, left, right);
    }

    /** As {@link #strip}, outside of a template, too. */
    static String stripped(String text, String characters, boolean left, boolean right) {
        int start = 0;
        int end = text.length();
        while (left && start < end && strips(text.codePointAt(start), characters)) {
            start += Character.charCount(text.codePointAt(start));
        }
        while (right && end > start && strips(text.codePointBefore(end), characters)) {
            end -= Character.charCount(text.codePointBefore(end));
        }
        return text.substring(start, end);
    }

    private static boolean strips(int codePoint, String characters) {
        return characters == null ? isSpace(codePoint) : characters.indexOf(codePoint) >= 0;
    }

    /** {@code splitlines()}, without line ends. */
    static List<String> lines(String text) {
        return lines(text, false);
    }

    /** Lines, each with what ends it where that is kept. */
    static List<String> lines(String text, boolean keepsEnds) {
        Budget.current().text(text.length());
        final List<String> lines = new ArrayList<>();
        int start = 0;
        for (int i = 0; i < text.length(); i++) {
            final char c = text.charAt(i);
            final boolean ends =
                    (c >= 0x0A && c <= 0x0D)
                            || (c >= 0x1C && c <= 0x1E)
                            || c == 0x85
                            || c == 0x2028
                            || c == 0x2029;
            if (ends) {
                Budget.current().items(1);
                final int end = i;
                if (c == '\r' && i + 1 < text.length() && text.charAt(i + 1) == '\n') {
                    i++;
                }
                lines.add(text.substring(start, keepsEnds ? i + 1 : end));
                start = i + 1;
            }
        }
        if (start < text.length()) {
            lines.add(text.substring(start));
        }
        return lines;
    }
}
