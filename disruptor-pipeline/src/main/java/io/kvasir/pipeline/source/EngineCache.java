package io.kvasir.pipeline.source;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;
import io.kvasir.pipeline.wire.KvBatch;

import org.agrona.collections.Long2LongHashMap;

import java.util.Arrays;
import java.util.BitSet;

/**
 * What one engine has in its device's cache by its own events: every block with its parent, local
 * hash and copies, and the holes on their paths: blocks that it has removed and may hold children
 * of. Some 60 bytes of heap for each, so it is made for a while only. Not thread-safe.
 */
final class EngineCache {
    private static final long ABSENT = -1;
    private static final int FIRST_ENTRIES = 256;

    /** Blocks that are shown at once at most, but for holes at their end. */
    static final int PART = 1024;

    /** So many holes may be useless before they are looked for, and as many as there are blocks. */
    private static final int SPARE_HOLES = 1024;

    /** Shows stores of blocks, each after one shown before, or at the root. */
    interface Visitor {
        /** The arrays are the visitor's until the next call; [count]. */
        void stored(boolean root, long parent, long[] names, long[] locals, int count);

        /** A block that was shown has more copies than one, or is a hole: 0. */
        void copies(long name, int copies);
    }

    private final Long2LongHashMap entries = new Long2LongHashMap(ABSENT);
    private final BitSet roots = new BitSet();
    private final BitSet shown = new BitSet();
    private long[] names = new long[FIRST_ENTRIES];
    private long[] parents = new long[FIRST_ENTRIES];
    private long[] locals = new long[FIRST_ENTRIES];
    private int[] copies = new int[FIRST_ENTRIES]; // 0 = no block, or a hole
    private int[] free = new int[FIRST_ENTRIES];
    private int freeCount;
    private int end;
    private int blocks;
    private int next;
    private boolean showing;
    private int[] shownLast = new int[FIRST_ENTRIES];
    private int shownLastCount;
    private int nextBefore;
    private int[] chain = new int[FIRST_ENTRIES];
    private long[] engineHashes = new long[FIRST_ENTRIES];
    private long[] localHashes = new long[FIRST_ENTRIES];

    /** Blocks, without holes. */
    int size() {
        return blocks;
    }

    /** Entries, with holes. */
    int entries() {
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
        if (!root && !isHeld((int) entries.get(parent))) {
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
        } else if (copies[entry] > 0
                && locals[entry] == local
                && roots.get(entry) == root
                && (root || parents[entry] == parent)) {
            copies[entry] += report ? 0 : 1;
            return;
        }
        blocks += isHeld(entry) ? 0 : 1;
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
        if (!isHeld(entry)) {
            return;
        }
        copies[entry] = Math.max(0, left);
        if (left <= 0) {
            blocks--;
            if (entries.size() - blocks > blocks + SPARE_HOLES) {
                dropUselessHoles();
            }
        }
    }

    private boolean isHeld(int entry) {
        return entry != ABSENT && copies[entry] > 0;
    }

    /** Drops the holes that are on no block's path; costs as much as the removals since. */
    private void dropUselessHoles() {
        final BitSet useful = new BitSet(end);
        for (int held = 0; held < end; held++) {
            int entry = held;
            boolean goesOn = copies[held] > 0;
            while (goesOn && entry != ABSENT && !useful.get(entry)) {
                useful.set(entry);
                goesOn = !roots.get(entry);
                entry = goesOn ? (int) entries.get(parents[entry]) : entry;
            }
        }
        for (int entry = useful.nextClearBit(0);
                entry < end;
                entry = useful.nextClearBit(entry + 1)) {
            if (entries.get(names[entry]) == entry) {
                entries.remove(names[entry]);
                if (freeCount == free.length) {
                    free = Arrays.copyOf(free, 2 * freeCount);
                }
                free[freeCount++] = entry;
            }
        }
    }

    private void clear() {
        entries.clear();
        Arrays.fill(copies, 0, end, 0);
        freeCount = 0;
        end = 0;
        blocks = 0;
        shown.clear();
        next = 0;
    }

    /** Begins to {@link #show} all blocks. */
    void rewind() {
        shown.clear();
        next = 0;
        showing = true;
    }

    /** Takes back what the last call of {@link #show} has shown. */
    void takeBack() {
        for (int i = 0; i < shownLastCount; i++) {
            shown.clear(shownLast[i]);
        }
        shownLastCount = 0;
        next = Math.min(next, nextBefore);
    }

    /**
     * Shows the next blocks, and those before them on their paths, holes too. A block is not shown
     * of whose path a part has never been seen. What is stored between two calls is shown, unless
     * its engine hash has been already.
     *
     * @param blocks so many, and up to {@link #PART} and a row of holes more
     * @return whether all have been shown
     */
    boolean show(int blocks, Visitor visitor) {
        int left = blocks;
        nextBefore = next;
        shownLastCount = 0;
        while (left > 0 && next < end) {
            final int length = isHeld(next) ? climb(next) : 0;
            int count = Math.min(length, PART);
            while (count < length && !isHeld(chain[length - count])) {
                count++; // behind a hole nothing can be shown by itself
            }
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

    /**
     * Collects the entries up to a block that was shown, or the root; 0 if there is no way. A hole
     * is shown again with what is behind it, which would have no parent else.
     */
    private int climb(int last) {
        int length = 0;
        int entry = last;
        while (entry != ABSENT && !isShown(entry) && length < end) {
            if (length == chain.length) {
                chain = Arrays.copyOf(chain, 2 * length);
            }
            chain[length++] = entry;
            if (roots.get(entry)) {
                return length;
            }
            entry = (int) entries.get(parents[entry]);
        }
        return entry != ABSENT && isShown(entry) ? length : 0;
    }

    private boolean isShown(int entry) {
        return shown.get(entry) && copies[entry] > 0;
    }

    private void showTop(int length, int count, Visitor visitor) {
        final int first = chain[length - 1];
        reserve(count);
        if (shownLastCount + count > shownLast.length) {
            shownLast = Arrays.copyOf(shownLast, 2 * (shownLastCount + count));
        }
        for (int i = 0; i < count; i++) {
            final int entry = chain[length - 1 - i];
            shown.set(entry);
            shownLast[shownLastCount++] = entry;
            engineHashes[i] = names[entry];
            localHashes[i] = locals[entry];
        }
        visitor.stored(roots.get(first), parents[first], engineHashes, localHashes, count);
        for (int i = 0; i < count; i++) {
            final int entry = chain[length - 1 - i];
            if (copies[entry] != 1) {
                visitor.copies(names[entry], copies[entry]);
            }
        }
    }
}
