package io.kvasir.prompt.jinja;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Cuts a template into tokens and applies white space control, with the settings that chat
 * templates are written for: a line break after a block or comment is dropped ({@code
 * trim_blocks}), white space before one at the start of a line too ({@code lstrip_blocks}), and one
 * line break at the very end.
 */
final class Lexer {
    private static final String[] OPERATORS = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{",
        "}", ">", "<", "=", ".", ":", "|", ",", ";"
    };

    /** A token, and what the parser makes of it. */
    private static final int TOKEN_BYTES = 96;

    private static final int DECIMAL = 10;

    private final Budget budget = Budget.current();
    private final String source;
    private final List<Token> tokens = new ArrayList<>();
    private int at;
    private int countedTo;
    private int line = 1;
    private boolean lineStarting = true;

    private Lexer(String source) {
        this.source = source;
    }

    /**
     * Cuts a template.
     *
     * @return its tokens, the last one of type {@link Token.Type#END}
     * @throws TemplateException of kind SYNTAX
     */
    static List<Token> tokenize(String template) {
        Budget.current().text(2L * template.length());
        String source = template.replace("\r\n", "\n").replace('\r', '\n');
        if (source.endsWith("\n")) {
            source = source.substring(0, source.length() - 1);
        }
        final Lexer lexer = new Lexer(source);
        lexer.run();
        return lexer.tokens;
    }

    private void run() {
        while (at < source.length()) {
            final int tag = nextTag(at);
            if (tag < 0) {
                data(source.substring(at));
                at = source.length();
                break;
            }
            final char kind = source.charAt(tag + 1);
            final char sign = signAt(tag + 2);
            data(beforeTag(source.substring(at, tag), sign, kind != '{'));
            at = tag;
            lineStarting = false;
            switch (kind) {
                case '#' -> comment(sign);
                case '{' -> expression(sign, true);
                default -> {
                    if (!raw(sign)) {
                        expression(sign, false);
                    }
                }
            }
        }
        add(Token.Type.END, "", null);
    }

    private int nextTag(int from) {
        for (int i = source.indexOf('{', from); i >= 0; i = source.indexOf('{', i + 1)) {
            if (i + 1 < source.length() && "{%#".indexOf(source.charAt(i + 1)) >= 0) {
                return i;
            }
        }
        return -1;
    }

    private char signAt(int index) {
        final char c = index < source.length() ? source.charAt(index) : ' ';
        return c == '-' || c == '+' ? c : ' ';
    }

    /** Text in front of a tag, after the tag's white space control. */
    private String beforeTag(String text, char sign, boolean strippable) {
        if (sign == '-') {
            int end = text.length();
            while (end > 0 && Text.isSpace(text.charAt(end - 1))) {
                end--;
            }
            return text.substring(0, end);
        }
        if (sign == '+' || !strippable) {
            return text;
        }
        final int lineStart = text.lastIndexOf('\n') + 1;
        if (lineStart == 0 && !lineStarting) {
            return text;
        }
        for (int i = lineStart; i < text.length(); i++) {
            if (!Text.isSpace(text.charAt(i))) {
                return text;
            }
        }
        return text.substring(0, lineStart);
    }

    private void data(String text) {
        if (!text.isEmpty()) {
            add(Token.Type.DATA, text, null);
        }
    }

    private void comment(char sign) {
        final int end = source.indexOf("#}", at + 2 + (sign == ' ' ? 0 : 1));
        if (end < 0) {
            throw error("comment without '#}'");
        }
        final char last = source.charAt(end - 1);
        final boolean signed = end - 1 >= at + 2 + (sign == ' ' ? 0 : 1);
        at = end + 2;
        afterTag(signed ? last : ' ', true);
    }

    /** Skips what the end of a tag swallows and records whether a line starts there. */
    private void afterTag(char sign, boolean trims) {
        if (sign == '-') {
            while (at < source.length() && Text.isSpace(source.charAt(at))) {
                at++;
            }
        } else if (sign != '+' && trims && at < source.length() && source.charAt(at) == '\n') {
            at++;
        }
        lineStarting = source.charAt(at - 1) == '\n';
    }

