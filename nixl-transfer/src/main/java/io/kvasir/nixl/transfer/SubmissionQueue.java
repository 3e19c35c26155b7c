package io.kvasir.nixl.transfer;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A bounded queue from many threads to one, without locks or allocation. A producer claims a place
 * by moving the tail, then fills it; the consumer waits behind a place that is claimed and not yet
 * filled. (Agrona has the same, but for memory access that needs the JDK opened.)
 */
final class SubmissionQueue<T> {
    private final AtomicReferenceArray<T> places;
    private final int capacity;
    private final int mask;
    private final AtomicLong tail = new AtomicLong();
    private final AtomicLong head = new AtomicLong();

    SubmissionQueue(int capacity) {
        this.capacity = capacity;
        final int length = Math.max(1, Integer.highestOneBit(2 * capacity - 1));
        mask = length - 1;
        places = new AtomicReferenceArray<>(length);
    }

    /** Adds at the end; false when it is full. Any thread. */
    boolean offer(T element) {
        long place;
        do {
            place = tail.get();
            if (place - head.get() >= capacity) {
                return false;
            }
        } while (!tail.compareAndSet(place, place + 1));
        places.setRelease((int) place & mask, element);
        return true;
    }

    /** Takes the first; null when there is none. The one consumer. */
    T poll() {
        final long place = head.getPlain();
        final T element = places.getAcquire((int) place & mask);
        if (element != null) {
            places.setPlain((int) place & mask, null);
            head.setRelease(place + 1); // behind the null: nobody fills the place before
        }
        return element;
    }
}
