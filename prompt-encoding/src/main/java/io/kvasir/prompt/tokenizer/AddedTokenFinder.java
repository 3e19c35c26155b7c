package io.kvasir.prompt.tokenizer;

import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds added tokens in a text: leftmost first, the longest of those that start at the same place,
 * never overlapping; also those in white space that the one before them swallows. A trie with a
 * filter on the first character, so that text without candidates is passed over quickly. Immutable
 * after construction.
 */
final class AddedTokenFinder {
    /** Receives the pieces of a text in order; empty pieces are not reported. */
    interface Sink {
        void text(int start, int end);

        /**
         * A token, and where the text after it begins: white space that it swallows is before. A
         * token within that white space follows with a smaller end, if it swallows less.
         */
        void token(int id, int end);
    }

    private static final class Node {
        private final Map<Character, Node> children = new HashMap<>();
        private AddedToken token;
    }

    private final Node root = new Node();
    private final BitSet firstCharacters = new BitSet();

    AddedTokenFinder(List<AddedToken> tokens, java.util.function.UnaryOperator<String> pattern) {
        for (AddedToken token : tokens) {
            final String content = pattern.apply(token.content());
            Node node = root;
            for (int i = 0; i < content.length(); i++) {
                node = node.children.computeIfAbsent(content.charAt(i), c -> new Node());
            }
            if (!content.isEmpty() && node.token == null) {
                node.token = token;
                firstCharacters.set(content.charAt(0));
            }
        }
    }

    /** Cuts {@code text} at the added tokens. */
    void split(String text, Sink sink) {
        int done = 0;
        int at = 0;
        int blankEnd = 0; // of the white space that was swallowed last: it is not read again
        final int length = text.length();
        while (at < length) {
            if (!firstCharacters.get(text.charAt(at))) {
                at++;
                continue;
            }
            final int matchEnd = longest(text, at);
            if (matchEnd < 0) {
                at++;
                continue;
            }
            final AddedToken token = tokenAt(text, at, matchEnd);
            int start = at;
            int end = matchEnd;
            at = matchEnd; // a refused match is passed over as a whole
            if (token.singleWord() && (wordBefore(text, start) || wordAt(text, end))) {
                continue;
            }
            if (token.leftStrip()) {
                while (start > done && isWhiteSpace(text.charAt(start - 1))) {
                    start--;
                }
                start = Math.max(start, done);
            }
            if (token.rightStrip()) {
                end = Math.max(end, blankEnd);
                while (end < length && isWhiteSpace(text.charAt(end))) {
                    end++;
                }
                blankEnd = end;
            }
            if (done < start) {
                sink.text(done, start);
            }
            if (start < end) { // otherwise the token before it has swallowed all of it
                sink.token(token.id(), end);
            }
            done = end;
        }
        if (done < length) {
            sink.text(done, length);
        }
    }

    /** Whether a token may begin in the white space before {@code end}, which another swallows. */
    boolean mayBeginInBlank(String text, int end) {
        for (int i = end; i > 0 && isWhiteSpace(text.charAt(i - 1)); i--) {
            if (firstCharacters.get(text.charAt(i - 1))) {
                return true;
            }
        }
        return false;
    }

    private int longest(String text, int from) {
        Node node = root;
        int end = -1;
        for (int i = from; i < text.length(); i++) {
            node = node.children.get(text.charAt(i));
            if (node == null) {
                break;
            }
            if (node.token != null) {
                end = i + 1;
            }
        }
        return end;
    }

    private AddedToken tokenAt(String text, int from, int end) {
        Node node = root;
        for (int i = from; i < end; i++) {
            node = node.children.get(text.charAt(i));
        }
        return node.token;
    }

    private static boolean wordBefore(String text, int end) {
        return end > 0 && isWord(text.codePointBefore(end));
    }

    private static boolean wordAt(String text, int start) {
        return start < text.length() && isWord(text.codePointAt(start));
    }

    /** Unicode's definition of a word character (UTS 18 annex C). */
    private static boolean isWord(int codePoint) {
        if (Character.isAlphabetic(codePoint) || codePoint == 0x200C || codePoint == 0x200D) {
            return true;
        }
        return switch (Character.getType(codePoint)) {
            case Character.NON_SPACING_MARK,
                    Character.ENCLOSING_MARK,
                    Character.COMBINING_SPACING_MARK,
                    Character.DECIMAL_DIGIT_NUMBER,
                    Character.CONNECTOR_PUNCTUATION ->
                    true;
            default -> false;
        };
    }

    /** Unicode's White_Space property; all of it lies in the basic plane. */
    private static boolean isWhiteSpace(char c) {
        return (c >= 0x09 && c <= 0x0D)
                || c == ' '
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
}
