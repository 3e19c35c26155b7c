package io.kvasir.pipeline.ring;

import com.lmax.disruptor.dsl.Disruptor;

import io.kvasir.core.memory.WriterLane;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * The thread of one ring's writer. It keeps the memory that it writes from its making to its end,
 * however it ends; asked to stop, it ends at the next event boundary and leaves the rest of the
 * ring where it is.
 */
public final class WriterThread implements ThreadFactory {
    private static final Logger LOG = LoggerFactory.getLogger(WriterThread.class);
    private static final long END_TIMEOUT_MS = 1_000;

    private final String name;
    private final WriterLane[] lanes;
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile Thread thread;
    private volatile boolean stopping;
    private volatile boolean running = true;

    /**
     * Pins what the thread writes.
     *
     * @param name of the thread
     * @param lanes of what the thread writes; pinned from now on
     * @throws io.kvasir.core.memory.ClosedException if one is closed
     * @throws IllegalStateException if one has a writer thread already
     */
    public WriterThread(String name, WriterLane... lanes) {
        this.name = name;
        this.lanes = lanes;
        int pinned = 0;
        try {
            for (; pinned < lanes.length; pinned++) {
                lanes[pinned].pin();
            }
        } catch (RuntimeException e) {
            unpin(pinned);
            throw e;
        }
    }

    @Override
    public Thread newThread(Runnable work) {
        final Thread made = new Thread(() -> run(work), name);
        made.setDaemon(true);
        thread = made;
        return made;
    }

    private void run(Runnable work) {
        try {
            work.run();
        } finally {
            running = false;
            unpin(lanes.length);
            ended.countDown();
            if (!stopping) {
                LOG.error("{} has died: nothing is applied any more", name);
            }
        }
    }

    private void unpin(int count) {
        for (int i = 0; i < count; i++) {
            lanes[i].unpin();
        }
    }

    /** Gives the memory up when the thread could not be started, or was not needed. */
    public void abandon() {
        running = false;
        unpin(lanes.length);
    }

    /** Whether the writer is to leave the events that it has not begun. */
    public boolean isStopping() {
        return stopping;
    }

    /** Whether the thread is there, or about to begin. */
    public boolean isAlive() {
        return running;
    }

    /** Whether the caller is this thread. */
    public boolean isCurrent() {
        return Thread.currentThread().equals(thread);
    }

    /**
     * Ends the thread at the next event boundary. Waits for a second at most: an event that takes
     * longer is finished, and the memory is kept until then.
     *
     * @param ring what the thread waits for
     */
    public void stop(Disruptor<?> ring) {
        stopping = true;
        ring.halt();
        if (isCurrent()) {
            return;
        }
        try {
            if (!ended.await(END_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
                LOG.warn("{} still works on an event; it ends with it", name);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
