package io.kvasir.pipeline.publish;

import io.kvasir.pipeline.wire.KvBatch;

import org.agrona.collections.Long2LongHashMap;

import java.util.Arrays;
import java.util.BitSet;

/**
 * What one worker holds by the router events that were published: each block with its parent and
 * local hash. A block that was removed while others after it are held stays as a <em>hole</em>:
 * these match again when it comes back. Not thread-safe.
 *
 * <p>Follows events as the index of a reader does: a store whose parent is not held changes
 * nothing.
 */
final class HeldBlocks {
    /** Most blocks in one store that is shown. */
    static final int RUN = 1_024;

    private static final long ABSENT = -1;
    private static final int ROOT = -1;
    private static final int FREE = -2;
    private static final int FIRST_ENTRIES = 256;

    /** Takes all blocks, parents before those after them. */
    interface Visitor {
        /**
         * Consecutive blocks.
         *
         * @param root whether the first one starts a prompt
         * @param parent name of the one before, shown earlier
         * @param names of the blocks, [count]; those of holes are made up
         * @param locals their local hashes, [count]
         */
        void stored(boolean root, long parent, long[] names, long[] locals, int count);

        /** A shown block is a hole. */
        void hole(long name);
    }

    private final int maxBlocks;
    private final Long2LongHashMap entries = new Long2LongHashMap(ABSENT); // held and holes
    private final BitSet held = new BitSet();
    private long[] names = new long[FIRST_ENTRIES];
    private long[] locals = new long[FIRST_ENTRIES];
    private int[] parents = new int[FIRST_ENTRIES]; // an entry, ROOT, or FREE
    private int[] children = new int[FIRST_ENTRIES];
    private int[] free = new int[FIRST_ENTRIES];
    private int freeCount;
    private int end;
    private int size;
    private boolean overflowed;
    private long[] hashes = new long[0];
    private long[] localHashes = new long[0];

    /**
     * @param maxBlocks most blocks and holes; with more nothing is known until a clear
     */
    HeldBlocks(int maxBlocks) {
        this.maxBlocks = maxBlocks;
    }

    /** Held blocks, without holes. */
    int size() {
        return size;
    }

    /** Whether there were more blocks than it keeps: then nothing is known until a clear. */
    boolean hasOverflowed() {
        return overflowed;
    }

    /** Follows one operation. */
    void apply(KvBatch batch, int at) {
        if (batch.kind(at) == KvBatch.Kind.CLEARED) {
            forget();
            overflowed = false;
        } else if (!overflowed) {
            change(batch, at);
        }
    }

    private void change(KvBatch batch, int at) {
        final int count = batch.count(at);
        switch (batch.kind(at)) {
            case STORED -> {
                reserve(count);
                batch.engineHashes(at, hashes);
                batch.localHashes(at, localHashes);
                store(batch.isRoot(at), batch.parent(at), count);
            }
            case REMOVED -> {
                reserve(count);
                batch.engineHashes(at, hashes);
                for (int i = 0; i < count; i++) {
                    remove(hashes[i]);
                }
            }
            case CLEARED, REMOVED_TO, REFILL, NAMED, TIER_CLEARED ->
                    throw new AssertionError(batch.kind(at));
        }
    }

    private void reserve(int count) {
        if (hashes.length < count) {
            hashes = new long[count];
            localHashes = new long[count];
        }
    }

    private void store(boolean root, long parentName, int count) {
        int parent = root ? ROOT : (int) entries.get(parentName);
        if (!root && (parent == ABSENT || !held.get(parent))) {
            return;
        }
        for (int i = 0; i < count && !overflowed; i++) {
            parent = store(parent, hashes[i], localHashes[i]);
            if (parent == FREE) {
                return; // it contradicts itself
            }
        }
    }

