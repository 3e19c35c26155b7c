package io.kvasir.prompt.tokenizer;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CancellationException;

/**
 * Byte-pair encoding of one word: starts with one token per byte and joins the neighbouring pair
 * with the lowest rank, the leftmost of equals, until no pair is left. Immutable; the working
 * memory of a call is a {@link Scratch}.
 */
final class BpeModel {
    /** Up to this many symbols a scan for the best pair beats a heap. */
    private static final int SCAN_LIMIT = 64;

    /** Merges of one word between two checks of the thread's interrupted state; a power of two. */
    private static final int MERGES_PER_CHECK = 1 << 16;

    private static final int DEAD = Integer.MAX_VALUE;

    /** In place of the id of a cell that does not begin a symbol. */
    private static final int INSIDE = -1;

    private final Map<String, Integer> vocabulary;
    private final int[] idOfByte;
    private final MergeTable merges;
    private final boolean ignoreMerges;
    private final int longestToken;

    /**
     * Creates a model.
     *
     * @param vocabulary token to id, not copied
     * @param idOfByte id of each byte's token, -1 where the vocabulary lacks it; [256], not copied
     * @param merges pairs of ids
     * @param ignoreMerges whether a word that is a token as a whole is never cut
     */
    BpeModel(
            Map<String, Integer> vocabulary,
            int[] idOfByte,
            MergeTable merges,
            boolean ignoreMerges) {
        this.vocabulary = vocabulary;
        this.idOfByte = idOfByte;
        this.merges = merges;
        this.ignoreMerges = ignoreMerges;
        longestToken = vocabulary.keySet().stream().mapToInt(String::length).max().orElse(1);
    }

    /** A word of so many bytes, or of more, has no fewer tokens. */
    int leastTokens(int bytes) {
        for (int id : idOfByte) {
            if (id < 0) {
                return 0; // such bytes vanish
            }
        }
        return bytes / longestToken;
    }

    /** Working memory of one thread; grows to the longest word seen. */
    static final class Scratch {
        private byte[] bytes = new byte[SCAN_LIMIT];
        private int[] ids = new int[SCAN_LIMIT];
        private final int[] ranks = new int[SCAN_LIMIT];
        private final int[] merged = new int[SCAN_LIMIT];
        private int[] lengths = new int[0];
        private long[] heap = new long[0];
        private int heapCount;

        /** Ids of the last word encoded; valid up to the count that {@link #encode} returned. */
        int[] ids() {
            return ids;
        }

        private void ensure(int length) {
            if (ids.length < length) {
                bytes = new byte[length];
                ids = new int[length];
            }
        }

        private int[] lengths(int count) {
            if (lengths.length < count) {
                lengths = new int[count];
            }
            return lengths;
        }
    }

    /** Encodes {@code text[start, end)}; returns how many ids are in {@link Scratch#ids}. */
    int encode(String text, int start, int end, Scratch scratch) {
        scratch.ensure(utf8Length(text, start, end));
        final int length = utf8(text, start, end, scratch.bytes);
        if (ignoreMerges) {
            final Integer whole = vocabulary.get(ByteAlphabet.textOf(scratch.bytes, length));
            if (whole != null) {
                scratch.ids[0] = whole;
                return 1;
            }
        }
        int count = 0;
        for (int i = 0; i < length; i++) {
            final int id = idOfByte[scratch.bytes[i] & 0xFF];
            if (id >= 0) { // without an unknown token, bytes outside of the vocabulary vanish
                scratch.ids[count++] = id;
            }
        }
        return count <= SCAN_LIMIT ? mergeByScan(scratch, count) : mergeByHeap(scratch, count);
    }

    private int mergeByScan(Scratch s, int symbols) {
        int count = symbols;
        final int[] ids = s.ids;
        final int[] ranks = s.ranks;
        final int[] merged = s.merged;
        for (int i = 0; i + 1 < count; i++) {
            look(s, i, ids[i], ids[i + 1]);
        }
        while (count > 1) {
            int best = 0;
            for (int i = 1; i + 1 < count; i++) {
                if (ranks[i] < ranks[best]) {
                    best = i;
                }
            }
            if (ranks[best] == DEAD) {
                break;
            }
            ids[best] = merged[best];
            count--;
            System.arraycopy(ids, best + 2, ids, best + 1, count - best - 1);
            System.arraycopy(ranks, best + 2, ranks, best + 1, count - best - 1);
            System.arraycopy(merged, best + 2, merged, best + 1, count - best - 1);
            if (best + 1 < count) {
                look(s, best, ids[best], ids[best + 1]);
            }
            if (best > 0) {
                look(s, best - 1, ids[best - 1], ids[best]);
            }
        }
        return count;
    }

