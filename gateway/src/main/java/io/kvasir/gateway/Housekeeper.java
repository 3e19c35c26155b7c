package io.kvasir.gateway;

import io.kvasir.router.KvRouter;

import java.time.Duration;

/** Lets the router's time pass, five times a second, on a virtual thread of its own. */
final class Housekeeper implements AutoCloseable {
    private static final Duration PERIOD = Duration.ofMillis(200);

    private final Thread thread;

    /** Prepares the thread; nothing happens before {@link #start}. */
    Housekeeper(KvRouter router) {
        thread = Thread.ofVirtual().name("kvasir-housekeeper").unstarted(() -> keep(router));
    }

    void start() {
        thread.start();
    }

    private static void keep(KvRouter router) {
        try {
            while (true) {
                router.tick(System.nanoTime());
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
