package io.kvasir.prompt.tokenizer;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Translates the regular expressions of {@code tokenizer.json} (Oniguruma, Ruby syntax) to {@link
 * Pattern}. Only constructs that mean the same in both are accepted; anything else is refused, so
 * that a pattern never cuts at other positions than the engine's.
 *
 * <p>Refused besides unknown syntax: {@code \w} and {@code \b} (other word characters), anchors
 * (other line rules), repeated groups (deep recursion on long texts in {@link Pattern}), character
 * class operators, and what can match no text at all: the two engines go on from there at other
 * positions.
 */
final class SplitPattern {
    private static final Set<String> CATEGORIES =
            Set.of(
                    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No",
                    "P", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",
                    "Zs", "Zl", "Zp");
    private static final Set<String> SCRIPTS =
            Set.of(
                    "Han",
                    "Hiragana",
                    "Katakana",
                    "Hangul",
                    "Latin",
                    "Cyrillic",
                    "Greek",
                    "Arabic",
                    "Thai");

    /** What may be compared without case: contractions, which have no multi-character folding. */
    private static final String CASELESS = "'|[]dlmrstveDLMRSTVE";

    private final String source;
    private final StringBuilder out = new StringBuilder();
    private final Deque<Alternatives> outer = new ArrayDeque<>();
    private Alternatives here = new Alternatives(false);
    private int at;

    /** Whether a group, or the whole pattern, can match no text. */
    private static final class Alternatives {
        private final boolean isLook;
        private boolean anyEmpty; // of the alternatives before this one
        private boolean isEmpty = true; // of this one, as far as it was read

        Alternatives(boolean isLook) {
            this.isLook = isLook;
        }

        void next() {
            anyEmpty |= isEmpty;
            isEmpty = true;
        }

        boolean canBeEmpty() {
            return isLook || anyEmpty || isEmpty;
        }
    }

    private SplitPattern(String source) {
        this.source = source;
    }

    /** Compiles an Oniguruma pattern. */
    static Pattern compile(String source) throws UnsupportedTokenizerException {
        final SplitPattern translation = new SplitPattern(source);
        translation.translate();
        return Pattern.compile(translation.out.toString(), Pattern.UNICODE_CHARACTER_CLASS);
    }

    /** Compiles a pattern that matches a text as it is. */
    static Pattern literal(String text) throws UnsupportedTokenizerException {
        if (text.isEmpty()) {
            throw new UnsupportedTokenizerException("split at an empty text");
        }
        return Pattern.compile(Pattern.quote(text));
    }

    private void translate() throws UnsupportedTokenizerException {
        while (at < source.length()) {
            final char c = source.charAt(at);
            switch (c) {
                case '(' -> open();
                case ')' -> close();
                case '|' -> {
                    here.next();
                    out.append(c);
                    at++;
                }
                case '[' -> {
                    characterClass();
                    atomEnd(true, false);
                }
                case '\\' -> {
                    escape();
                    atomEnd(true, false);
                }
                case '.' -> {
                    out.append("[^\\n]");
                    at++;
                    atomEnd(true, false);
                }
                case '^', '$', '*', '+', '?', '{', '}', ']' -> throw refused("'" + c + "'");
                default -> {
                    literal(source.codePointAt(at));
                    at += Character.charCount(source.codePointAt(at));
                    atomEnd(true, false);
                }
            }
        }
        if (!outer.isEmpty()) {
            throw refused("unclosed group");
        }
        if (here.canBeEmpty()) {
            throw refused("can match no text");
        }
    }