    /** Reads a raw block if one begins here. */
    private boolean raw(char sign) {
        int i = skipSpace(at + 2 + (sign == ' ' ? 0 : 1));
        if (!source.startsWith("raw", i)) {
            return false;
        }
        i = skipSpace(i + 3);
        final boolean strip = source.startsWith("-%}", i);
        if (!strip && !source.startsWith("%}", i)) {
            return false;
        }
        at = i + (strip ? 3 : 2);
        afterTag(strip ? '-' : ' ', false);
        for (int tag = source.indexOf("{%", at); tag >= 0; tag = source.indexOf("{%", tag + 2)) {
            final char endSign = signAt(tag + 2);
            int j = skipSpace(tag + 2 + (endSign == ' ' ? 0 : 1));
            if (!source.startsWith("endraw", j)) {
                continue;
            }
            j = skipSpace(j + 6);
            final char closing = signAt(j);
            if (source.startsWith("%}", closing == ' ' ? j : j + 1)) {
                data(beforeTag(source.substring(at, tag), endSign, true));
                at = (closing == ' ' ? j : j + 1) + 2;
                afterTag(closing, true);
                return true;
            }
        }
        throw error("raw block without '{% endraw %}'");
    }

    private int skipSpace(int from) {
        int i = from;
        while (i < source.length() && Text.isSpace(source.charAt(i))) {
            i++;
        }
        return i;
    }

    private void expression(char sign, boolean variable) {
        final String end = variable ? "}}" : "%}";
        add(variable ? Token.Type.VARIABLE_BEGIN : Token.Type.BLOCK_BEGIN, "", null);
        at += 2 + (sign == ' ' ? 0 : 1);
        final Deque<String> open = new ArrayDeque<>();
        while (true) {
            at = skipSpace(at);
            if (at >= source.length()) {
                throw error("unexpected end of the template, expected '" + end + "'");
            }
            if (open.isEmpty()) {
                final char c = source.charAt(at);
                final boolean signed =
                        (c == '-' || (c == '+' && !variable)) && source.startsWith(end, at + 1);
                if (signed || source.startsWith(end, at)) {
                    add(variable ? Token.Type.VARIABLE_END : Token.Type.BLOCK_END, "", null);
                    at += signed ? 3 : 2;
                    afterTag(signed ? c : ' ', !variable);
                    return;
                }
            }
            token(open);
        }
    }

    private void token(Deque<String> open) {
        final char c = source.charAt(at);
        if (c == '\'' || c == '"') {
            string(c);
        } else if (c >= '0' && c <= '9') {
            number();
        } else if (c == '_' || Character.isUnicodeIdentifierStart(source.codePointAt(at))) {
            name();
        } else {
            operator(open);
        }
    }

    private void name() {
        int end = at;
        while (end < source.length()) {
            final int codePoint = source.codePointAt(end);
            if (!Character.isUnicodeIdentifierPart(codePoint)
                    || Character.isIdentifierIgnorable(codePoint)) {
                break;
            }
            end += Character.charCount(codePoint);
        }
        add(Token.Type.NAME, source.substring(at, end), null);
        at = end;
    }

    private void operator(Deque<String> open) {
        for (String operator : OPERATORS) {
            if (!source.startsWith(operator, at)) {
                continue;
            }
            switch (operator) {
                case "(" -> open.push(")");
                case "[" -> open.push("]");
                case "{" -> open.push("}");
                case ")", "]", "}" -> {
                    if (open.isEmpty() || !open.pop().equals(operator)) {
                        throw error("unexpected '" + operator + "'");
                    }
                }
                default -> {
                    // nothing to balance
                }
            }
            add(Token.Type.OPERATOR, operator, null);
            at += operator.length();
            return;
        }
        throw error("unexpected character '" + source.charAt(at) + "'");
    }

    private void number() {
        final boolean afterDot = at > 0 && source.charAt(at - 1) == '.';
        final int whole = digits(at);
        int end = whole;
        boolean isFloat = false;
        if (!afterDot) {
            if (end < source.length() && source.charAt(end) == '.' && digits(end + 1) > end + 1) {
                end = digits(end + 1);
                isFloat = true;
            }
            if (end < source.length() && (source.charAt(end) == 'e' || source.charAt(end) == 'E')) {
                int exponent = end + 1;
                if (exponent < source.length() && "+-".indexOf(source.charAt(exponent)) >= 0) {
                    exponent++;
                }
                if (digits(exponent) > exponent) {
                    end = digits(exponent);
                    isFloat = true;
                }
            }
        }
        final String text = source.substring(at, end).replace("_", "");
        if (isFloat) {
            add(Token.Type.NUMBER, text, Double.parseDouble(text));
        } else if (source.charAt(at) == '0'
                && end < source.length()
                && radix(source.charAt(end)) > 0) {
            end = prefixed(end);
        } else if (text.length() > 1 && text.charAt(0) == '0' && !text.matches("0+")) {
            throw error("number " + text + " with leading zeros");
        } else {
            add(Token.Type.NUMBER, text, whole(text, DECIMAL));
        }
        at = end;
    }

