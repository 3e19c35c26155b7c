package io.kvasir.core.load;

import static io.kvasir.core.memory.SlotLists.NO_ENTRY;

import io.kvasir.core.memory.OffHeap;

/**
 * Requests by deadline: eight wheels of 64 buckets, each bucket a list through the requests. Writer
 * thread only; time comes from the caller.
 *
 * <p>A tick is 2^20 ns. The lowest wheel has one bucket for each of the 64 ticks around the time
 * reached, every wheel above one for 64 buckets of the one below; together they span all times. A
 * request hangs in the lowest wheel that tells its tick from the time reached, and moves to a lower
 * one when that time comes: adding and removing cost O(1), a deadline at most seven moves in its
 * life, an empty stretch of time nothing.
 *
 * <pre>
 *   tick     [ 0:4 | 0:14 | wheel 7 … wheel 0: 6 bits each ] = (deadline >> 20) + 2^43
 *   memory   one int for each bucket: first request, 0 = none
 * </pre>
 *
 * @see <a href="https://doi.org/10.1145/41457.37504">Varghese and Lauck 1987</a>, scheme 7
 */
final class DeadlineWheel implements AutoCloseable {
    private static final int TICK_BITS = 20;
    private static final long TICKS_BEFORE_ZERO = 1L << (Long.SIZE - 1 - TICK_BITS);
    private static final int WHEELS = 8;
    private static final int WHEEL_BITS = 6;
    private static final int WHEEL_MASK = (1 << WHEEL_BITS) - 1;

    private final OffHeap memory;
    private final OffHeap heads;
    private final long[] occupied = new long[WHEELS];
    private long reached;

    /**
     * @param memory of the requests, which the wheel threads its lists through; not closed by it
     */
    DeadlineWheel(OffHeap memory) {
        this.memory = memory;
        this.heads = OffHeap.allocate((long) (WHEELS << WHEEL_BITS) * Integer.BYTES);
    }

    /** Adds a request that is not in the wheel. */
    void add(int entry, long deadlineNs) {
        memory.putLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.DEADLINE_OFFSET,
                deadlineNs);
        hang(entry, deadlineNs);
    }

    /** Takes a request out, if it is in. */
    void remove(int entry) {
        final long offset = RequestDescriptor.entryOffset(entry);
        final int bucket = memory.getShort(offset + RequestDescriptor.TIMER_OFFSET) - 1;
        if (bucket < 0) {
            return;
        }
        memory.putShort(offset + RequestDescriptor.TIMER_OFFSET, (short) 0);
        final int next = memory.getInt(offset + RequestDescriptor.TIMER_NEXT_OFFSET);
        final int previous = memory.getInt(offset + RequestDescriptor.TIMER_PREVIOUS_OFFSET);
        if (next != NO_ENTRY) {
            memory.putInt(
                    RequestDescriptor.entryOffset(next) + RequestDescriptor.TIMER_PREVIOUS_OFFSET,
                    previous);
        }
        if (previous != NO_ENTRY) {
            memory.putInt(
                    RequestDescriptor.entryOffset(previous) + RequestDescriptor.TIMER_NEXT_OFFSET,
                    next);
            return;
        }
        head(bucket, next);
    }

    /**
     * Finds a request whose deadline's tick is over; it stays in. Times before one asked for
     * earlier count as that one.
     *
     * @return the request, or {@link io.kvasir.core.memory.SlotLists#NO_ENTRY} when none is due
     *     (any more)
     */
    int due(long nowNs) {
        final long now = tick(nowNs);
        while (true) {
            final int wheel = lowestOccupied();
            if (wheel == WHEELS) {
                break;
            }
            final int shift = wheel * WHEEL_BITS;
            // nothing hangs in a bucket before the one that the time reached is in
            final int bucket = Long.numberOfTrailingZeros(occupied[wheel]);
            final long start =
                    reached >>> (shift + WHEEL_BITS) << (shift + WHEEL_BITS)
                            | (long) bucket << shift;
            if (start > now || (wheel == 0 && start == now)) {
                break; // what hangs in a tick is due when the tick is over
            }
            reached = Math.max(reached, start);
            final int first = first(wheel << WHEEL_BITS | bucket);
            if (wheel == 0) {
                return first;
            }
            moveDown(first);
        }
        reached = Math.max(reached, now);
        return NO_ENTRY;
    }

    private int lowestOccupied() {
        int wheel = 0;
        while (wheel < WHEELS && occupied[wheel] == 0) {
            wheel++;
        }
        return wheel;
    }

    private void moveDown(int first) {
        for (int entry = first; entry != NO_ENTRY; ) {
            final int next = next(entry);
            remove(entry);
            hang(entry, deadline(entry));
            entry = next;
        }
    }

    private void hang(int entry, long deadlineNs) {
        final long tick = Math.max(tick(deadlineNs), reached);
        final int wheel =
                (Long.SIZE - 1 - Long.numberOfLeadingZeros((tick ^ reached) | WHEEL_MASK))
                        / WHEEL_BITS;
        final int bucket =
                wheel << WHEEL_BITS | ((int) (tick >>> (wheel * WHEEL_BITS)) & WHEEL_MASK);
        final long offset = RequestDescriptor.entryOffset(entry);
        final int next = first(bucket);
        memory.putShort(offset + RequestDescriptor.TIMER_OFFSET, (short) (bucket + 1));
        memory.putInt(offset + RequestDescriptor.TIMER_NEXT_OFFSET, next);
        memory.putInt(offset + RequestDescriptor.TIMER_PREVIOUS_OFFSET, NO_ENTRY);
        if (next != NO_ENTRY) {
            memory.putInt(
                    RequestDescriptor.entryOffset(next) + RequestDescriptor.TIMER_PREVIOUS_OFFSET,
                    entry);
        }
        head(bucket, entry);
    }

    private void head(int bucket, int entry) {
        heads.putInt((long) bucket * Integer.BYTES, entry);
        final long bit = 1L << bucket; // of its wheel: the shift takes the lowest six bits
        final int wheel = bucket >>> WHEEL_BITS;
        occupied[wheel] = entry == NO_ENTRY ? occupied[wheel] & ~bit : occupied[wheel] | bit;
    }

    private int first(int bucket) {
        return heads.getInt((long) bucket * Integer.BYTES);
    }

    private int next(int entry) {
        return memory.getInt(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.TIMER_NEXT_OFFSET);
    }

    private long deadline(int entry) {
        return memory.getLong(
                RequestDescriptor.entryOffset(entry) + RequestDescriptor.DEADLINE_OFFSET);
    }

    private static long tick(long timeNs) {
        return (timeNs >> TICK_BITS) + TICKS_BEFORE_ZERO;
    }

    long bytes() {
        return heads.length();
    }

    @Override
    public void close() {
        heads.close();
    }
}
