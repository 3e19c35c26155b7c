package io.kvasir.bench.gpu;

import java.time.Duration;

/**
 * Ends the process when it takes too long, whatever call it hangs in: a call into a driver or into
 * NIXL cannot be interrupted. Says what was being done.
 */
final class Watchdog {
    private volatile String step = "start";

    private Watchdog() {}

    /** Starts a thread that ends the process with exit code 1 unless it ends before. */
    static Watchdog start(Duration limit) {
        final Watchdog watchdog = new Watchdog();
        Thread.ofPlatform().daemon().name("watchdog").start(() -> watchdog.watch(limit));
        return watchdog;
    }

    /** Records what is being done now. */
    void step(String description) {
        step = description;
    }

    private void watch(Duration limit) {
        try {
            Thread.sleep(limit);
        } catch (InterruptedException e) {
            return;
        }
        System.err.printf(
                "gpu-bench: failed: no end after %d s, in: %s%n", limit.toSeconds(), step);
        System.err.flush();
        Runtime.getRuntime().halt(1);
    }
}