    private void open() throws UnsupportedTokenizerException {
        for (String prefix : new String[] {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:"}) {
            if (source.startsWith(prefix, at)) {
                if (prefix.equals("(?i:")) {
                    checkCaseless();
                }
                out.append(prefix);
                at += prefix.length();
                enter(!prefix.endsWith(":"));
                return;
            }
        }
        if (source.startsWith("(?", at) || source.startsWith("(*", at)) {
            throw refused("group " + source.substring(at, Math.min(at + 4, source.length())));
        }
        out.append("(?:"); // nothing refers back to a group
        at++;
        enter(false);
    }

    private void enter(boolean isLook) {
        outer.push(here);
        here = new Alternatives(isLook);
    }

    private void checkCaseless() throws UnsupportedTokenizerException {
        final int end = source.indexOf(')', at);
        final String body = end < 0 ? "" : source.substring(at + "(?i:".length(), end);
        boolean inClass = false;
        for (int i = 0; i < body.length(); i++) {
            final char c = body.charAt(i);
            inClass = c == '[' || (inClass && c != ']');
            final boolean foldsTogether =
                    !inClass
                            && (body.regionMatches(true, i, "st", 0, 2)
                                    || body.regionMatches(true, i, "ss", 0, 2));
            if (CASELESS.indexOf(c) < 0 || foldsTogether) {
                throw refused("case-insensitive " + body);
            }
        }
    }

    private void close() throws UnsupportedTokenizerException {
        if (outer.isEmpty()) {
            throw refused("unbalanced ')'");
        }
        out.append(')');
        at++;
        final boolean canBeEmpty = here.canBeEmpty();
        here = outer.pop();
        atomEnd(false, canBeEmpty);
    }

    /** Reads what may be behind an atom: how often it comes. */
    private void atomEnd(boolean repeatable, boolean canBeEmpty)
            throws UnsupportedTokenizerException {
        here.isEmpty &= !quantifier(repeatable) || canBeEmpty;
    }

    /** Whether what is before it has to come at least once. */
    private boolean quantifier(boolean repeatable) throws UnsupportedTokenizerException {
        if (at >= source.length()) {
            return true;
        }
        final char c = source.charAt(at);
        final boolean isRequired;
        if (c == '{') {
            final int end = source.indexOf('}', at);
            final String body = end < 0 ? "" : source.substring(at + 1, end);
            if (!repeatable || !body.matches("[0-9]+(,[0-9]*)?")) {
                throw refused("'{" + body + "}'");
            }
            isRequired = !body.matches("0+(,.*)?");
            out.append('{').append(body).append('}');
            at = end + 1;
            if (at < source.length() && source.charAt(at) == '?') {
                out.append('?');
                at++;
            }
        } else if (c == '?' || c == '*' || c == '+') {
            if (c != '?' && !repeatable) {
                throw refused("repeated group");
            }
            isRequired = c == '+';
            out.append(c);
            at++;
            if (at < source.length() && (source.charAt(at) == '?' || source.charAt(at) == '+')) {
                out.append(source.charAt(at));
                at++;
            }
        } else {
            return true;
        }
        if (at < source.length() && "?*+{".indexOf(source.charAt(at)) >= 0) {
            throw refused("doubled quantifier");
        }
        return isRequired;
    }

    private void characterClass() throws UnsupportedTokenizerException {
        at++;
        out.append('[');
        if (at < source.length() && source.charAt(at) == '^') {
            out.append('^');
            at++;
        }
        boolean first = true;
        while (true) {
            if (at >= source.length()) {
                throw refused("unclosed '['");
            }
            final char c = source.charAt(at);
            if (c == ']') {
                if (first) {
                    throw refused("empty character class");
                }
                break;
            }
            if (c == '[' || source.startsWith("&&", at)) {
                throw refused("'" + c + "' inside a character class");
            }
            if (c == '-' && !first && at + 1 < source.length() && source.charAt(at + 1) != ']') {
                throw refused("'-' inside a character class");
            }
            final boolean single = classItem();
            if (single
                    && at + 1 < source.length()
                    && source.charAt(at) == '-'
                    && source.charAt(at + 1) != ']') {
                at++;
                out.append('-');
                if (source.charAt(at) == '[' || !classItem()) {
                    throw refused("character range");
                }
            }
            first = false;
        }
        out.append(']');
        at++;
    }

    /** One member of a character class; true when it is a single character. */
    private boolean classItem() throws UnsupportedTokenizerException {
        if (source.charAt(at) == '\\') {
            return escape();
        }
        final int codePoint = source.codePointAt(at);
        literal(codePoint);
        at += Character.charCount(codePoint);
        return true;
    }

    /** One escape sequence; true when it is a single character. */
    private boolean escape() throws UnsupportedTokenizerException {
        if (at + 1 >= source.length()) {
            throw refused("'\\' at the end");
        }
        final char c = source.charAt(at + 1);
        at += 2;
        switch (c) {
            case 'n' -> literal('\n');
            case 'r' -> literal('\r');
            case 't' -> literal('\t');
            case 'f' -> literal('\f');
            case 'v' -> literal(0x0B);
            case 's', 'S', 'd', 'D' -> {
                out.append('\\').append(c);
                return false;
            }
            case 'p', 'P' -> {
                property(c == 'P');
                return false;
            }
            case 'u' -> {
                literal(hex(at, 4));
                at += 4;
            }
            case 'x' -> hexEscape();
            default -> {
                if (c >= 0x80 || Character.isLetterOrDigit(c)) {
                    throw refused("\\" + c);
                }
                literal(c);
            }
        }
        return true;
    }

    private void hexEscape() throws UnsupportedTokenizerException {
        if (source.startsWith("{", at)) {
            final int end = source.indexOf('}', at);
            literal(hex(at + 1, end - at - 1));
            at = end + 1;
            return;
        }
        final int value = hex(at, 2);
        if (value >= 0x80) {
            throw refused("\\x" + source.substring(at, at + 2)); // a byte there, not a character
        }
        literal(value);
        at += 2;
    }

    private int hex(int from, int length) throws UnsupportedTokenizerException {
        if (length < 1 || length > 6 || from + length > source.length()) {
            throw refused("hexadecimal escape");
        }
        try {
            return Integer.parseInt(source.substring(from, from + length), 16);
        } catch (NumberFormatException e) {
            throw refused("hexadecimal escape");
        }
    }

    private void property(boolean negated) throws UnsupportedTokenizerException {
        final int end = source.indexOf('}', at);
        if (!source.startsWith("{", at) || end < 0) {
            throw refused("\\p without {}");
        }
        String name = source.substring(at + 1, end);
        boolean outside = negated;
        if (name.startsWith("^")) {
            name = name.substring(1);
            outside = !outside;
        }
        if (!CATEGORIES.contains(name) && !SCRIPTS.contains(name)) {
            throw refused("\\p{" + name + "}");
        }
        out.append(outside ? "\\P{" : "\\p{");
        out.append(SCRIPTS.contains(name) ? "Is" : "").append(name).append('}');
        at = end + 1;
    }

    private void literal(int codePoint) {
        if (codePoint < 0x80 && Character.isLetterOrDigit(codePoint)) {
            out.append((char) codePoint);
        } else {
            out.append("\\x{").append(Integer.toHexString(codePoint)).append('}');
        }
    }

    private UnsupportedTokenizerException refused(String what) {
        return new UnsupportedTokenizerException("regular expression " + source + ": " + what);
    }
}
