package io.kvasir.pipeline.ring;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.WaitStrategy;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * Parks the one thread that waits. Publishing takes no lock: it reads one word, and wakes the
 * thread where it is parked, by one of the publishers.
 *
 * <p>No wake-up is lost: the waiter stores itself and then reads the sequence and the alert; a
 * publisher stores the sequence (an end the alert) and then reads the waiter. A full fence lies
 * between the two on each side, so at least one sees what the other has stored.
 */
final class ParkingWait implements WaitStrategy {
    private static final int SPINS = 100;
    private static final VarHandle WAITER;

    static {
        try {
            WAITER =
                    MethodHandles.lookup()
                            .findVarHandle(ParkingWait.class, "waiter", Thread.class)
                            .withInvokeExactBehavior();
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile Thread waiter; // null where nothing has to be woken

    @Override
    public long waitFor(long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
            throws AlertException, InterruptedException {
        int spins = SPINS;
        long available = dependent.get();
        while (available < sequence) {
            barrier.checkAlert();
            if (spins > 0) {
                spins--;
                Thread.onSpinWait();
            } else {
                park(sequence, dependent, barrier);
            }
            available = dependent.get();
        }
        return available;
    }

    private void park(long sequence, Sequence dependent, SequenceBarrier barrier)
            throws AlertException, InterruptedException {
        waiter = Thread.currentThread();
        try {
            // full fence: the store of `waiter` above comes before the reads of the alert and the
            // sequence below; pairs with the fence in signalAllWhenBlocking
            VarHandle.fullFence();
            barrier.checkAlert();
            if (dependent.get() < sequence) {
                LockSupport.park(this);
            }
        } finally {
            waiter = null;
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    @Override
    public void signalAllWhenBlocking() {
        // full fence: the publisher's store of the sequence (or of the alert) comes before the read
        // of `waiter`; if that is null, the waiter reads the new sequence and does not park
        VarHandle.fullFence();
        final Thread parked = waiter;
        if (parked != null && WAITER.compareAndSet(this, parked, (Thread) null)) {
            LockSupport.unpark(parked);
        }
    }
}
