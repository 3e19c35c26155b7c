package io.kvasir.router;

import io.kvasir.core.closing.Uninterrupted;
import io.kvasir.core.memory.ClosedException;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which worker slots are free, in use, or being swept after their worker was removed. Any thread.
 */
final class WorkerSlots {
    private static final long NS_PER_MS = 1_000_000;

    private final int count;
    private final BitSet taken = new BitSet(); // in use or being swept; guarded by this
    private int swept; // of those that are taken: guarded by this
    private boolean closed; // guarded by this

    WorkerSlots(int count) {
        this.count = count;
    }

    int count() {
        return count;
    }

    /**
     * Takes the lowest free slot. Where there is none, but some are being swept, waits for one of
     * them, also in an interrupted thread.
     *
     * @param waitNs how long to wait at most
     * @return the slot; -1 if all are in use, or the wait has ended
     * @throws ClosedException once {@link #close} has been called
     */
    int take(long waitNs) {
        final long startNs = System.nanoTime();
        return Uninterrupted.call(() -> take(startNs, waitNs));
    }

    private synchronized int take(long startNs, long waitNs) throws InterruptedException {
        int slot = next();
        while (slot < 0 && swept > 0) {
            final long leftNs = waitNs - (System.nanoTime() - startNs);
            if (leftNs <= 0) {
                break;
            }
            wait(leftNs / NS_PER_MS, (int) (leftNs % NS_PER_MS));
            slot = next();
        }
        return slot;
    }

    private synchronized int next() {
        if (closed) {
            throw new ClosedException(RouterParts.NAME);
        }
        final int slot = taken.nextClearBit(0);
        if (slot >= count) {
            return -1;
        }
        taken.set(slot);
        return slot;
    }

    /** Takes a slot that has something of an earlier process. */
    synchronized void keep(int slot) {
        taken.set(slot);
    }

    /** Whether a slot can be taken at once, or soon. */
    synchronized boolean hasNext() {
        return swept > 0 || taken.nextClearBit(0) < count;
    }

    /** Gives back a slot that nothing has been written for. */
    synchronized void giveBack(int slot) {
        taken.clear(slot);
        notifyAll();
    }

    /**
     * Begins to sweep a slot.
     *
     * @param sweepers how many have to finish
     * @return what each of them calls when it has; the last call frees the slot
     */
    synchronized Runnable sweep(int slot, int sweepers) {
        swept++;
        final AtomicInteger left = new AtomicInteger(sweepers);
        return () -> {
            if (left.decrementAndGet() == 0) {
                free(slot);
            }
        };
    }

    private synchronized void free(int slot) {
        swept--;
        giveBack(slot);
    }

    /** Ends all waiting: no slot is given out any more. */
    synchronized void close() {
        closed = true;
        notifyAll();
    }
}
