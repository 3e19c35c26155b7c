package io.kvasir.core.memory;

/**
 * The state that a structure has in fields of its own, as words in a memory: one method of the
 * structure names them in one order, by which they are saved and, after a restart, restored.
 *
 * <pre>{@code
 * void keep(KeptWords words) {
 *     first = words.keep(first);
 *     count = words.keep(count);
 * }
 * }</pre>
 *
 * <p>Only words that have changed are stored. Writer thread only.
 */
public final class KeptWords {
    private final OffHeap memory;
    private long at;
    private boolean restoring;

    /**
     * @param memory where the words are, 8 bytes each
     */
    public KeptWords(OffHeap memory) {
        this.memory = memory;
    }

    /** From here on words are saved, the first one at an offset. */
    public KeptWords saveTo(long offset) {
        at = offset;
        restoring = false;
        return this;
    }

    /** From here on words are read, the first one at an offset. */
    public KeptWords restoreFrom(long offset) {
        at = offset;
        restoring = true;
        return this;
    }

    /** The next word: saved and returned, or as it was saved. */
    public long keep(long value) {
        final long offset = at;
        at += Long.BYTES;
        final long saved = memory.getLong(offset);
        if (restoring) {
            return saved;
        }
        if (saved != value) {
            memory.putLong(offset, value);
        }
        return value;
    }

    /** The same for an int. */
    public int keep(int value) {
        return (int) keep((long) value);
    }

    /** The same for a count, which is 0 before it is restored. */
    public void keep(WriterCounter count) {
        count.add(keep(count.get()) - count.get());
    }

    /** The same for a cell, which is 0 before it is restored. */
    public void keep(SharedCells cells, long offset) {
        final long value = cells.getLong(offset);
        final long kept = keep(value);
        if (kept != value) {
            cells.putLongRelease(offset, kept); // restored before there are readers
        }
    }

    /** Where the next word is. */
    public long at() {
        return at;
    }
}
