package io.kvasir.pipeline.events;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.TimeoutException;
import com.lmax.disruptor.WaitStrategy;

import java.lang.invoke.VarHandle;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.BooleanSupplier;

/**
 * Messages to a ring's writer beside the ring: for the few that must get through when the ring is
 * full. The writer runs them between two events, and before it waits for more.
 *
 * <p>No message is left waiting. A caller puts a message, then publishes an empty ring record,
 * which wakes the writer. Where the ring has no room for one, the writer has records left to
 * consume: it publishes its sequence after them, passes a full fence, and runs the messages before
 * it waits; a caller whose claim was refused has read an older sequence, so its put comes before
 * that run.
 *
 * <p>{@link #put} is for any thread and never waits, {@link #run} for the writer.
 */
final class WriterMailbox {
    private final Queue<Runnable> messages = new ConcurrentLinkedQueue<>();

    /** Leaves a message, which must not throw. */
    void put(Runnable message) {
        messages.add(message);
    }

    /** Runs what has been left. */
    void run() {
        for (Runnable next = messages.poll(); next != null; next = messages.poll()) {
            next.run();
        }
    }

    /**
     * A way to wait that runs the messages first.
     *
     * @param work done as long as there is nothing to wait for less; false when there is none left.
     *     Whatever makes more of it leaves a message
     */
    WaitStrategy watchedBy(WaitStrategy strategy, BooleanSupplier work) {
        return new WaitStrategy() {
            @Override
            public long waitFor(
                    long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
                    throws AlertException, InterruptedException, TimeoutException {
                // full fence: the store of the writer's sequence, made by its loop before this
                // call, comes before the read of the queue. A caller does the reverse: it adds to
                // the queue, then reads that sequence to claim a record. One of the two sees the
                // other
                VarHandle.fullFence();
                run();
                while (dependent.get() < sequence && work.getAsBoolean()) {
                    barrier.checkAlert();
                    run();
                }
                return strategy.waitFor(sequence, cursor, dependent, barrier);
            }

            @Override
            public void signalAllWhenBlocking() {
                strategy.signalAllWhenBlocking();
            }
        };
    }
}