    /** Stores one block; its entry, FREE if it cannot be. */
    private int store(int parent, long name, long local) {
        final int known = (int) entries.get(name);
        if (known != ABSENT && known == parent) {
            return FREE;
        }
        if (known != ABSENT && parents[known] == parent && locals[known] == local) {
            if (!held.get(known)) {
                held.set(known);
                size++;
            }
            return known;
        }
        if (known != ABSENT) {
            remove(name); // the name stands for another block now
        }
        return add(parent, name, local);
    }

    private int add(int parent, long name, long local) {
        if (end - freeCount == maxBlocks) {
            forget();
            overflowed = true;
            return FREE;
        }
        final int entry = freeCount > 0 ? free[--freeCount] : newEntry();
        names[entry] = name;
        locals[entry] = local;
        parents[entry] = parent;
        children[entry] = 0;
        if (parent != ROOT) {
            children[parent]++;
        }
        held.set(entry);
        entries.put(name, entry);
        size++;
        return entry;
    }

    private int newEntry() {
        if (end == names.length) {
            final int length = 2 * end;
            names = Arrays.copyOf(names, length);
            locals = Arrays.copyOf(locals, length);
            parents = Arrays.copyOf(parents, length);
            children = Arrays.copyOf(children, length);
        }
        return end++;
    }

    private void remove(long name) {
        final int entry = (int) entries.get(name);
        if (entry == ABSENT || !held.get(entry)) {
            return;
        }
        held.clear(entry);
        size--;
        dropHoles(entry);
    }

    /** Frees a hole that nothing comes after, and those before it. */
    private void dropHoles(int from) {
        int entry = from;
        while (entry != ROOT && !held.get(entry) && children[entry] == 0) {
            final int parent = parents[entry];
            if (entries.get(names[entry]) == entry) {
                entries.remove(names[entry]); // else another block has the name
            }
            parents[entry] = FREE;
            if (freeCount == free.length) {
                free = Arrays.copyOf(free, 2 * freeCount);
            }
            free[freeCount++] = entry;
            if (parent != ROOT) {
                children[parent]--;
            }
            entry = parent;
        }
    }

    private void forget() {
        entries.clear();
        held.clear();
        freeCount = 0;
        end = 0;
        size = 0;
    }

    /**
     * Shows all blocks.
     *
     * @param firstHole name of the first hole; the next ones follow. No block has such a name, but
     *     for one in 2<sup>64</sup>
     */
    void show(long firstHole, Visitor visitor) {
        final BitSet shown = new BitSet(end);
        int[] chain = new int[RUN];
        for (int entry = 0; entry < end; entry++) {
            int length = 0;
            if (parents[entry] != FREE && children[entry] == 0) { // a leaf, thus held
                for (int at = entry; at != ROOT && !shown.get(at); at = parents[at]) {
                    if (length == chain.length) {
                        chain = Arrays.copyOf(chain, 2 * length);
                    }
                    chain[length++] = at;
                    shown.set(at);
                }
            }
            showChain(chain, length, firstHole, visitor);
        }
        for (int entry = 0; entry < end; entry++) {
            if (shown.get(entry) && !held.get(entry)) {
                visitor.hole(firstHole + entry);
            }
        }
    }

    /** Shows entries from the last one, which starts a prompt or follows a shown one. */
    private void showChain(int[] chain, int length, long firstHole, Visitor visitor) {
        reserve(Math.min(length, RUN));
        for (int top = length - 1; top >= 0; top -= RUN) {
            final int count = Math.min(RUN, top + 1);
            for (int i = 0; i < count; i++) {
                hashes[i] = nameOf(chain[top - i], firstHole);
                localHashes[i] = locals[chain[top - i]];
            }
            final int parent = parents[chain[top]];
            visitor.stored(
                    parent == ROOT,
                    parent == ROOT ? 0 : nameOf(parent, firstHole),
                    hashes,
                    localHashes,
                    count);
        }
    }

    private long nameOf(int entry, long firstHole) {
        return held.get(entry) ? names[entry] : firstHole + entry;
    }
}
