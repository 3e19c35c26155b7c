package io.kvasir.prompt.tokenizer;

import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;

import java.util.Arrays;

/**
 * A text in sections whose tokens depend on nothing beyond them, for a memo. A section ends after
 * the first added token at which it has {@link PromptMemo#MIN_SECTION_CHARS}, unless another may
 * begin in white space at its end; what follows the last such token is no section.
 *
 * <p>Why that is safe: after an added token the search for the next one begins afresh (leftmost,
 * longest; none begins in the white space that it swallows), what swallows white space before it
 * stops there, and normalisation, words and merges never reach over it. Two texts that agree
 * between two such places are cut alike between them, by induction over the tokens found: a match
 * that reached beyond the second place in one of them would have left no token that ends there.
 * Only a token that must be a single word looks at the character before it, so that one belongs to
 * the section's key.
 *
 * <p>One text and one thread.
 */
final class Sections implements AddedTokenFinder.Sink {
    private static final int TEXT = -1;

    private final String whole;
    private final AddedTokenFinder tokens;
    private int[] starts = new int[16];
    private int[] ends = new int[16];
    private int[] ids = new int[16]; // of a token; TEXT of text
    private int count;

    /** Where the tokens go. */
    interface Output {
        IdBuffer ids();

        /** Throws when it is too long, or no one waits for it. */
        void check();
    }

    /** Cuts a text without lone surrogates at its added tokens. */
    Sections(String whole, AddedTokenFinder tokens) {
        this.whole = whole;
        this.tokens = tokens;
        tokens.split(whole, this);
    }

    @Override
    public void text(int start, int end) {
        add(start, end, TEXT);
    }

    @Override
    public void token(int id, int end) {
        add(end, end, id);
    }

    private void add(int start, int end, int id) {
        if (count == ids.length) {
            starts = Arrays.copyOf(starts, 2 * count);
            ends = Arrays.copyOf(ends, 2 * count);
            ids = Arrays.copyOf(ids, 2 * count);
        }
        starts[count] = start;
        ends[count] = end;
        ids[count++] = id;
    }

    /**
     * Encodes the text, or takes what the memo knows of it; puts into the memo what it does not.
     *
     * @param encoding encodes pieces to {@code out}
     */
    void encode(AddedTokenFinder.Sink encoding, Output out, MemoView memo) {
        int first = 0;
        int start = 0;
        for (int i = 0; i < count; i++) {
            final int end = ends[i];
            if (ids[i] != TEXT
                    && end - start >= PromptMemo.MIN_SECTION_CHARS
                    && !splitsPair(end)
                    && !tokens.mayBeginInBlank(whole, end)) {
                section(first, i + 1, start, end, encoding, out, memo);
                first = i + 1;
                start = end;
            }
        }
        encode(first, count, encoding);
    }

    /** A token may have half of a character in its text. */
    private boolean splitsPair(int end) {
        return end < whole.length() && Character.isLowSurrogate(whole.charAt(end));
    }

    private void section(
            int first,
            int last,
            int start,
            int end,
            AddedTokenFinder.Sink encoding,
            Output out,
            MemoView memo) {
        final int before = start == 0 ? MemoView.NOTHING_BEFORE : whole.codePointBefore(start);
        final byte[] key = memo.key(before, whole, start, end);
        final int[] known = memo.get(key);
        if (known != null) {
            out.ids().addAll(known, known.length);
            out.check();
            return;
        }
        final int from = out.ids().count();
        encode(first, last, encoding);
        out.check(); // what is given up half way is not kept
        memo.put(key, out.ids().array(), from, out.ids().count());
    }

    private void encode(int first, int last, AddedTokenFinder.Sink encoding) {
        for (int i = first; i < last; i++) {
            if (ids[i] == TEXT) {
                encoding.text(starts[i], ends[i]);
            } else {
                encoding.token(ids[i], ends[i]);
            }
        }
    }
}
