package io.kvasir.core.memory;

import io.kvasir.core.closing.Closing;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * Keeps off-heap memory as long as a thread may be reading or writing it: a thread that enters
 * before {@link #close} keeps the memory until it exits, a later one is refused, and the last exit
 * gives the memory back.
 *
 * <p>Entering and exiting are one atomic addition each, to a counter that few threads share; no
 * lock, no allocation, no wait. A thread that stays inside for long delays only the return of the
 * memory, not {@code close}. Structures that are used together share one gate, so that a caller
 * enters once for all of them.
 *
 * <pre>
 *   counts, one lane each 128 bytes:  | unused | inside, lane 0 | inside, lane 1 | ...
 *   enter:  lane + 1, then read closed      exit:  lane - 1, then read closed
 *   close:  closed = true, then read every lane
 * </pre>
 *
 * <p>All of these are volatile, so they have one order: either the addition of an entering thread
 * comes before {@code close} reads the lane, which finds it not empty; or {@code closed} is set
 * before the thread reads it, and it leaves again. A lane never falls below 0, because a thread
 * leaves by the lane it came in; so a lane with a thread inside is never read as 0. Each exit of a
 * closed gate reads the lanes again, and the last one finds all of them 0.
 *
 * <p>All methods may be called by any thread.
 */
public final class MemoryGate implements AutoCloseable {
    /** Answer of {@link #enter()} when the gate is closed. */
    public static final int CLOSED = -1;

    private static final VarHandle COUNT =
            MethodHandles.arrayElementVarHandle(long[].class).withInvokeExactBehavior();

    private static final int LANE_LONGS = 16;
    private static final int MAX_LANES = 64;
    private static final int LANE_BITS =
            Integer.SIZE
                    - Integer.numberOfLeadingZeros(
                            Math.min(MAX_LANES, 2 * Runtime.getRuntime().availableProcessors())
                                    - 1);

    private final String name;
    private final long[] counts = new long[((1 << LANE_BITS) + 1) * LANE_LONGS];
    private final Deque<AutoCloseable> owned = new ArrayDeque<>(); // last first
    private volatile boolean closed;
    private boolean released; // guarded by owned

    /**
     * Makes an open gate that owns nothing.
     *
     * @param name of what it protects, for the exception: "the router"
     */
    public MemoryGate(String name) {
        this.name = name;
    }

    /**
     * Gives this gate memory to keep.
     *
     * @param memory closed when the gate is closed and the last thread has left
     * @return the same
     * @throws ClosedException if the gate is closed; the memory is closed then
     */
    public <T extends AutoCloseable> T own(T memory) {
        synchronized (owned) {
            if (!closed) {
                owned.push(memory);
                return memory;
            }
        }
        Closing.all(memory);
        throw new ClosedException(name);
    }

    /**
     * Enters: until {@link #exit} the memory stays.
     *
     * @return what {@code exit} must be given, 0 or more; or {@link #CLOSED}
     */
    public int enter() {
        if (closed) {
            return CLOSED;
        }
        final int lane = lane();
        // volatile, before closed is read: releaseIfEmpty reads this lane after closed was set
        final long before = (long) COUNT.getAndAdd(counts, lane, 1L);
        if (!closed) {
            assert before >= 0 : "more exits than entries: " + name;
            return lane;
        }
        exit(lane);
        return CLOSED;
    }

    /**
     * Enters as {@link #enter} does.
     *
     * @return what {@link #exit} must be given
     * @throws ClosedException if the gate is closed
     */
    public int enterOrThrow() {
        final int lane = enter();
        if (lane == CLOSED) {
            throw new ClosedException(name);
        }
        return lane;
    }

    /**
     * Leaves; may be called by another thread than entered. The last one out of a closed gate gives
     * the memory back.
     *
     * @param lane what entering has answered, not {@link #CLOSED}
     */
    public void exit(int lane) {
        // volatile: accesses of this thread come before the release that reads the lane as 0
        final long before = (long) COUNT.getAndAdd(counts, lane, -1L);
        assert before > 0 : "more exits than entries: " + name;
        if (closed) {
            releaseIfEmpty();
        }
    }

    private static int lane() {
        final long spread = FibonacciHash.spread(Thread.currentThread().threadId());
        return LANE_LONGS * (1 + (int) (spread >>> (Long.SIZE - LANE_BITS)));
    }

    /** Whether every further entry is refused. */
    public boolean isClosed() {
        return closed;
    }

    /** Whether the memory has been given back. */
    public boolean isReleased() {
        synchronized (owned) {
            return released;
        }
    }

    /**
     * Refuses every later entry, and gives the memory back when no thread is inside any more: at
     * once, or at the last exit. Never waits; a second call does nothing.
     */
    @Override
    public void close() {
        closed = true;
        releaseIfEmpty();
    }

    private void releaseIfEmpty() {
        for (int lane = LANE_LONGS; lane < counts.length; lane += LANE_LONGS) {
            if ((long) COUNT.getVolatile(counts, lane) != 0) {
                return;
            }
        }
        synchronized (owned) {
            released = true;
            final List<AutoCloseable> all = List.copyOf(owned);
            owned.clear();
            Closing.all(all);
        }
    }
}
