package io.kvasir.opstreams.generate;

import org.agrona.collections.Long2LongHashMap;

import java.util.Arrays;
import java.util.function.LongConsumer;

/**
 * One worker's cache: blocks in use are pinned, the others wait in the order of their last use and
 * are evicted from its old end. Holds more than its capacity when everything is pinned.
 */
final class BlockPool {
    private static final int NONE = -1;
    private static final int FIRST = 16;
    private static final float LOAD = 0.6f;

    private final int capacity;
    private final Long2LongHashMap entryOf = new Long2LongHashMap(FIRST, LOAD, NONE);
    private long[] blocks = new long[FIRST];
    private int[] pins = new int[FIRST];
    private int[] older = new int[FIRST];
    private int[] newer = new int[FIRST];
    private int oldest = NONE;
    private int newest = NONE;
    private int firstFree = NONE; // entries linked by newer
    private int used;
    private int active;

    BlockPool(int capacity) {
        this.capacity = capacity;
    }

    /** Blocks in use. */
    int active() {
        return active;
    }

    /** Blocks in the cache. */
    int size() {
        return entryOf.size();
    }

    boolean holds(long block) {
        return entryOf.get(block) != NONE;
    }

    void pin(long block) {
        final int entry = (int) entryOf.get(block);
        if (pins[entry]++ == 0) {
            unlink(entry);
            active++;
        }
    }

    void unpin(long block) {
        final int entry = (int) entryOf.get(block);
        if (--pins[entry] == 0) {
            link(entry);
            active--;
        }
    }

    /**
     * Evicts the blocks unused for longest until {@code count} more fit or all that is left is in
     * use.
     *
     * @param evicted called with each
     * @return whether they fit
     */
    boolean makeRoom(int count, LongConsumer evicted) {
        while (size() + count > capacity && oldest != NONE) {
            final int entry = oldest;
            unlink(entry);
            entryOf.remove(blocks[entry]);
            newer[entry] = firstFree;
            firstFree = entry;
            evicted.accept(blocks[entry]);
        }
        return size() + count <= capacity;
    }

    /** Adds a block that is not in the cache, in use once. */
    void addPinned(long block) {
        final int entry = newEntry();
        blocks[entry] = block;
        pins[entry] = 1;
        entryOf.put(block, entry);
        active++;
    }

    private int newEntry() {
        if (firstFree != NONE) {
            final int entry = firstFree;
            firstFree = newer[entry];
            return entry;
        }
        if (used == blocks.length) {
            blocks = Arrays.copyOf(blocks, 2 * used);
            pins = Arrays.copyOf(pins, 2 * used);
            older = Arrays.copyOf(older, 2 * used);
            newer = Arrays.copyOf(newer, 2 * used);
        }
        return used++;
    }

    private void unlink(int entry) {
        if (older[entry] == NONE) {
            oldest = newer[entry];
        } else {
            newer[older[entry]] = newer[entry];
        }
        if (newer[entry] == NONE) {
            newest = older[entry];
        } else {
            older[newer[entry]] = older[entry];
        }
    }

    private void link(int entry) {
        older[entry] = newest;
        newer[entry] = NONE;
        if (newest == NONE) {
            oldest = entry;
        } else {
            newer[newest] = entry;
        }
        newest = entry;
    }
}
