package io.kvasir.registry;

import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * Closes the body of an answer that its server should have ended by itself: a read that waits then
 * fails. Closing the limit lifts it.
 */
public final class StreamLimit implements AutoCloseable {
    private final CompletableFuture<Void> cut;

    /** Begins to count. */
    public StreamLimit(InputStream body, Duration limit) {
        cut =
                CompletableFuture.runAsync(
                        () -> end(body),
                        CompletableFuture.delayedExecutor(limit.toMillis(), TimeUnit.MILLISECONDS));
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
    public void close() {
        cut.cancel(false);
    }
}
