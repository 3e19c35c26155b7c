package io.kvasir.protocol.handoff;

/**
 * Walks over JSON text (RFC 8259, strictly) and finds where values begin and end. Builds nothing.
 * Bytes outside ASCII are taken as they are inside strings: whether they are UTF-8 is for the
 * reader of the string to say.
 */
final class JsonScanner {
    /** Deeper nesting is refused: the walk is recursive, and so is every engine's parser. */
    static final int MAX_DEPTH = 256;

    private final byte[] json;
    private final int start;
    private final int end;
    private int at;
    private int depth;

    JsonScanner(byte[] json, int start, int end) {
        this.json = json;
        this.start = start;
        this.end = end;
        this.at = start;
    }

    int at() {
        return at;
    }

    boolean atEnd() {
        return at == end;
    }

    MalformedJsonException malformed(String problem) {
        return new MalformedJsonException(problem, at - start);
    }

    void skipWhitespace() {
        while (at < end
                && (json[at] == ' ' || json[at] == '\n' || json[at] == '\r' || json[at] == '\t')) {
            at++;
        }
    }

    /** Steps over one byte if it is the one given. */
    boolean skipIf(char expected) {
        if (at < end && json[at] == expected) {
            at++;
            return true;
        }
        return false;
    }

    void require(char expected) {
        if (!skipIf(expected)) {
            throw malformed(
                    at == end ? "JSON ends where " + expected + " belongs" : "not a " + expected);
        }
    }

    /** Returns the byte ahead, or -1 at the end. */
    int peek() {
        return at < end ? json[at] : -1;
    }

    /** Steps over one value, of any kind. */
    void skipValue() {
        switch (peek()) {
            case '{' -> skipObject();
            case '[' -> skipArray();
            case '"' -> skipString();
            case 't' -> skipWord("true");
            case 'f' -> skipWord("false");
            case 'n' -> skipWord("null");
            case -1 -> throw malformed("JSON ends where a value belongs");
            default -> skipNumber();
        }
    }

    private void skipObject() {
        enter();
        at++;
        skipWhitespace();
        if (!skipIf('}')) {
            do {
                skipWhitespace();
                skipString();
                skipWhitespace();
                require(':');
                skipWhitespace();
                skipValue();
                skipWhitespace();
            } while (skipIf(','));
            require('}');
        }
        depth--;
    }

    private void skipArray() {
        enter();
        at++;
        skipWhitespace();
        if (!skipIf(']')) {
            do {
                skipWhitespace();
                skipValue();
                skipWhitespace();
            } while (skipIf(','));
            require(']');
        }
        depth--;
    }

    private void enter() {
        if (++depth > MAX_DEPTH) {
            throw malformed("JSON nests deeper than " + MAX_DEPTH);
        }
    }

    /** Steps over a string, its quotes included. */
    void skipString() {
        require('"');
        while (at < end) {
            final byte b = json[at];
            if (b == '"') {
                at++;
                return;
            }
            if (b >= 0 && b < ' ') {
                throw malformed("control character in a string");
            }
            at++;
            if (b == '\\') {
                skipEscape();
            }
        }
        throw malformed("JSON ends inside a string");
    }

    private void skipEscape() {
        switch (peek()) {
            case '"', '\\', '/', 'b', 'f', 'n', 'r', 't' -> at++;
            case 'u' -> {
                at++;
                for (int i = 0; i < 4; i++) {
                    if (Character.digit(peek(), 16) < 0) {
                        throw malformed("not four hex digits after \\u");
                    }
                    at++;
                }
            }
            default -> throw malformed("unknown escape in a string");
        }
    }

    private void skipWord(String word) {
        for (int i = 0; i < word.length(); i++) {
            if (peek() != word.charAt(i)) {
                throw malformed("not a value");
            }
            at++;
        }
    }

    private void skipNumber() {
        skipIf('-');
        if (!skipIf('0')) {
            skipDigits();
        }
        if (skipIf('.')) {
            skipDigits();
        }
        if (skipIf('e') || skipIf('E')) {
            if (!skipIf('+')) {
                skipIf('-');
            }
            skipDigits();
        }
    }

    private void skipDigits() {
        final int first = at;
        while (peek() >= '0' && peek() <= '9') {
            at++;
        }
        if (at == first) {
            throw malformed("not a value");
        }
    }
}