    private void look(Scratch s, int at, int left, int right) {
        final long merge = merges.get(left, right);
        s.ranks[at] = merge == MergeTable.NONE ? DEAD : (int) (merge >>> 32);
        s.merged[at] = (int) merge;
    }

    /**
     * A symbol of so many cells has its length in the first and the last of them, by which its
     * neighbours are found; entries of the heap whose pair has changed are known by their rank.
     */
    private int mergeByHeap(Scratch s, int count) {
        final int[] ids = s.ids;
        final int[] lengths = s.lengths(count);
        s.heapCount = 0;
        if (s.heap.length < count) {
            s.heap = new long[count];
        }
        Arrays.fill(lengths, 0, count, 1);
        for (int i = 0; i + 1 < count; i++) {
            offer(s, i, i + 1);
        }
        int done = 0;
        while (s.heapCount > 0) {
            if ((++done & MERGES_PER_CHECK - 1) == 0 && Thread.currentThread().isInterrupted()) {
                throw new CancellationException("the encoding was given up");
            }
            final long top = pop(s);
            final int at = (int) top;
            final int right = at + lengths[at];
            if (ids[at] == INSIDE || right == count) {
                continue; // the pair has changed since
            }
            final long merge = merges.get(ids[at], ids[right]);
            if (merge == MergeTable.NONE || merge >>> 32 != top >>> 32) {
                continue;
            }
            final int next = right + lengths[right];
            ids[at] = (int) merge;
            ids[right] = INSIDE;
            lengths[at] = next - at;
            lengths[next - 1] = next - at;
            if (next < count) {
                offer(s, at, next);
            }
            if (at > 0) {
                offer(s, at - lengths[at - 1], at);
            }
        }
        int kept = 0;
        for (int i = 0; i < count; i += lengths[i]) {
            ids[kept++] = ids[i];
        }
        return kept;
    }

    private void offer(Scratch s, int left, int right) {
        final long merge = merges.get(s.ids[left], s.ids[right]);
        if (merge == MergeTable.NONE) {
            return;
        }
        final long key = (merge >>> 32 << 32) | left;
        int hole = s.heapCount++;
        if (hole == s.heap.length) {
            s.heap = Arrays.copyOf(s.heap, hole + (hole >>> 2));
        }
        while (hole > 0) {
            final int parent = (hole - 1) >>> 1;
            if (s.heap[parent] <= key) {
                break;
            }
            s.heap[hole] = s.heap[parent];
            hole = parent;
        }
        s.heap[hole] = key;
    }

    private static long pop(Scratch s) {
        final long[] heap = s.heap;
        final long top = heap[0];
        final int count = --s.heapCount;
        final long last = heap[count];
        int hole = 0;
        while (true) {
            int child = 2 * hole + 1;
            if (child >= count) {
                break;
            }
            if (child + 1 < count && heap[child + 1] < heap[child]) {
                child++;
            }
            if (heap[child] >= last) {
                break;
            }
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = last;
        return top;
    }

    /** Bytes of {@code text[start, end)}. */
    static int utf8Length(String text, int start, int end) {
        int length = end - start;
        for (int i = start; i < end; i++) {
            final char c = text.charAt(i);
            if (c >= 0x80) {
                // a surrogate pair is two of the four bytes already
                length += c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
            }
        }
        return length;
    }

    private static int utf8(String text, int start, int end, byte[] out) {
        int length = 0;
        for (int i = start; i < end; i++) {
            final char c = text.charAt(i);
            if (c < 0x80) {
                out[length++] = (byte) c;
            } else if (c < 0x800) {
                out[length++] = (byte) (0xC0 | (c >> 6));
                out[length++] = (byte) (0x80 | (c & 0x3F));
            } else if (Character.isHighSurrogate(c)) {
                final int codePoint = Character.toCodePoint(c, text.charAt(++i));
                out[length++] = (byte) (0xF0 | (codePoint >> 18));
                out[length++] = (byte) (0x80 | ((codePoint >> 12) & 0x3F));
                out[length++] = (byte) (0x80 | ((codePoint >> 6) & 0x3F));
                out[length++] = (byte) (0x80 | (codePoint & 0x3F));
            } else {
                out[length++] = (byte) (0xE0 | (c >> 12));
                out[length++] = (byte) (0x80 | ((c >> 6) & 0x3F));
                out[length++] = (byte) (0x80 | (c & 0x3F));
            }
        }
        return length;
    }
}
