package io.kvasir.prompt.tokenizer;

import java.util.Arrays;

/** Tokens added around one text. */
final class PostProcessor {
    /** Adds nothing. */
    static final PostProcessor NONE = new PostProcessor(new int[0], new int[0]);

    private final int[] before;
    private final int[] after;

    /** Takes ids in front of the text's and after it; not copied. */
    PostProcessor(int[] before, int[] after) {
        this.before = before;
        this.after = after;
    }

    void appendBefore(IdBuffer out) {
        out.addAll(before, before.length);
    }

    void appendAfter(IdBuffer out) {
        out.addAll(after, after.length);
    }

    /** See {@link Tokenizer#keepLast}. */
    int[] keepLast(int[] ids, int most) {
        if (most >= ids.length) {
            return ids;
        }
        final int first = most < before.length + after.length ? 0 : before.length;
        final int[] kept = Arrays.copyOf(ids, most);
        System.arraycopy(ids, ids.length - (most - first), kept, first, most - first);
        return kept;
    }
}
