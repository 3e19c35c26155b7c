package io.kvasir.prompt.tokenizer;

import java.util.Arrays;

/** Growing array of token ids. One thread. */
final class IdBuffer {
    private int[] ids;
    private int count;

    IdBuffer(int expected) {
        ids = new int[Math.max(16, expected)];
    }

    void add(int id) {
        if (count == ids.length) {
            ids = Arrays.copyOf(ids, ids.length * 2);
        }
        ids[count++] = id;
    }

    void addAll(int[] source, int sourceCount) {
        if (count + sourceCount > ids.length) {
            ids = Arrays.copyOf(ids, Math.max(ids.length * 2, count + sourceCount));
        }
        System.arraycopy(source, 0, ids, count, sourceCount);
        count += sourceCount;
    }

    /** The ids so far are at 0 .. {@link #count}; until the next one is added. */
    int[] array() {
        return ids;
    }

    int count() {
        return count;
    }

    int[] toArray() {
        return Arrays.copyOf(ids, count);
    }
}
