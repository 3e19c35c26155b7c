package io.kvasir.router;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The open bookings of one router, by number. Any thread may call any method; none waits or
 * allocates.
 *
 * <p>A booking's number is its place in the table and how often the place has been given out:
 * {@code [generation:32 | place:32]}. A place's word is {@code [generation:62 | phase:2]}; every
 * step is a compare-and-set of that word, so a late or repeated step of an old number finds another
 * generation and does nothing. Free places are a stack linked through {@code next}; its head
 * carries a counter, so that a place which was taken and given back meanwhile is not taken for
 * unchanged.
 */
final class LeaseTable {
    /** The number of no booking. */
    static final long NONE = 0;

    private static final int PHASE_BITS = 2;
    private static final long PHASE_MASK = (1 << PHASE_BITS) - 1;
    private static final long FREE = 0;
    private static final long PREFILL = 1;
    private static final long DECODE = 2;
    private static final long PLACE_MASK = 0xFFFFFFFFL;

    private final AtomicLongArray words;
    private final AtomicIntegerArray next; // place + 1 of the next free one, 0 at the end
    private final AtomicLong head; // [counter:32 | place + 1:32]

    LeaseTable(int capacity) {
        words = new AtomicLongArray(capacity);
        next = new AtomicIntegerArray(capacity);
        for (int place = 0; place < capacity - 1; place++) {
            next.set(place, place + 2);
        }
        head = new AtomicLong(1);
    }

    /**
     * Opens a booking.
     *
     * @return its number; {@link #NONE} when all places are taken
     */
    long open() {
        final int place = pop();
        if (place < 0) {
            return NONE;
        }
        final long generation = ((words.getPlain(place) >>> PHASE_BITS) + 1) & PLACE_MASK;
        // 0 is left out: no number is NONE
        final long used = generation == 0 ? 1 : generation;
        words.setRelease(place, used << PHASE_BITS | PREFILL);
        return used << Integer.SIZE | place;
    }

    boolean isOpen(long number) {
        if (number == NONE) {
            return false;
        }
        final long word = words.getAcquire(place(number));
        return word >>> PHASE_BITS == number >>> Integer.SIZE && (word & PHASE_MASK) != FREE;
    }

    /** Notes that a booking's prompt is computed; false if it is not being prefilled any more. */
    boolean startDecode(long number) {
        final long word = number >>> Integer.SIZE << PHASE_BITS;
        return words.compareAndSet(place(number), word | PREFILL, word | DECODE);
    }

    /** Ends a booking; false if it has ended before. The place is kept until {@link #recycle}. */
    boolean close(long number) {
        final int place = place(number);
        final long free = number >>> Integer.SIZE << PHASE_BITS;
        while (true) {
            final long word = words.getAcquire(place);
            if ((word & ~PHASE_MASK) != free || (word & PHASE_MASK) == FREE) {
                return false;
            }
            if (words.compareAndSet(place, word, free)) {
                return true;
            }
        }
    }

    /** Gives a closed booking's place to the next one. */
    void recycle(long number) {
        final int place = place(number);
        while (true) {
            final long top = head.get();
            next.setPlain(place, (int) top);
            if (head.compareAndSet(top, counted(top) | (place + 1))) {
                return;
            }
        }
    }

    /** Ends a booking that nothing is kept of elsewhere, unless it has ended before. */
    void end(long number) {
        if (close(number)) {
            recycle(number);
        }
    }

    /** Counts the open bookings; O(capacity). */
    int count() {
        int open = 0;
        for (int place = 0; place < words.length(); place++) {
            open += (words.getAcquire(place) & PHASE_MASK) == FREE ? 0 : 1;
        }
        return open;
    }

    private int pop() {
        while (true) {
            final long top = head.get();
            final int place = (int) top - 1;
            if (place < 0) {
                return place;
            }
            // may be stale if another thread takes the place now: then the head has changed
            final long after = next.getPlain(place) & PLACE_MASK;
            if (head.compareAndSet(top, counted(top) | after)) {
                return place;
            }
        }
    }

    private static long counted(long top) {
        return ((top >>> Integer.SIZE) + 1) << Integer.SIZE;
    }

    private static int place(long number) {
        return (int) number;
    }
}
