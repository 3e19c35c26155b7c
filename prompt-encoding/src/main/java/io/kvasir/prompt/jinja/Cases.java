package io.kvasir.prompt.jinja;

import java.text.Normalizer;
import java.util.Locale;

/**
 * Changes of case as Python makes them, in time that grows with the text alone. They follow Java's
 * version of Unicode, which knows some letters that Python 3.12 does not yet.
 */
final class Cases {
    private static final char SIGMA = 'Σ';
    private static final char DOTTED_I = 'İ';
    private static final char IOTA = '\u0399';
    private static final char IOTA_BELOW = '\u0345';

    /** Marks within words, which do not count when it is asked whether a letter is the last one. */
    private static final String WITHIN_WORDS =
            "'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027"
                    + "\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";

    private Cases() {}

    /** {@code upper}. */
    static String upper(String text) {
        Budget.current().text(text.length());
        return text.toUpperCase(Locale.ROOT);
    }

    /** {@code lower}. */
    static String lower(String text) {
        Budget.current().text(text.length());
        // Java's own rule for capital sigmas takes time that grows with the square of their number
        return smallSigmas(text).toLowerCase(Locale.ROOT);
    }

    /** Capital sigmas as small ones: another one at the end of a word. */
    private static String smallSigmas(String text) {
        int at = text.indexOf(SIGMA);
        if (at < 0) {
            return text;
        }
        Budget.current().steps(text.length());
        final StringBuilder out = new StringBuilder(text);
        for (; at >= 0; at = text.indexOf(SIGMA, at + 1)) {
            out.setCharAt(at, follows(text, at) && !precedes(text, at + 1) ? 'ς' : 'σ');
        }
        return out.toString();
    }

    /** Whether the text up to an index ends with a letter that has a case. */
    private static boolean follows(String text, int end) {
        int at = end;
        while (at > 0) {
            final int c = text.codePointBefore(at);
            if (!isIgnorable(c)) {
                return isCased(c);
            }
            at -= Character.charCount(c);
        }
        return false;
    }

    /** Whether the text from an index on begins with a letter that has a case. */
    private static boolean precedes(String text, int start) {
        int at = start;
        while (at < text.length()) {
            final int c = text.codePointAt(at);
            if (!isIgnorable(c)) {
                return isCased(c);
            }
            at += Character.charCount(c);
        }
        return false;
    }

    private static boolean isCased(int c) {
        return Character.isUpperCase(c) || Character.isLowerCase(c) || Character.isTitleCase(c);
    }

    /** Unicode's Case_Ignorable. */
    private static boolean isIgnorable(int c) {
        return switch (Character.getType(c)) {
            case Character.NON_SPACING_MARK,
                    Character.ENCLOSING_MARK,
                    Character.FORMAT,
                    Character.MODIFIER_LETTER,
                    Character.MODIFIER_SYMBOL ->
                    true;
            default -> WITHIN_WORDS.indexOf(c) >= 0;
        };
    }

    /** {@code capitalize}. */
    static String capitalize(String text) {
        if (text.isEmpty()) {
            return text;
        }
        final String lower = alignedLower(text);
        final StringBuilder out = new StringBuilder(text.length());
        out.append(titleCase(text.codePointAt(0)));
        for (int i = text.offsetByCodePoints(0, 1); i < text.length(); ) {
            final int c = text.codePointAt(i);
            appendLower(out, lower, i, c);
            i += Character.charCount(c);
        }
        return out.toString();
    }

    /** {@code title} as a method: every letter after something else begins a word. */
    static String title(String text) {
        final String lower = alignedLower(text);
        final StringBuilder out = new StringBuilder(text.length());
        boolean inWord = false;
        for (int i = 0; i < text.length(); ) {
            final int c = text.codePointAt(i);
            if (inWord) {
                appendLower(out, lower, i, c);
            } else {
                out.append(titleCase(c));
            }
            inWord = isCased(c);
            i += Character.charCount(c);
        }
        return out.toString();
    }

    /** {@code swapcase}. */
    static String swap(String text) {
        final String lower = alignedLower(text);
        final StringBuilder out = new StringBuilder(text.length());
        for (int i = 0; i < text.length(); ) {
            final int c = text.codePointAt(i);
            if (Character.isUpperCase(c)) {
                appendLower(out, lower, i, c);
            } else if (Character.isLowerCase(c)) {
                out.append(Character.toString(c).toUpperCase(Locale.ROOT));
            } else {
                out.appendCodePoint(c);
            }
            i += Character.charCount(c);
        }
        return out.toString();
    }

    /** Lower case in which each character begins where it began. */
    private static String alignedLower(String text) {
        Budget.current().text(text.length());
        Budget.current().steps(text.length());
        return lower(text.replace(DOTTED_I, 'I'));
    }

    private static void appendLower(StringBuilder out, String lower, int at, int c) {
        if (c == DOTTED_I) {
            out.append("i\u0307"); // the one letter whose lower case is longer
        } else {
            out.append(lower, at, at + Character.charCount(c));
        }
    }

    private static String titleCase(int c) {
        final String upper = Character.toString(c).toUpperCase(Locale.ROOT);
        if (upper.codePointCount(0, upper.length()) == 1) {
            return Character.toString(Character.toTitleCase(c));
        }
        final int first = upper.offsetByCodePoints(0, isCased(upper.codePointAt(0)) ? 1 : 2);
        final int end = upper.length() - 1;
        if (upper.charAt(end) == IOTA) { // capitals have it below, as far as there are such
            final String capital = upper.substring(0, end) + IOTA_BELOW;
            return end > first ? capital : Normalizer.normalize(capital, Normalizer.Form.NFC);
        }
        return upper.substring(0, first) + upper.substring(first).toLowerCase(Locale.ROOT);
    }

    /** {@code casefold}: Unicode's full case folding. */
    static String fold(String text) {
        Budget.current().text(text.length());
        Budget.current().steps(text.length());
        final StringBuilder out = new StringBuilder(text.length());
        text.codePoints().forEach(c -> out.append(folded(c)));
        return out.toString();
    }

    private static String folded(int c) {
        final String one = Character.toString(c);
        return switch (c) {
            case 'ı' -> one;
            case 'ẞ' -> "ss";
            default -> {
                final String upper = one.toUpperCase(Locale.ROOT);
                yield Character.UnicodeScript.of(c) == Character.UnicodeScript.CHEROKEE
                        ? upper // its small letters came later
                        : upper.toLowerCase(Locale.ROOT);
            }
        };
    }
}
