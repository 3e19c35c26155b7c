package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Collects added tokens. They get ids as the reference implementation gives them: that of the
 * vocabulary, else the next free one. A file that wants other ids is refused.
 */
final class AddedTokenList {
    private final Map<String, AddedToken> tokens = new LinkedHashMap<>(); // by content
    private final Map<String, Integer> ids;
    private final int vocabularySize;
    private int largestAdded = -1;

    /**
     * @param ids the vocabulary; gets the tokens that are new
     */
    AddedTokenList(Map<String, Integer> ids) {
        this.ids = ids;
        this.vocabularySize = ids.size();
    }

    /** Adds a token of the file itself, which may have a text twice only if it says the same. */
    void addOfFile(JsonNode token) throws UnsupportedTokenizerException {
        add(token);
        final AddedToken known = tokens.get(token.path("content").asText());
        if (known != null && !known.equals(read(known.id(), known.content(), token))) {
            throw new UnsupportedTokenizerException(
                    "added token " + known.content() + " in two ways");
        }
    }

    /** Adds a token; the first of several with one text wins. */
    void add(JsonNode token) throws UnsupportedTokenizerException {
        final String content = token.path("content").asText();
        if (content.isEmpty() || tokens.containsKey(content)) {
            return;
        }
        final Integer known = ids.get(content);
        final int expected = known != null ? known : Math.max(vocabularySize, largestAdded + 1);
        final int id = token.path("id").asInt(expected);
        if (id != expected) {
            throw new UnsupportedTokenizerException(
                    "added token " + content + " with id " + id + " instead of " + expected);
        }
        largestAdded = Math.max(largestAdded, id);
        ids.put(content, id);
        tokens.put(content, read(id, content, token));
    }

    /** Adds a token, or says anew how the one with its text strips and where it counts. */
    void replace(JsonNode token) throws UnsupportedTokenizerException {
        final String content = token.path("content").asText();
        final AddedToken before = tokens.get(content);
        if (before == null) {
            add(token);
            return;
        }
        final AddedToken now = read(before.id(), content, token);
        tokens.put(
                content,
                new AddedToken(
                        before.id(),
                        content,
                        before.special() || now.special(),
                        // a special one counts in the same text as before, others in the raw one
                        // first
                        before.normalized() && (before.special() || now.normalized()),
                        now.leftStrip(),
                        now.rightStrip(),
                        now.singleWord()));
    }

    private static AddedToken read(int id, String content, JsonNode token) {
        final boolean isSpecial = token.path("special").asBoolean(false);
        return new AddedToken(
                id,
                content,
                isSpecial,
                token.path("normalized").asBoolean(!isSpecial),
                token.path("lstrip").asBoolean(false),
                token.path("rstrip").asBoolean(false),
                token.path("single_word").asBoolean(false));
    }

    List<AddedToken> all() {
        return List.copyOf(tokens.values());
    }
}
