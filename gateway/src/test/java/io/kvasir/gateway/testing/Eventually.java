package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.BooleanSupplier;

/** Waits for what another thread is about to do. */
public final class Eventually {
    private Eventually() {}

    public static void holds(String what, BooleanSupplier condition) throws InterruptedException {
        final long startNs = System.nanoTime();
        while (!condition.getAsBoolean()) {
            final long waitedMs = (System.nanoTime() - startNs) / 1_000_000;
            if (waitedMs > 60_000) {
                fail("not within a minute: " + what);
            }
            // the longer it takes, the more seldom: conditions that read a whole page are dear
            Thread.sleep(Math.clamp(waitedMs / 8, 5, 100));
        }
    }
}