    private Object whole(String digits, int radix) {
        try {
            return Numbers.parse(digits, radix);
        } catch (ValueException e) {
            throw error(e.getMessage());
        }
    }

    private int prefixed(int prefixAt) {
        final int radix = radix(source.charAt(prefixAt));
        int end = prefixAt + 1;
        while (end < source.length()
                && (source.charAt(end) == '_' || Character.digit(source.charAt(end), radix) >= 0)) {
            end++;
        }
        final String digits = source.substring(prefixAt + 1, end).replace("_", "");
        if (digits.isEmpty()) {
            throw error("number without digits");
        }
        add(Token.Type.NUMBER, digits, whole(digits, radix));
        return end;
    }

    private static int radix(char prefix) {
        return switch (prefix) {
            case 'x', 'X' -> 16;
            case 'o', 'O' -> 8;
            case 'b', 'B' -> 2;
            default -> 0;
        };
    }

    /** End of a run of digits, which may be grouped by single underscores. */
    private int digits(int from) {
        int i = from;
        while (i < source.length()) {
            final char c = source.charAt(i);
            final boolean grouping =
                    c == '_'
                            && i > from
                            && i + 1 < source.length()
                            && Character.digit(source.charAt(i + 1), 10) >= 0
                            && source.charAt(i + 1) < 0x80;
            if (!grouping && (c < '0' || c > '9')) {
                break;
            }
            i++;
        }
        return i;
    }

    private void string(char quote) {
        final StringBuilder text = new StringBuilder();
        int i = at + 1;
        while (true) {
            if (i >= source.length()) {
                throw error("string without its closing " + quote);
            }
            final char c = source.charAt(i);
            if (c == quote) {
                break;
            }
            if (c == '\\' && i + 1 < source.length()) {
                i = escape(i + 1, text);
            } else {
                text.append(c);
                i++;
            }
        }
        add(Token.Type.STRING, text.toString(), null);
        at = i + 1;
    }

    /** Reads the escape whose character after the backslash is at {@code i}; returns its end. */
    private int escape(int i, StringBuilder text) {
        final char c = source.charAt(i);
        switch (c) {
            case 'n' -> text.append('\n');
            case 't' -> text.append('\t');
            case 'r' -> text.append('\r');
            case 'a' -> text.append('\u0007');
            case 'b' -> text.append('\b');
            case 'f' -> text.append('\f');
            case 'v' -> text.append('\u000B');
            case '\\', '\'', '"' -> text.append(c);
            case '\n' -> {
                // a line continued
            }
            case 'x' -> {
                return hex(i + 1, 2, text);
            }
            case 'u' -> {
                return hex(i + 1, 4, text);
            }
            case 'U' -> {
                return hex(i + 1, 8, text);
            }
            case 'N' -> throw error("\\N{} is not implemented");
            case '0', '1', '2', '3', '4', '5', '6', '7' -> {
                int value = 0;
                int end = i;
                while (end < i + 3
                        && end < source.length()
                        && source.charAt(end) >= '0'
                        && source.charAt(end) <= '7') {
                    value = value * 8 + (source.charAt(end) - '0');
                    end++;
                }
                text.appendCodePoint(value);
                return end;
            }
            default -> text.append('\\').append(c);
        }
        return i + 1;
    }

    private int hex(int from, int length, StringBuilder text) {
        if (from + length > source.length()) {
            throw error("truncated escape in a string");
        }
        final String digits = source.substring(from, from + length);
        try {
            text.appendCodePoint(Integer.parseUnsignedInt(digits, 16));
        } catch (IllegalArgumentException e) {
            throw error("invalid escape in a string: " + digits);
        }
        return from + length;
    }

    private void add(Token.Type type, String text, Object value) {
        budget.step();
        budget.bytes(TOKEN_BYTES);
        budget.text(text.length());
        tokens.add(new Token(type, text, value, lineHere()));
    }

    private int lineHere() {
        for (; countedTo < at; countedTo++) {
            if (source.charAt(countedTo) == '\n') {
                line++;
            }
        }
        return line;
    }

    private TemplateException error(String reason) {
        return new TemplateException(TemplateException.Kind.SYNTAX, lineHere(), reason);
    }
}
