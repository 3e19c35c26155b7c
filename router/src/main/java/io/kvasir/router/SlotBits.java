package io.kvasir.router;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A set of slots, one bit each. One thread at a time changes it; any thread reads it without a
 * lock, and each word that it sees existed at some moment. Memory is taken for pages of 512 slots
 * in which there ever was one.
 */
final class SlotBits {
    private static final int PAGE_WORDS = 8;
    private static final long[][] NO_PAGES = {};
    private static final VarHandle WORD = MethodHandles.arrayElementVarHandle(long[].class);

    private volatile long[][] pages = NO_PAGES; // null for a page without a slot
    private volatile int count;
    private int size; // the same, of the thread that changes it

    /** Adds a slot; nothing if it is there. */
    void add(int slot) {
        final int group = slot / Long.SIZE;
        final long[] page = grown(group / PAGE_WORDS);
        final long before = page[group % PAGE_WORDS];
        final long after = before | 1L << slot;
        if (after != before) {
            WORD.setRelease(page, group % PAGE_WORDS, after);
            count = ++size;
        }
    }

    /** Takes a slot out; nothing if it is not there. */
    void remove(int slot) {
        final int group = slot / Long.SIZE;
        final long before = of(group);
        final long after = before & ~(1L << slot);
        if (after != before) {
            WORD.setRelease(pages[group / PAGE_WORDS], group % PAGE_WORDS, after);
            count = --size;
        }
    }

    private long[] grown(int number) {
        final long[][] before = pages;
        if (number < before.length && before[number] != null) {
            return before[number];
        }
        final long[][] more = new long[Math.max(before.length, number + 1)][];
        System.arraycopy(before, 0, more, 0, before.length);
        more[number] = new long[PAGE_WORDS];
        pages = more;
        return more[number];
    }

    /** The slots of a group of 64, lowest first. */
    long of(int group) {
        final long[][] all = pages;
        final int number = group / PAGE_WORDS;
        // acquire: a reader that misses a slot that was taken out sees the set of workers without
        // its tenant
        return number < all.length && all[number] != null
                ? (long) WORD.getAcquire(all[number], group % PAGE_WORDS)
                : 0;
    }

    boolean contains(int slot) {
        return (of(slot / Long.SIZE) >>> slot & 1) != 0;
    }

    /** How many slots there are in it. */
    int count() {
        return count;
    }
}
