package io.kvasir.registry;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Closes the body of an answer that its server should have ended by itself, or that has brought
 * nothing for long: a read that waits then fails. Closing the limit lifts it.
 */
public final class StreamLimit implements AutoCloseable {
    private final InputStream body;
    private final long limitNs;
    private volatile long lastSeenNs = System.nanoTime();
    private volatile boolean hasCut;
    private CompletableFuture<Void> check; // guarded by this
    private boolean lifted; // guarded by this

    /** Begins to count. */
    public StreamLimit(InputStream body, Duration limit) {
        this.body = body;
        this.limitNs = limit.toNanos();
        checkIn(limitNs);
    }

    /** Counts from now on. */
    public void received() {
        lastSeenNs = System.nanoTime();
    }

    /** Whether the body was closed by this limit. */
    public boolean hasCut() {
        return hasCut;
    }

    private synchronized void checkIn(long ns) {
        if (!lifted) {
            check =
                    CompletableFuture.runAsync(
                            this::check,
                            CompletableFuture.delayedExecutor(ns, TimeUnit.NANOSECONDS));
        }
    }

    private void check() {
        final long leftNs = lastSeenNs + limitNs - System.nanoTime();
        if (leftNs > 0) {
            checkIn(leftNs);
        } else {
            hasCut = true;
            end(body);
        }
    }

    /** Closes a body, on any thread. */
    public static void end(InputStream body) {
        try {
            body.close();
        } catch (IOException e) {
            Thread.onSpinWait(); // it has ended by itself
        }
    }

    @Override
    public synchronized void close() {
        lifted = true;
        check.cancel(false);
    }
}
