package io.kvasir.testsupport;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Waiting for latches where no checked exception may be thrown. */
public final class Latches {
    private static final long PATIENCE_S = 60;

    private Latches() {}

    /**
     * Waits until a latch is at 0.
     *
     * @throws AssertionError if it is not within a minute
     * @throws IllegalStateException if the thread is interrupted
     */
    public static void await(CountDownLatch latch) {
        try {
            if (!latch.await(PATIENCE_S, TimeUnit.SECONDS)) {
                throw new AssertionError("still waiting after " + PATIENCE_S + " s: " + latch);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
