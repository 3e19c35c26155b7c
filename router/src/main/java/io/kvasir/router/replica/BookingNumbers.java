package io.kvasir.router.replica;

import java.util.Arrays;

/**
 * Numbers of other routers' bookings in the table of active requests: {@code [generation:32 |
 * index:32]}, an index under one booking at a time. Replica thread only; memory grows to the most
 * that were given out at once.
 */
final class BookingNumbers {
    /** No number is left. */
    static final long NONE = 0;

    private final int firstIndex;
    private final int capacity;
    private int[] generations = new int[64]; // by index - firstIndex
    private int[] free = new int[64]; // a stack of offsets
    private int freeCount;
    private int used; // offsets from here on were never given out

    BookingNumbers(int firstIndex, int capacity) {
        this.firstIndex = firstIndex;
        this.capacity = capacity;
    }

    boolean isEmpty() {
        return freeCount == 0 && used == capacity;
    }

    long take() {
        if (isEmpty()) {
            return NONE;
        }
        final int offset = freeCount > 0 ? free[--freeCount] : used++;
        if (offset >= generations.length) {
            generations = Arrays.copyOf(generations, 2 * offset);
        }
        generations[offset] = generations[offset] == -1 ? 1 : generations[offset] + 1; // never 0
        return (long) generations[offset] << Integer.SIZE | (firstIndex + offset);
    }

    void give(long number) {
        if (freeCount == free.length) {
            free = Arrays.copyOf(free, 2 * freeCount);
        }
        free[freeCount++] = (int) number - firstIndex;
    }
}
