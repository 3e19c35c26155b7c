package io.kvasir.router;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.function.LongConsumer;
import java.util.function.LongSupplier;

/** Lets a router's time pass, five times a second, on a thread of its own. */
final class RouterTicker implements AutoCloseable {
    static final String THREAD_NAME = "kvasir-router-ticker";

    private static final Logger LOG = LoggerFactory.getLogger(RouterTicker.class);
    private static final Duration PERIOD = Duration.ofMillis(200);

    private final Thread thread;

    /** Prepares the thread; nothing happens before {@link #start}. */
    RouterTicker(LongSupplier clock, LongConsumer tick, ErrorHandler errors) {
        thread =
                Thread.ofPlatform()
                        .daemon()
                        .name(THREAD_NAME)
                        .unstarted(() -> keepTicking(clock, tick, errors));
    }

    void start() {
        thread.start();
    }

    private static void keepTicking(LongSupplier clock, LongConsumer tick, ErrorHandler errors) {
        boolean failed = false;
        try {
            while (true) {
                try {
                    tick.accept(clock.getAsLong());
                    failed = false;
                } catch (Throwable error) { // the next one may succeed: leases depend on it
                    if (!failed) {
                        LOG.error("a tick failed", error);
                    }
                    failed = true;
                    errors.onError(error);
                }
                Thread.sleep(PERIOD);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    /** Ends the thread; does not wait for it: a tick of a closed router does nothing. */
    @Override
    public void close() {
        thread.interrupt();
    }
}
