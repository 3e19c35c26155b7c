package io.kvasir.pipeline.booking;

import static io.kvasir.pipeline.booking.Booking.BOOKED;
import static io.kvasir.pipeline.booking.Booking.DECODE;
import static io.kvasir.pipeline.booking.Booking.GENERATION_MASK;
import static io.kvasir.pipeline.booking.Booking.MAX_OUTPUT;
import static io.kvasir.pipeline.booking.Booking.OPEN;
import static io.kvasir.pipeline.booking.Booking.OUTPUT_MASK;
import static io.kvasir.pipeline.booking.Booking.OUTPUT_SHIFT;
import static io.kvasir.pipeline.booking.Booking.PREDICTED;
import static io.kvasir.pipeline.booking.Booking.QUEUED;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The bookings of one pipeline by number, and what is still to be done to each. Any thread may call
 * the methods that are not marked as the writer's; none waits or allocates.
 *
 * <p>A booking's number is its entry and how often the entry has been given out: {@code
 * [generation:32 | index:32]}. A late or repeated step of an old number finds another generation
 * and does nothing. The same number names the request in the table of active requests, whose entry
 * has the same index: an index is given out again only after that entry is free.
 *
 * <p>An entry is at most once in the ring: what is to be done stands in its word ({@link Booking}),
 * and a ring record only says that the writer has to look. A booking that ends before the writer
 * has seen it is taken back by the thread that ends it; one that the writer has booked, or has to
 * see for a prediction, keeps its entry until the writer has ended it. So there are more entries
 * than bookings that may be open.
 *
 * <p>Free entries are a stack linked through {@link Booking#next}; its head carries a counter, so
 * that an entry which was taken and given back meanwhile is not taken for unchanged.
 */
final class BookingTable {
    /** What a step asks of the thread that took it. */
    enum Outcome {
        /** Nothing: the booking has ended before, or the step was taken already. */
        LATE,
        /** Nothing: a record of the entry is on its way. */
        RECORDED,
        /** Publish a record of the entry. */
        PUBLISH,
        /** The booking ended unseen by the writer: take its load back, then recycle. */
        WITHDRAWN
    }

    private final Booking[] bookings;
    private final int maxOpen;
    private final AtomicInteger open = new AtomicInteger();
    private final AtomicLong head = new AtomicLong(1); // [counter:32 | index + 1:32]

    /**
     * @param maxOpen bookings that may be open at the same time
     * @param entries {@code maxOpen} or more
     */
    BookingTable(int maxOpen, int entries) {
        this.maxOpen = maxOpen;
        bookings = new Booking[entries];
        for (int index = 0; index < entries; index++) {
            bookings[index] = new Booking();
            bookings[index].next = index + 1 < entries ? index + 2 : 0;
        }
    }

    /**
     * Takes an entry for a new booking.
     *
     * @return its index; -1 if as many are open as may be, or all others wait for the writer
     */
    int take() {
        if (open.incrementAndGet() > maxOpen) {
            open.decrementAndGet();
            return -1;
        }
        final int index = pop();
        if (index < 0) {
            open.decrementAndGet();
        }
        return index;
    }

    private int pop() {
        while (true) {
            final long top = head.get();
            final int index = (int) top - 1;
            if (index < 0) {
                return index;
            }
            // plain read: stale if another thread takes the entry now; then that thread has moved
            // the head, whose counter makes the compare-and-set below fail
            final int after = bookings[index].next;
            if (head.compareAndSet(top, counted(top) | after)) {
                return index;
            }
        }
    }

    Booking at(int index) {
        return bookings[index];
    }

    /** Number of the next booking of an entry that the caller has taken. */
    long nextNumber(int index) {
        final long generation = (bookings[index].wordAcquire() >>> Integer.SIZE) + 1;
        // 0 is left out: no number is NONE
        final long used = (int) generation == 0 ? 1 : generation;
        return used << Integer.SIZE | index;
    }

    /** Opens a booking whose entry is filled; never {@link Outcome#LATE}. */
    Outcome open(long number, boolean predicted) {
        final Booking booking = at((int) number);
        final long to = (number & GENERATION_MASK) | OPEN | QUEUED | (predicted ? PREDICTED : 0);
        while (true) {
            final long word = booking.wordAcquire();
            if (booking.changeWord(word, to)) {
                return Booking.is(word, QUEUED) ? Outcome.RECORDED : Outcome.PUBLISH;
            }
        }
    }

    boolean isOpen(long number) {
        return isOpen(at((int) number).wordAcquire(), number);
    }

    /** Whether a booking is open and its prompt not computed. */
    boolean isPrefilling(long number) {
        final int index = (int) number;
        if (index < 0 || index >= bookings.length) {
            return false; // no number of a booking
        }
        final long word = at(index).wordAcquire();
        return isOpen(word, number) && !Booking.is(word, DECODE);
    }

    private static boolean isOpen(long word, long number) {
        return isOf(word, number) && Booking.is(word, OPEN);
    }

    private static boolean isOf(long word, long number) {
        return word >>> Integer.SIZE == number >>> Integer.SIZE;
    }

    /** Records that a booking's prompt is computed. */
    Outcome startDecode(long number) {
        final Booking booking = at((int) number);
        while (true) {
            final long word = booking.wordAcquire();
            if (!isOpen(word, number) || Booking.is(word, DECODE)) {
                return Outcome.LATE;
            }
            if (booking.changeWord(word, word | DECODE | QUEUED)) {
                return Booking.is(word, QUEUED) ? Outcome.RECORDED : Outcome.PUBLISH;
            }
        }
    }

    /** Records that a booking's output has filled more blocks. */
    Outcome addOutput(long number, int blocks) {
        final Booking booking = at((int) number);
        while (true) {
            final long word = booking.wordAcquire();
            if (!isOpen(word, number)) {
                return Outcome.LATE;
            }
            final long sum = Math.min(MAX_OUTPUT, (long) Booking.outputBlocks(word) + blocks);
            final long to = (word & ~OUTPUT_MASK) | sum << OUTPUT_SHIFT | QUEUED;
            if (booking.changeWord(word, to)) {
                return Booking.is(word, QUEUED) ? Outcome.RECORDED : Outcome.PUBLISH;
            }
        }
    }

    /** Ends a booking. */
    Outcome end(long number) {
        final Booking booking = at((int) number);
        while (true) {
            final long word = booking.wordAcquire();
            if (!isOpen(word, number)) {
                return Outcome.LATE;
            }
            if (Booking.is(word, BOOKED)) {
                if (booking.changeWord(word, (word & ~OPEN) | QUEUED)) {
                    open.decrementAndGet();
                    return Booking.is(word, QUEUED) ? Outcome.RECORDED : Outcome.PUBLISH;
                }
            } else if (Booking.is(word, PREDICTED)) {
                if (booking.changeWord(word, word & ~OPEN)) {
                    open.decrementAndGet();
                    return Outcome.RECORDED;
                }
            } else if (booking.changeWord(word, word & (GENERATION_MASK | QUEUED))) {
                open.decrementAndGet();
                return Outcome.WITHDRAWN;
            }
        }
    }

    /** Ends a booking that has left the table of active requests. Writer thread. */
    void endBooked(long number) {
        final Booking booking = at((int) number);
        while (true) {
            final long word = booking.wordAcquire();
            if (!isOf(word, number) || !Booking.is(word, BOOKED)) {
                return;
            }
            if (booking.changeWord(word, word & (GENERATION_MASK | QUEUED))) {
                if (Booking.is(word, OPEN)) {
                    open.decrementAndGet();
                }
                recycle((int) number);
                return;
            }
        }
    }

    /** Gives an ended booking's entry to the next one. */
    void recycle(int index) {
        while (true) {
            final long top = head.get();
            bookings[index].next = (int) top;
            if (head.compareAndSet(top, counted(top) | (index + 1))) {
                return;
            }
        }
    }

    /** Takes over what the writer will not book; false if it has changed. Writer thread. */
    boolean dismiss(int index, long word) {
        final boolean taken = at(index).changeWord(word, word & GENERATION_MASK);
        if (taken && Booking.is(word, OPEN)) {
            open.decrementAndGet();
        }
        return taken;
    }

    /** Open bookings. */
    int openCount() {
        return open.get();
    }

    boolean isFull() {
        return open.get() >= maxOpen || (int) head.get() == 0;
    }

    private static long counted(long top) {
        return ((top >>> Integer.SIZE) + 1) << Integer.SIZE;
    }
}
