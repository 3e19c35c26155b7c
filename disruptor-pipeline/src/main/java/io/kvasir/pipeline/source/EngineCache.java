package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.wire.KvBatch;

import org.agrona.collections.Long2LongHashMap;

import java.util.Arrays;
import java.util.BitSet;

/**
 * What one engine has in its device's cache by its own events: every block with its parent, local
 * hash and copies. Some 60 bytes of heap for each, so it is made for a while only. Not thread-safe.
 */
final class EngineCache {
    private static final long ABSENT = -1;
    private static final int FIRST_ENTRIES = 256;

    /** Blocks that are shown at once at most. */
    static final int PART = 1024;

    /** Shows stores of blocks, each after one shown before, or at the root. */
    interface Visitor {
        /** The arrays are the visitor's until the next call; [count]. */
        void stored(boolean root, long parent, long[] names, long[] locals, int count);

        /** A block that was shown has more copies than one. */
        void copies(long name, int copies);
    }

    private final Long2LongHashMap entries = new Long2LongHashMap(ABSENT);
    private final BitSet roots = new BitSet();
    private final BitSet shown = new BitSet();
    private long[] names = new long[FIRST_ENTRIES];
    private long[] parents = new long[FIRST_ENTRIES];
    private long[] locals = new long[FIRST_ENTRIES];
    private int[] copies = new int[FIRST_ENTRIES]; // 0 = no block
    private int[] free = new int[FIRST_ENTRIES];
    private int freeCount;
    private int end;
    private int next;
    private boolean showing;
    private int[] chain = new int[FIRST_ENTRIES];
    private long[] engineHashes = new long[FIRST_ENTRIES];
    private long[] localHashes = new long[FIRST_ENTRIES];

    /** Blocks. */
    int size() {
        return entries.size();
    }

    /** Follows what a message says. */
    void apply(KvBatch batch) {
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            final int count = batch.count(at);
            if (batch.tier(at) != StorageTier.DEVICE) {
                continue; // what a lower tier has is not reported again
            }
            switch (batch.kind(at)) {
                case STORED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    batch.localHashes(at, localHashes);
                    store(batch, at, count);
                }
                case REMOVED -> {
                    reserve(count);
                    batch.engineHashes(at, engineHashes);
                    for (int i = 0; i < count; i++) {
                        remove(engineHashes[i], batch.copyRule() == CopyRule.PHYSICAL ? 1 : -1);
                    }
                }
                case REMOVED_TO -> removeTo(batch.engineHash(at), count);
                case CLEARED, TIER_CLEARED -> clear();
                case REFILL, NAMED -> {}
            }
        }
    }

    private void reserve(int count) {
        if (engineHashes.length < count) {
            engineHashes = new long[Math.max(PART, count)];
            localHashes = new long[Math.max(PART, count)];
        }
    }

    private void store(KvBatch batch, int at, int count) {
        boolean root = batch.isRoot(at);
        final boolean report = batch.isReport(at);
        long parent = root ? 0 : batch.parent(at);
        if (!root && entries.get(parent) == ABSENT) {
            return; // as the index does
        }
        for (int i = 0; i < count; i++) {
            store(root, parent, engineHashes[i], localHashes[i], report);
            root = false;
            parent = engineHashes[i];
        }
    }

    private void store(boolean root, long parent, long name, long local, boolean report) {
        int entry = (int) entries.get(name);
        if (entry == ABSENT) {
            entry = freeCount > 0 && !showing ? free[--freeCount] : newEntry();
            entries.put(name, entry);
        } else if (locals[entry] == local
                && roots.get(entry) == root
                && (root || parents[entry] == parent)) {
            copies[entry] += report ? 0 : 1;
            return;
        }
        names[entry] = name;
        parents[entry] = parent;
        locals[entry] = local;
        copies[entry] = 1;
        roots.set(entry, root);
    }

    private int newEntry() {
        if (end == names.length) {
            names = Arrays.copyOf(names, 2 * end);
            parents = Arrays.copyOf(parents, 2 * end);
            locals = Arrays.copyOf(locals, 2 * end);
            copies = Arrays.copyOf(copies, 2 * end);
        }
        return end++;
    }

    /** Takes so many copies away, -1 for all. */
    private void remove(long name, int removed) {
        final int entry = (int) entries.get(name);
        if (entry != ABSENT) {
            removeTo(name, removed < 0 ? 0 : copies[entry] - removed);
        }
    }

    private void removeTo(long name, int left) {
        final int entry = (int) entries.get(name);
        if (entry == ABSENT) {
            return;
        }
        copies[entry] = Math.max(0, left);
        if (left <= 0) {
            entries.remove(name);
            if (freeCount == free.length) {
                free = Arrays.copyOf(free, 2 * freeCount);
            }
            free[freeCount++] = entry;
        }
    }

    private void clear() {
        entries.clear();
        Arrays.fill(copies, 0, end, 0);
        freeCount = 0;
        end = 0;
    }

    /** Begins to {@link #show} all blocks. */
    void rewind() {
        shown.clear();
        next = 0;
        showing = true;
    }

    /**
     * Shows the next blocks, and those before them on their paths. A block after a hole is not
     * shown. What is stored between two calls is shown, unless its engine hash has been already.
     *
     * @param blocks so many, and up to {@link #PART} more
     * @return whether all have been shown
     */
    boolean show(int blocks, Visitor visitor) {
        int left = blocks;
        while (left > 0 && next < end) {
            final int length = climb(next);
            final int count = Math.min(length, PART);
            if (count > 0) {
                showTop(length, count, visitor);
            }
            if (count == length) {
                next++;
            }
            left -= 1 + count;
        }
        return next >= end;
    }

    /** Collects the blocks up to one that was shown or the root; 0 if there is a hole. */
    private int climb(int last) {
        int length = 0;
        int entry = last;
        while (entry != ABSENT && copies[entry] > 0 && !shown.get(entry) && length < end) {
            if (length == chain.length) {
                chain = Arrays.copyOf(chain, 2 * length);
            }
            chain[length++] = entry;
            if (roots.get(entry)) {
                return length;
            }
            entry = (int) entries.get(parents[entry]);
        }
        return entry != ABSENT && shown.get(entry) ? length : 0;
    }

    private void showTop(int length, int count, Visitor visitor) {
        final int first = chain[length - 1];
        reserve(count);
        for (int i = 0; i < count; i++) {
            final int entry = chain[length - 1 - i];
            shown.set(entry);
            engineHashes[i] = names[entry];
            localHashes[i] = locals[entry];
        }
        visitor.stored(roots.get(first), parents[first], engineHashes, localHashes, count);
        for (int i = 0; i < count; i++) {
            final int entry = chain[length - 1 - i];
            if (copies[entry] > 1) {
                visitor.copies(names[entry], copies[entry]);
            }
        }
    }
}
