package io.kvasir.pipeline.ring;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.WaitStrategy;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * Parks the one thread that waits, once it has spun, yielded and slept for as often as it is to.
 * Publishing takes no lock: it reads one word, and wakes the thread where it is parked, by one of
 * the publishers.
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

    private final int yields;
    private final int sleeps;
    private final long sleepNs;
    private volatile Thread waiter; // null where nothing has to be woken

    ParkingWait(int yields, int sleeps, long sleepNs) {
        this.yields = yields;
        this.sleeps = sleeps;
        this.sleepNs = sleepNs;
    }

    @Override
    @SuppressWarnings("ThreadPriorityCheck") // a yield gives the core to publishers; none is needed
    public long waitFor(long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
            throws AlertException, InterruptedException {
        final int parks = SPINS + yields + sleeps;
        long available = dependent.get();
        for (int tries = 0; available < sequence; tries = Math.min(tries + 1, parks)) {
            barrier.checkAlert();
            if (tries < SPINS) {
                Thread.onSpinWait();
            } else if (tries < SPINS + yields) {
                Thread.yield();
            } else if (tries < parks) {
                LockSupport.parkNanos(this, sleepNs);
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
