package io.kvasir.opstreams.alternatives;

import io.kvasir.core.hash.BlockHasher;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The prefix index as one would write it with java.util: sequence hash to a bit set of holders on
 * the heap, readable by any thread, written by one. Counts copies like the real one; expects that a
 * slot has one name for a block.
 */
public final class HashMapIndex {
    private static final class Holding {
        final long sequenceHash;
        int copies = 1;

        Holding(long sequenceHash) {
            this.sequenceHash = sequenceHash;
        }
    }

    private final int words;
    private final Map<Long, AtomicLongArray> holders = new ConcurrentHashMap<>();
    private final List<Map<Long, Holding>> namesOfSlot = new ArrayList<>();

    /**
     * Makes an empty index.
     *
     * @param slots worker slots
     */
    public HashMapIndex(int slots) {
        words = (slots + Long.SIZE - 1) / Long.SIZE;
        for (int i = 0; i < slots; i++) {
            namesOfSlot.add(new HashMap<>());
        }
    }

    /**
     * Stores a run of blocks that starts a prompt.
     *
     * @param slot worker slot
     * @param engineHashes the slot's names of the blocks, [count]
     * @param localHashes local hashes, [count]
     * @param count blocks
     */
    public void storeRoot(int slot, long[] engineHashes, long[] localHashes, int count) {
        store(slot, true, 0, engineHashes, localHashes, count, false);
    }

    /**
     * Stores a run of blocks.
     *
     * @param slot worker slot
     * @param root whether the run starts a prompt; the parent is not looked at then
     * @param parentEngineHash the slot's name of the block before the run
     * @param engineHashes the slot's names of the blocks, [count]
     * @param localHashes local hashes, [count]
     * @param count blocks
     * @param refreshHeld whether blocks that the slot holds already stay as they are
     * @return whether the parent was held; else nothing is stored
     */
    public boolean store(
            int slot,
            boolean root,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            int count,
            boolean refreshHeld) {
        final Map<Long, Holding> names = namesOfSlot.get(slot);
        final Holding parent = root ? null : names.get(parentEngineHash);
        if (!root && parent == null) {
            return false;
        }
        long sequence = root ? 0 : parent.sequenceHash;
        for (int i = 0; i < count; i++) {
            sequence =
                    root && i == 0
                            ? localHashes[0]
                            : BlockHasher.nextSequenceHash(sequence, localHashes[i]);
            final Holding held = names.get(engineHashes[i]);
            if (held == null) {
                names.put(engineHashes[i], new Holding(sequence));
                setBit(sequence, slot);
            } else if (!refreshHeld) {
                held.copies++;
            }
        }
        return true;
    }

    /**
     * Removes one copy of each named block.
     *
     * @param slot worker slot
     * @param engineHashes names, [count]
     * @param count blocks
     * @return names that were unknown
     */
    public int remove(int slot, long[] engineHashes, int count) {
        return remove(slot, engineHashes, count, false);
    }

    /**
     * Removes copies of each named block.
     *
     * @param slot worker slot
     * @param engineHashes names, [count]
     * @param count blocks
     * @param lastCopy whether all copies go, else one
     * @return names that were unknown
     */
    public int remove(int slot, long[] engineHashes, int count, boolean lastCopy) {
        final Map<Long, Holding> names = namesOfSlot.get(slot);
        int unknown = 0;
        for (int i = 0; i < count; i++) {
            final Holding held = names.get(engineHashes[i]);
            if (held == null) {
                unknown++;
            } else if (lastCopy || --held.copies == 0) {
                names.remove(engineHashes[i]);
                clearBit(held.sequenceHash, slot);
            }
        }
        return unknown;
    }

    /**
     * Forgets everything that a slot holds.
     *
     * @param slot worker slot
     */
    public void clear(int slot) {
        final Map<Long, Holding> names = namesOfSlot.get(slot);
        names.values().forEach(held -> clearBit(held.sequenceHash, slot));
        names.clear();
    }

    /** (Slot, name) pairs held. */
    public long heldBlocks() {
        return namesOfSlot.stream().mapToLong(Map::size).sum();
    }

    private void setBit(long sequence, int slot) {
        final AtomicLongArray bits =
                holders.computeIfAbsent(sequence, key -> new AtomicLongArray(words));
        bits.setRelease(slot >> 6, bits.getPlain(slot >> 6) | 1L << slot);
    }

    private void clearBit(long sequence, int slot) {
        final AtomicLongArray bits = holders.get(sequence);
        bits.setRelease(slot >> 6, bits.getPlain(slot >> 6) & ~(1L << slot));
        for (int i = 0; i < words; i++) {
            if (bits.getPlain(i) != 0) {
                return;
            }
        }
        holders.remove(sequence);
    }

    /**
     * Finds how many leading blocks each slot holds.
     *
     * @param localHashes local hashes of the prompt, [count]
     * @param count blocks
     * @param depths receives the depth of each slot, [slots]
     * @return deepest match
     */
    public int match(long[] localHashes, int count, int[] depths) {
        Arrays.fill(depths, 0);
        final long[] alive = new long[words];
        Arrays.fill(alive, -1L);
        long sequence = 0;
        int deepest = 0;
        for (int i = 0; i < count; i++) {
            sequence =
                    i == 0
                            ? localHashes[0]
                            : BlockHasher.nextSequenceHash(sequence, localHashes[i]);
            final AtomicLongArray bits = holders.get(sequence);
            if (bits == null) {
                break;
            }
            long any = 0;
            for (int w = 0; w < words; w++) {
                alive[w] &= bits.getAcquire(w);
                any |= alive[w];
                for (long left = alive[w]; left != 0; left &= left - 1) {
                    depths[w * Long.SIZE + Long.numberOfTrailingZeros(left)] = i + 1;
                }
            }
            if (any == 0) {
                break;
            }
            deepest = i + 1;
        }
        return deepest;
    }
}
