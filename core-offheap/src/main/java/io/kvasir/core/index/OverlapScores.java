package io.kvasir.core.index;

import java.util.Arrays;

/**
 * How many leading blocks of one prompt each worker slot holds: the result of a match. Owned and
 * reused by the caller; one thread at a time.
 */
public final class OverlapScores {
    /** From a sixteenth of the slots on, clearing all of them is faster than one by one. */
    private static final int FILL_SHIFT = 4;

    final int[] depths;
    final int[] slots;
    int matched;
    int deepest;

    /** Without meaning; keeps loads alive that only warm the cache. */
    long touched;

    /** Slots that hold everything up to the end of the run just read, while a match runs. */
    int fullHolders;

    /**
     * Makes an empty result.
     *
     * @param maxSlots worker slots that it has room for; at least the index's
     * @throws IllegalArgumentException if {@code maxSlots} is outside 1..{@value
     *     PrefixIndexConfig#MAX_WORKER_SLOTS}
     */
    public OverlapScores(int maxSlots) {
        if (maxSlots < 1 || maxSlots > PrefixIndexConfig.MAX_WORKER_SLOTS) {
            throw new IllegalArgumentException(
                    "maxSlots out of range: value="
                            + maxSlots
                            + ", limits=1.."
                            + PrefixIndexConfig.MAX_WORKER_SLOTS);
        }
        depths = new int[maxSlots];
        slots = new int[maxSlots];
    }

    /** Forgets everything. */
    public void clear() {
        if (matched > depths.length >> FILL_SHIFT) {
            Arrays.fill(depths, 0);
        } else {
            for (int i = 0; i < matched; i++) {
                depths[slots[i]] = 0;
            }
        }
        matched = 0;
        deepest = 0;
    }

    /**
     * Records a slot; what a match does for each slot that it finds.
     *
     * @param slot worker slot, not recorded yet
     * @param depth leading blocks that it holds, at least 1
     * @throws IllegalArgumentException if the slot is recorded already or {@code depth} is not
     *     positive
     */
    public void add(int slot, int depth) {
        if (depth < 1 || depths[slot] != 0) {
            throw new IllegalArgumentException(
                    "slot is recorded once, with a positive depth: slot="
                            + slot
                            + ", depth="
                            + depth
                            + ", recorded="
                            + depths[slot]);
        }
        depths[slot] = depth;
        slots[matched++] = slot;
        deepest = Math.max(deepest, depth);
    }

    /** Leading blocks that a slot holds; 0 when it does not hold the first one. */
    public int depth(int slot) {
        return depths[slot];
    }

    /** Largest depth of any slot. */
    public int deepest() {
        return deepest;
    }

    /** Number of slots with a depth above 0. */
    public int matchedSlots() {
        return matched;
    }

    /**
     * A slot with a depth above 0; in no particular order.
     *
     * @param i 0..{@link #matchedSlots()} - 1
     */
    public int slotAt(int i) {
        if (i >= matched) {
            throw new IndexOutOfBoundsException("i=" + i + ", matchedSlots=" + matched);
        }
        return slots[i];
    }

    /** Number of slots that it has room for. */
    public int maxSlots() {
        return depths.length;
    }

    @Override
    public String toString() {
        final StringBuilder text = new StringBuilder("{");
        Arrays.stream(slots, 0, matched)
                .sorted()
                .forEach(
                        slot ->
                                text.append(text.length() == 1 ? "" : ", ")
                                        .append(slot)
                                        .append('=')
                                        .append(depths[slot]));
        return text.append('}').toString();
    }

    /** Empties the result for an index with that many slots. */
    void begin(int workerSlots) {
        if (workerSlots > depths.length) {
            throw new IllegalArgumentException(
                    "overlap scores are too small: maxSlots="
                            + depths.length
                            + ", worker slots of the index="
                            + workerSlots);
        }
        clear();
    }

    /** Takes back what was recorded beyond a depth. */
    void takeBack(int depth) {
        if (depth == 0) {
            clear();
            return;
        }
        for (int i = 0; i < matched; i++) {
            depths[slots[i]] = Math.min(depths[slots[i]], depth);
        }
        deepest = Math.min(deepest, depth);
    }
}
