package io.kvasir.core.load;

import io.kvasir.core.radix.RadixTree;

import java.util.Objects;

/**
 * Blocks that each worker slot would have in use if it got one more request. Owned and reused by
 * the caller; one thread at a time.
 */
public final class PotentialLoads {
    private final long[] decodeBlocks;
    private int slots;

    /**
     * Makes an empty result.
     *
     * @param maxSlots worker slots that it has room for
     * @throws IllegalArgumentException if {@code maxSlots} is outside 1..{@value
     *     RadixTree#MAX_WORKER_SLOTS}
     */
    public PotentialLoads(int maxSlots) {
        if (maxSlots < 1 || maxSlots > RadixTree.MAX_WORKER_SLOTS) {
            throw new IllegalArgumentException(
                    "maxSlots out of range: value="
                            + maxSlots
                            + ", limits=1.."
                            + RadixTree.MAX_WORKER_SLOTS);
        }
        this.decodeBlocks = new long[maxSlots];
    }

    /** Number of slots of the last answer. */
    public int slots() {
        return slots;
    }

    /**
     * Blocks in use on a slot with the request added.
     *
     * @throws IndexOutOfBoundsException if the slot is not in the last answer
     */
    public long decodeBlocks(int slot) {
        return decodeBlocks[Objects.checkIndex(slot, slots)];
    }

    void begin(int slotCount) {
        if (slotCount > decodeBlocks.length) {
            throw new IllegalArgumentException(
                    "potential loads are too small: maxSlots="
                            + decodeBlocks.length
                            + ", worker slots of the table="
                            + slotCount);
        }
        slots = slotCount;
    }

    /** One value for each slot of the answer, to be written by the table. */
    long[] values() {
        return decodeBlocks;
    }
}
