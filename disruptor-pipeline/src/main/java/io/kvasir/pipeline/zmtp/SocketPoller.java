package io.kvasir.pipeline.zmtp;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * One thread that owns many connections: it waits for all of them at once, runs timers, and takes
 * tasks from other threads. Whatever it calls must not wait. Only {@link #execute}, {@link #close}
 * and {@link #awaitEnd} may be called by other threads.
 */
public final class SocketPoller implements AutoCloseable {
    /** Is called when its channel is ready. */
    interface Handler {
        /** The key's ready operations are set. */
        void ready(SelectionKey key);

        /** An error was thrown out of {@link #ready}. */
        void failed(Throwable error);

        /** The poller ends. */
        void close();
    }

    /** Something to be done later; a timer is used once. */
    public static final class Timer implements Comparable<Timer> {
        private final long dueNs;
        private Runnable task;

        private Timer(long dueNs, Runnable task) {
            this.dueNs = dueNs;
            this.task = task;
        }

        /** Makes it do nothing. */
        public void cancel() {
            task = null;
        }

        @Override
        public int compareTo(Timer other) {
            return Long.signum(dueNs - other.dueNs);
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(SocketPoller.class);
    private static final int READ_BYTES = 1 << 16;
    private static final long ERROR_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long MAX_WAIT_MS = 1_000;
    private static final int TASKS_PER_TURN = 256;

    private final Selector selector;
    private final Thread thread;
    private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
    private final PriorityQueue<Timer> timers = new PriorityQueue<>();
    private final byte[] readBytes = new byte[READ_BYTES];
    private final ByteBuffer readBuffer = ByteBuffer.wrap(readBytes);
    private volatile boolean closed;

    /**
     * Starts the thread, a daemon.
     *
     * @param name name of the thread
     */
    public SocketPoller(String name) {
        try {
            selector = Selector.open();
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot open a selector for " + name + ": " + FailureWords.of(e), e);
        }
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Has a task run on this thread; after {@link #close} it is dropped. Any thread. */
    public void execute(Runnable task) {
        tasks.add(task);
        if (!isCurrent()) {
            selector.wakeup();
        }
    }

    /** Whether the caller is this poller's thread. */
    public boolean isCurrent() {
        return Thread.currentThread().equals(thread);
    }

    /** Runs a task after a time. */
    public Timer schedule(long delayNs, Runnable task) {
        final Timer timer = new Timer(System.nanoTime() + delayNs, task);
        timers.add(timer);
        return timer;
    }

    SelectionKey register(SelectableChannel channel, int operations, Handler handler)
            throws IOException {
        return channel.register(selector, operations, handler);
    }

    /**
     * Has what was closed before really closed: its addresses can be bound again. In tasks only.
     */
    public void releaseClosed() throws IOException {
        selector.selectNow(SocketPoller::handle);
    }

    /** Buffer for one read, empty; its content lasts until the handler returns. */
    ByteBuffer readBuffer() {
        return readBuffer.clear();
    }

    /** What the buffer reads into. */
    byte[] readBytes() {
        return readBytes;
    }

    private void run() {
        while (!closed) {
            try {
                turn();
            } catch (IOException | RuntimeException | Error e) {
                LOG.error("{}: an error in the poller; going on", thread.getName(), e);
                LockSupport.parkNanos(ERROR_PAUSE_NS);
            }
        }
        end();
    }

    private void turn() throws IOException {
        if (tasks.isEmpty()) {
            final long waitMs = waitMs();
            if (waitMs > 0) {
                selector.select(SocketPoller::handle, waitMs);
            } else {
                selector.selectNow(SocketPoller::handle);
            }
        } else {
            selector.selectNow(SocketPoller::handle);
        }
        runTimers(); // right after the reads: what has timed out by then has really sent nothing
        runTasks();
    }

    private static void handle(SelectionKey key) {
        final Handler handler = (Handler) key.attachment();
        try {
            handler.ready(key);
        } catch (RuntimeException | Error e) {
            LOG.error("handling a connection failed", e);
            handler.failed(e);
        }
    }

    private long waitMs() {
        final Timer first = timers.peek();
        if (first == null) {
            return MAX_WAIT_MS;
        }
        final long leftNs = first.dueNs - System.nanoTime();
        // rounded up: a wait that ends too early would spin until the timer is due
        return leftNs <= 0 ? 0 : Math.min(MAX_WAIT_MS, TimeUnit.NANOSECONDS.toMillis(leftNs) + 1);
    }

    private void runTasks() {
        for (int left = TASKS_PER_TURN; left > 0 && !closed; left--) {
            final Runnable task = tasks.poll();
            if (task == null) {
                return;
            }
            guarded(task);
        }
    }

    private void runTimers() {
        final long now = System.nanoTime();
        while (!closed && !timers.isEmpty() && timers.peek().dueNs - now <= 0) {
            final Runnable task = timers.poll().task;
            if (task != null) {
                guarded(task);
            }
        }
    }

    private void guarded(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException | Error e) {
            LOG.error("{}: a task failed; going on", thread.getName(), e);
        }
    }

    private void end() {
        for (SelectionKey key : selector.keys()) {
            ((Handler) key.attachment()).close();
        }
        try {
            selector.close();
        } catch (IOException e) {
            LOG.warn("{}: the selector did not close cleanly", thread.getName(), e);
        }
    }

    /** Makes the thread close all its connections and end, without waiting for it. Any thread. */
    @Override
    public void close() {
        closed = true;
        selector.wakeup();
    }

    /** Waits until the thread has ended, for a bounded time. Not on the thread itself. */
    public void awaitEnd(long timeoutMs) {
        try {
            thread.join(timeoutMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
