package io.kvasir.pipeline.booking;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Records of the booking writer on their way to the thread that sends them to other routers: a ring
 * of words from one writer to one reader. Neither waits or allocates (the reader's record grows to
 * the longest); where a record does not fit, the oldest ones are dropped and counted.
 *
 * <pre>
 *   word 0   [ kind:8 | spare:24 | length in words:32 ]
 *   word 1   sequence
 *   word 2   booking
 *   word 3   [ slot generation:32 | slot:32 ]
 *   word 4   prefill tokens
 *   word 5   [ own blocks:32 | path blocks:32 ]
 *   word 6   items
 * </pre>
 *
 * <p>The reader copies a record first and then moves {@code head} over it by a compare-and-set; the
 * writer moves {@code head} over the oldest record in the same way before it overwrites it. So a
 * copy that was overwritten meanwhile is never believed: its compare-and-set fails, as positions
 * only grow.
 */
public final class ReplicaOutbox {
    private static final int HEADER_WORDS = 6;
    private static final int KIND_SHIFT = 56;
    private static final int MIN_WORDS = 64;
    private static final int USUAL_MIN_WORDS = 1 << 17;
    private static final int USUAL_MAX_WORDS = 1 << 22;
    private static final long WORDS_PER_REQUEST = 64;
    private static final VarHandle HEAD;
    private static final VarHandle TAIL;

    static {
        try {
            final MethodHandles.Lookup lookup = MethodHandles.lookup();
            HEAD =
                    lookup.findVarHandle(ReplicaOutbox.class, "head", long.class)
                            .withInvokeExactBehavior();
            TAIL =
                    lookup.findVarHandle(ReplicaOutbox.class, "tail", long.class)
                            .withInvokeExactBehavior();
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private final long[] words;
    private final int mask;
    private final AtomicLong dropped = new AtomicLong();

    @SuppressWarnings("UnusedVariable") // moved by both through HEAD
    private long head;

    private long tail; // published through TAIL by the writer, which reads it plainly

    private volatile Thread waiter; // null where nothing has to be woken

    /**
     * @param capacity words, a power of two
     */
    ReplicaOutbox(int capacity) {
        if (capacity < MIN_WORDS || Integer.bitCount(capacity) != 1) {
            throw new IllegalArgumentException(
                    "capacity=" + capacity + " is no power of two from " + MIN_WORDS);
        }
        words = new long[capacity];
        mask = capacity - 1;
    }

    /** One for a table of so many requests: 1 to 32 MiB, 64 words a request. */
    static ReplicaOutbox forRequests(int maxRequests) {
        return new ReplicaOutbox(
                (int)
                        Long.highestOneBit(
                                Math.clamp(
                                        WORDS_PER_REQUEST * maxRequests,
                                        USUAL_MIN_WORDS,
                                        USUAL_MAX_WORDS)));
    }

    /** Most items that a record can have. */
    int maxItems() {
        return words.length - HEADER_WORDS;
    }

    /** Adds a record; drops what is in its way. Writer thread. */
    void offer(
            ReplicaRecord.Kind kind,
            long sequence,
            long booking,
            int slot,
            int slotGeneration,
            long prefillTokens,
            int ownBlocks,
            int pathBlocks,
            long[] items,
            int count) {
        if (count > maxItems()) {
            dropped.getAndIncrement();
            return;
        }
        final int length = HEADER_WORDS + count;
        makeRoom(length);
        put(0, (long) kind.code << KIND_SHIFT | length);
        put(1, sequence);
        put(2, booking);
        put(3, (long) slotGeneration << Integer.SIZE | slot);
        put(4, prefillTokens);
        put(5, (long) ownBlocks << Integer.SIZE | pathBlocks);
        final int from = (int) (tail + HEADER_WORDS) & mask;
        final int first = Math.min(count, words.length - from);
        System.arraycopy(items, 0, words, from, first);
        System.arraycopy(items, first, words, 0, count - first);
        TAIL.setRelease(this, tail + length); // after the words: the reader acquires it before
    }

    private void put(int word, long value) {
        words[(int) (tail + word) & mask] = value;
    }

    private void makeRoom(int length) {
        while (true) {
            final long oldest = (long) HEAD.getAcquire(this);
            if (tail + length - oldest <= words.length) {
                return;
            }
            // this thread wrote the word, and nothing has overwritten it: head is not beyond it
            final int skipped = (int) words[(int) oldest & mask];
            if (HEAD.compareAndSet(this, oldest, oldest + skipped)) {
                dropped.getAndIncrement();
            } // else the reader has taken it
        }
    }

    /**
     * Takes the oldest record. One reader thread.
     *
     * @return false if there is none
     */
    public boolean poll(ReplicaRecord out) {
        while (true) {
            final long at = (long) HEAD.getAcquire(this);
            if (at == (long) TAIL.getAcquire(this)) {
                return false;
            }
            final long first = words[(int) at & mask];
            final int length = (int) first;
            // the writer may overwrite the record at any moment; then the lengths may be anything
            if (length >= HEADER_WORDS && length <= words.length) {
                copy(at, first, length - HEADER_WORDS, out);
            }
            if (HEAD.compareAndSet(this, at, at + length)) {
                return true;
            }
        }
    }

    private void copy(long at, long first, int count, ReplicaRecord out) {
        out.kind = (int) (first >>> KIND_SHIFT);
        out.sequence = words[(int) (at + 1) & mask];
        out.booking = words[(int) (at + 2) & mask];
        final long slot = words[(int) (at + 3) & mask];
        out.slot = (int) slot;
        out.slotGeneration = (int) (slot >>> Integer.SIZE);
        out.prefillTokens = words[(int) (at + 4) & mask];
        final long blocks = words[(int) (at + 5) & mask];
        out.ownBlocks = (int) (blocks >>> Integer.SIZE);
        out.pathBlocks = (int) blocks;
        if (out.items.length < count) {
            out.items = new long[Math.max(count, 2 * out.items.length)];
        }
        final int from = (int) (at + HEADER_WORDS) & mask;
        final int part = Math.min(count, words.length - from);
        System.arraycopy(words, from, out.items, 0, part);
        System.arraycopy(words, 0, out.items, part, count - part);
        out.itemCount = count;
    }

    /** Whether there is no record; any thread. */
    public boolean isEmpty() {
        return (long) HEAD.getAcquire(this) == (long) TAIL.getAcquire(this);
    }

    /** Share of the room that is in use, 0..1; any thread. */
    public double fill() {
        return (double) ((long) TAIL.getAcquire(this) - (long) HEAD.getAcquire(this))
                / words.length;
    }

    /** Records that were dropped; any thread. */
    public long dropped() {
        return dropped.get();
    }

    /**
     * Waits for a record, or for {@link #wake}. The reader thread.
     *
     * @param atMostNs how long at most
     * @param otherWork whether there is something else to do; stored before its owner calls wake
     */
    public void await(long atMostNs, BooleanSupplier otherWork) {
        waiter = Thread.currentThread();
        // full fence: `waiter` is stored before the outbox and `otherWork` are read; a caller that
        // brings work stores it, passes a fence and reads `waiter`: one of the two sees the other
        VarHandle.fullFence();
        if (isEmpty() && !otherWork.getAsBoolean()) {
            LockSupport.parkNanos(this, atMostNs);
        }
        waiter = null;
    }

    /** Ends a wait of the reader thread, if it waits; any thread. */
    public void wake() {
        VarHandle.fullFence(); // what the caller has stored comes before the read of `waiter`
        final Thread parked = waiter;
        if (parked != null) {
            LockSupport.unpark(parked);
        }
    }
}
