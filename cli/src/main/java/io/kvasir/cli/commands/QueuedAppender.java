package io.kvasir.cli.commands;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.classic.spi.LoggingEvent;
import ch.qos.logback.core.Appender;
import ch.qos.logback.core.UnsynchronizedAppenderBase;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Writes the log on a thread of its own, the only one that touches the output: what logs never
 * waits for an output that nothing reads. What finds the queue full is dropped, and once lines are
 * written again one of them says how many were. logback's AsyncAppender does not count them, and
 * cannot be flushed without its end.
 */
final class QueuedAppender extends UnsynchronizedAppenderBase<ILoggingEvent> {
    /** As many lines may wait. */
    static final int QUEUE_LENGTH = 4_096;

    private static final long FLUSH_MS = 2_000;

    private final Logger own;
    private final Appender<ILoggingEvent> output;
    private final BlockingQueue<Runnable> queue = new ArrayBlockingQueue<>(QUEUE_LENGTH);
    private final AtomicLong dropped = new AtomicLong(); // since a line has said so

    QueuedAppender(LoggerContext context, Appender<ILoggingEvent> output) {
        setContext(context);
        this.own = context.getLogger(QueuedAppender.class);
        this.output = output;
    }

    /** What writes the lines. */
    Appender<ILoggingEvent> output() {
        return output;
    }

    @Override
    public void start() {
        super.start();
        Thread.ofPlatform().name("kvasir-log").daemon().start(this::run);
    }

    @Override
    protected void append(ILoggingEvent event) {
        event.prepareForDeferredProcessing();
        if (!queue.offer(() -> output.doAppend(event))) {
            dropped.incrementAndGet();
        }
    }

    private void run() {
        try {
            while (true) {
                queue.take().run();
                sayDropped();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // nothing in this process does that
        }
    }

    private void sayDropped() {
        final long count = dropped.getAndSet(0);
        if (count > 0) {
            output.doAppend(
                    new LoggingEvent(
                            QueuedAppender.class.getName(),
                            own,
                            Level.WARN,
                            "{} lines of the log were dropped: standard error was not read in time",
                            null,
                            new Object[] {count}));
        }
    }

    /** Waits until what was added is written, as far as that does not take long. */
    void flush() {
        final CountDownLatch written = new CountDownLatch(1);
        try {
            final long endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(FLUSH_MS);
            if (queue.offer(written::countDown, FLUSH_MS, TimeUnit.MILLISECONDS)) {
                var _ = written.await(endNs - System.nanoTime(), TimeUnit.NANOSECONDS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
