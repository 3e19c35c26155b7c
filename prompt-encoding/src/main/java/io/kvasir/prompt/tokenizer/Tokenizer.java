package io.kvasir.prompt.tokenizer;

import io.kvasir.prompt.memo.MemoView;

/**
 * Text to token ids and back, exactly as the engine's own tokenizer does it.
 *
 * <p>Implementations are safe for use by many threads at once. A UTF-16 surrogate without its
 * partner cannot be written as UTF-8; it is encoded as U+FFFD.
 */
public interface Tokenizer extends AutoCloseable {
    /** Id returned by {@link #idOf} for a token that does not exist. */
    int NO_TOKEN = -1;

    /**
     * Encodes a text. Special tokens written out in the text become their ids in either case.
     *
     * @param text any text, may be empty
     * @param addSpecialTokens whether the post-processor adds its tokens (such as a leading BOS)
     * @return fresh array of token ids in text order
     */
    int[] encode(String text, boolean addSpecialTokens);

    /**
     * Encodes a text that must not be long, as {@link #encode(String, boolean)} does.
     *
     * @param text any text, may be empty
     * @param addSpecialTokens as in {@link #encode(String, boolean)}
     * @param maxTokens most of them
     * @return fresh array of token ids in text order
     * @throws PromptException of kind LIMIT if there are more; found out without encoding the rest
     *     where the implementation can
     * @throws java.util.concurrent.CancellationException if the thread is interrupted and the
     *     implementation notices
     */
    default int[] encode(String text, boolean addSpecialTokens, int maxTokens) {
        final int[] ids = encode(text, addSpecialTokens);
        if (ids.length > maxTokens) {
            throw PromptException.tooLong(maxTokens);
        }
        return ids;
    }

    /**
     * Encodes a text as {@link #encode(String, boolean, int)} does, and takes the tokens of
     * sections that are remembered from a memo where the implementation can.
     *
     * @param text any text, may be empty
     * @param addSpecialTokens as in {@link #encode(String, boolean)}
     * @param maxTokens most of them
     * @param memoOrNull what is remembered of this tokenizer's texts; null for nothing
     * @return fresh array of token ids in text order, the same as without a memo
     * @throws PromptException of kind LIMIT if there are more
     * @throws java.util.concurrent.CancellationException if the thread is interrupted and the
     *     implementation notices
     */
    default int[] encode(
            String text, boolean addSpecialTokens, int maxTokens, MemoView memoOrNull) {
        return encode(text, addSpecialTokens, maxTokens);
    }

    /**
     * Counts the tokens that {@link #encode} would return.
     *
     * @param text any text, may be empty
     * @param addSpecialTokens as in {@link #encode}
     * @return length in tokens
     */
    default int countTokens(String text, boolean addSpecialTokens) {
        return encode(text, addSpecialTokens).length;
    }

    /**
     * Cuts the encoding of a text from the left as the tokenizers of engines do: what the
     * post-processor has added stays, of the text the last tokens do. Where not even the added ones
     * have room they are cut like all others.
     *
     * @param ids from {@link #encode} with special tokens, not modified
     * @param most of them to keep, not negative
     * @return a fresh array, or {@code ids} where these are no more
     */
    int[] keepLast(int[] ids, int most);

    /**
     * Decodes ids. Bytes that do not form UTF-8 become U+FFFD, ids that do not exist are left out.
     *
     * @param ids token ids in text order, not modified
     * @param skipSpecialTokens whether special tokens are left out of the text
     * @return the text
     */
    String decode(int[] ids, boolean skipSpecialTokens);

    /**
     * Decodes ids, special tokens written out.
     *
     * @param ids token ids in text order, not modified
     * @return the text
     */
    default String decode(int[] ids) {
        return decode(ids, false);
    }

    /**
     * Looks up one token by its content as written in {@code tokenizer.json}.
     *
     * @param token content, in the byte-level alphabet unless it is an added token
     * @return its id, or {@link #NO_TOKEN}
     */
    int idOf(String token);

    /**
     * The content of one token, as {@link #idOf} takes it.
     *
     * @param id any number
     * @return null where there is no such token
     */
    String contentOf(int id);

    /**
     * Whether a native library encodes, which is slower and cannot be interrupted.
     *
     * @return false unless an implementation says otherwise
     */
    default boolean isNative() {
        return false;
    }

    /** Number of ids: one more than the largest one, added tokens included. */
    int idCount();

    /** Releases native memory, if any; further calls of any method are then undefined. */
    @Override
    void close();
}
