package io.kvasir.nixl.transport;

import java.util.Arrays;

/**
 * Numbers for things that live in slots: a slot's number changes each time it is taken, so that a
 * number that was given back is known to be stale. One thread; allocates only when it is made and
 * when it grows.
 *
 * <pre>
 *   handle: [ generation of the slot:32 | slot + 1:32 ]   odd generation = slot is taken
 * </pre>
 */
public final class Handles {
    private static final int MOST_SLOTS = 1 << 24;

    private int[] generations;
    private int[] free;
    private int freeCount;

    /**
     * Makes slots that are all free.
     *
     * @param slots how many, 1..2^24
     * @throws IllegalArgumentException if there cannot be so many
     */
    public Handles(int slots) {
        check(slots, 1);
        generations = new int[slots];
        free = new int[slots];
        Arrays.setAll(free, index -> slots - 1 - index);
        freeCount = slots;
    }

    /**
     * Adds free slots after those there are; handles that were given stay good.
     *
     * @param slots how many there are then, not fewer than before, at most 2^24
     * @throws IllegalArgumentException if there cannot be so many
     */
    public void grow(int slots) {
        final int before = generations.length;
        check(slots, before);
        generations = Arrays.copyOf(generations, slots);
        free = Arrays.copyOf(free, slots);
        for (int slot = slots - 1; slot >= before; slot--) {
            free[freeCount++] = slot;
        }
    }

    private static void check(int slots, int least) {
        if (slots < least || slots > MOST_SLOTS) {
            throw new IllegalArgumentException(
                    "slots=" + slots + ", limits are " + least + ".." + MOST_SLOTS);
        }
    }

    /**
     * Takes a slot.
     *
     * @return its handle, 0 if all are taken
     */
    public long take() {
        if (freeCount == 0) {
            return 0;
        }
        final int slot = free[--freeCount];
        generations[slot]++;
        return handle(slot);
    }

    private long handle(int slot) {
        return (long) generations[slot] << Integer.SIZE | (slot + 1);
    }

    /**
     * Slot of a handle.
     *
     * @return -1 if it was never given or is given back
     */
    public int slot(long handle) {
        final int slot = (int) handle - 1;
        final boolean given =
                slot >= 0
                        && slot < generations.length
                        && (generations[slot] & 1) != 0
                        && handle(slot) == handle;
        return given ? slot : -1;
    }

    /** Gives a taken slot back; its handle is stale from now on. */
    public void release(int slot) {
        generations[slot]++;
        free[freeCount++] = slot;
    }
}
