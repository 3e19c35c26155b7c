package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.function.BooleanSupplier;

/** Waits for what another thread is about to do. */
public final class Eventually {
    private Eventually() {}

    public static void holds(String what, BooleanSupplier condition) throws InterruptedException {
        final long deadline = System.nanoTime() + 60_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - deadline > 0) {
                fail("not within a minute: " + what);
            }
            Thread.sleep(5);
        }
    }
}
