package io.kvasir.pipeline.events;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.TimeoutException;
import com.lmax.disruptor.WaitStrategy;

import java.lang.invoke.VarHandle;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Messages to a ring's writer beside the ring: for the few that must get through when the ring is
 * full. The writer runs them between two events, and before it waits for more. Whoever puts one
 * wakes a waiting writer by an empty ring record; where the ring has no room for that, the writer
 * has yet to publish how far it is, and looks here after it has.
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

    /** A way to wait that looks into this box first. */
    WaitStrategy watchedBy(WaitStrategy strategy) {
        return new WaitStrategy() {
            @Override
            public long waitFor(
                    long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
                    throws AlertException, InterruptedException, TimeoutException {
                // the writer's own sequence is published before the box is looked at
                VarHandle.fullFence();
                run();
                return strategy.waitFor(sequence, cursor, dependent, barrier);
            }

            @Override
            public void signalAllWhenBlocking() {
                strategy.signalAllWhenBlocking();
            }
        };
    }
}
