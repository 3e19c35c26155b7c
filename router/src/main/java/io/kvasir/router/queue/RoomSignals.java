package io.kvasir.router.queue;

import io.kvasir.core.load.RoomListener;

import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;

/**
 * Worker slots that may have room, one bit each, set by any thread and taken by that of the queue.
 * Setting one allocates nothing and takes no lock.
 */
final class RoomSignals implements RoomListener {
    private final AtomicLongArray bits;
    private final BooleanSupplier isAwaited;
    private final Runnable wake;

    /**
     * @param isAwaited whether anything waits, which is counted before it searches for room itself
     * @param wake called by the thread that sets a bit, if so
     */
    RoomSignals(int slots, BooleanSupplier isAwaited, Runnable wake) {
        bits = new AtomicLongArray(Math.ceilDiv(slots, Long.SIZE));
        this.isAwaited = isAwaited;
        this.wake = wake;
    }

    @Override
    public void roomMayBe(int slot) {
        VarHandle.fullFence(); // the change, then the count; a waiting request is counted, then
        // reads the load
        if (isAwaited.getAsBoolean()) {
            set(slot);
            wake.run();
        }
    }

    /** Has a slot be among the next that are taken. */
    void set(int slot) {
        final long bit = 1L << slot;
        if ((bits.get(slot / Long.SIZE) & bit) == 0) {
            bits.accumulateAndGet(slot / Long.SIZE, bit, RoomSignals::or);
        }
    }

    private static long or(long all, long bit) {
        return all | bit;
    }

    /** Takes all that are set. */
    void take(IntConsumer slots) {
        for (int i = 0; i < bits.length(); i++) {
            if (bits.get(i) != 0) {
                for (long rest = bits.getAndSet(i, 0); rest != 0; rest &= rest - 1) {
                    slots.accept(i * Long.SIZE + Long.numberOfTrailingZeros(rest));
                }
            }
        }
    }
}
