package io.kvasir.cli.console;

import java.util.concurrent.CountDownLatch;

/**
 * Waits for ctrl-C or kill and closes what runs before the JVM ends. Made before anything is
 * started, so that a signal during the start finds it.
 */
public final class Shutdown {
    private final CountDownLatch never = new CountDownLatch(1);

    private Shutdown() {}

    /** Registers what to close; it runs once, on the JVM's shutdown thread. */
    public static Shutdown of(Runnable close) {
        Runtime.getRuntime().addShutdownHook(Thread.ofPlatform().name("shutdown").unstarted(close));
        return new Shutdown();
    }

    /** Blocks until the JVM is asked to end; returns only when the thread is interrupted. */
    public int await() throws InterruptedException {
        never.await();
        return ExitCode.OK;
    }
}
