package io.kvasir.pipeline.booking;

import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Bounded room for the block hashes of bookings on their way to the writer: chunks of {@value
 * #CHUNK_HASHES} hashes, chained where a prompt has more. Any thread; none waits or allocates. The
 * chunk given back last is taken first, so that what is used stays in the caches.
 *
 * <p>Free chunks are a stack linked through {@code next}; its head carries a counter, so that a
 * chunk which was taken and given back meanwhile is not taken for unchanged. A chain is taken whole
 * by one step of the head.
 */
final class HashPool {
    /** No chunk. */
    static final int NONE = -1;

    static final int CHUNK_HASHES = 64;

    private final long[] hashes;
    private final AtomicIntegerArray next; // chunk + 1 of the one after it, 0 at the end
    private final AtomicLong head; // [counter:32 | chunk + 1:32]

    /** Makes room for so many hashes, rounded up to chunks. */
    HashPool(int capacity) {
        final int chunks = chunks(capacity);
        hashes = new long[chunks * CHUNK_HASHES];
        next = new AtomicIntegerArray(chunks);
        for (int chunk = 0; chunk < chunks - 1; chunk++) {
            next.setPlain(chunk, chunk + 2);
        }
        head = new AtomicLong(chunks == 0 ? 0 : 1);
    }

    /**
     * Copies hashes into chunks.
     *
     * @param count 1 or more
     * @return the first chunk; {@link #NONE} if there is no room for all of them
     */
    int take(long[] from, int count) {
        while (true) {
            final long top = head.get();
            final int last = after((int) top, chunks(count) - 1);
            if (last == 0) {
                if (head.get() == top) {
                    return NONE;
                }
                continue; // another thread has taken a part of the chain that was walked
            }
            // `next` is read without order and may be stale; then another thread has moved the
            // head, its counter differs, and the compare-and-set fails
            if (head.compareAndSet(top, counted(top) | next.getPlain(last - 1))) {
                final int first = (int) top - 1;
                fill(first, from, count);
                return first;
            }
        }
    }

    /** Chunk + 1 that is so many after another; 0 beyond the end. */
    private int after(int link, int steps) {
        int at = link;
        for (int i = 0; i < steps && at != 0; i++) {
            at = next.getPlain(at - 1);
        }
        return at;
    }

    private void fill(int first, long[] from, int count) {
        int chunk = first;
        for (int done = 0; done < count; done += CHUNK_HASHES) {
            System.arraycopy(
                    from, done, hashes, chunk * CHUNK_HASHES, Math.min(CHUNK_HASHES, count - done));
            chunk = next.getPlain(chunk) - 1;
        }
    }

    /**
     * Copies hashes out of a chain. A chain that is given back during the copy yields undefined
     * values: the caller verifies by the word of the booking, which has changed then.
     *
     * @param out [count]
     */
    void copy(int first, int count, long[] out) {
        int chunk = first;
        for (int done = 0; done < count && chunk >= 0; done += CHUNK_HASHES) {
            System.arraycopy(
                    hashes, chunk * CHUNK_HASHES, out, done, Math.min(CHUNK_HASHES, count - done));
            chunk = next.getPlain(chunk) - 1;
        }
    }

    /** Gives a chain back that was taken for so many hashes; nothing for {@link #NONE}. */
    void give(int first, int count) {
        if (first == NONE) {
            return;
        }
        final int last = after(first + 1, chunks(count) - 1) - 1;
        while (true) {
            final long top = head.get();
            next.setPlain(last, (int) top);
            if (head.compareAndSet(top, counted(top) | (first + 1))) {
                return;
            }
        }
    }

    private static int chunks(int count) {
        return (count + CHUNK_HASHES - 1) / CHUNK_HASHES;
    }

    private static long counted(long top) {
        return ((top >>> Integer.SIZE) + 1) << Integer.SIZE;
    }
}
