package io.kvasir.services.testing;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Waits for what comes by itself. */
public final class Waiting {
    private Waiting() {}

    /** Waits a minute at most. */
    public static void until(BooleanSupplier condition) {
        final long startNs = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - startNs > TimeUnit.MINUTES.toNanos(1)) {
                throw new AssertionError("gave up waiting");
            }
            LockSupport.parkNanos(2_000_000);
        }
    }
}
