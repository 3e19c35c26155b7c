package io.kvasir.nixl.engine;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A bounded queue from many threads to one, without locks or allocation. A producer claims a
 * position by moving the tail, then fills it; the consumer waits at a position that is claimed and
 * not yet filled. Closing marks the tail, so that whatever claimed a position before is seen by
 * {@link #drain} and nothing comes after it. (Agrona has the same without an end, but for memory
 * access that needs the JDK opened.)
 */
final class SubmissionQueue<T> {
    private static final long CLOSED = Long.MIN_VALUE;

    private final AtomicReferenceArray<T> elements;
    private final int capacity;
    private final int mask;
    private final AtomicLong tail = new AtomicLong();
    private final AtomicLong head = new AtomicLong();

    SubmissionQueue(int capacity) {
        this.capacity = capacity;
        final int length = Math.max(1, Integer.highestOneBit(2 * capacity - 1));
        mask = length - 1;
        elements = new AtomicReferenceArray<>(length);
    }

    /** Adds at the end; false when it is full or closed. Any thread. */
    boolean offer(T element) {
        long position;
        do {
            position = tail.get();
            if (position < 0 || position - head.get() >= capacity) {
                return false;
            }
        } while (!tail.compareAndSet(position, position + 1));
        elements.setRelease((int) position & mask, element);
        return true;
    }

    /** Takes the first; null when there is none. The one consumer. */
    T poll() {
        final long position = head.getPlain();
        final T element = elements.getAcquire((int) position & mask);
        if (element != null) {
            elements.setPlain((int) position & mask, null);
            // publishes the null: a producer that acquires this head may fill the element again
            head.setRelease(position + 1);
        }
        return element;
    }

    /** Takes nothing in any more. Any thread; idempotent. */
    void close() {
        tail.getAndUpdate(position -> position | CLOSED);
    }

    boolean isClosed() {
        return tail.get() < 0;
    }

    /**
     * Takes the first of a closed queue, and waits for it where its producer has claimed a position
     * only; null when there will never be another. The one consumer.
     */
    T drain() {
        if (head.getPlain() == (tail.get() & ~CLOSED)) {
            return null;
        }
        T element = poll();
        while (element == null) {
            Thread.onSpinWait();
            element = poll();
        }
        return element;
    }
}
