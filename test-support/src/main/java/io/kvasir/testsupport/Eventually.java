package io.kvasir.testsupport;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Waits for what another thread or process is about to do, two minutes at most. The longer it has
 * taken the longer are the pauses: what is there at once costs no time, and a condition that reads
 * a whole page is not asked a thousand times.
 */
public final class Eventually {
    private static final long LIMIT_NS = TimeUnit.MINUTES.toNanos(2);
    private static final long LEAST_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(100);
    private static final long MOST_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Part of the time waited so far that is waited again. */
    private static final int PART = 6;

    private Eventually() {}

    /**
     * A condition that may fail to be read.
     *
     * @param <E> how
     */
    @FunctionalInterface
    public interface Check<E extends Exception> {
        /** Whether it has come true. */
        boolean holds() throws E;
    }

    /** Waits for a condition; the stack trace says which one did not come true. */
    public static void holds(BooleanSupplier condition) {
        holds("what is waited for", condition);
    }

    /** Waits for a condition that has a name. */
    public static void holds(String what, BooleanSupplier condition) {
        holds(() -> what, condition);
    }

    /**
     * Waits for a condition.
     *
     * @param what is asked where it does not come true
     */
    public static void holds(Supplier<String> what, BooleanSupplier condition) {
        until(what, condition::getAsBoolean);
    }

    /**
     * Waits for a condition that may throw, and throws what it does; the same as {@code holds}
     * otherwise.
     */
    public static <E extends Exception> void until(String what, Check<E> condition) throws E {
        until(() -> what, condition);
    }

    /**
     * Waits for a condition that may throw.
     *
     * @param what is asked where it does not come true
     */
    public static <E extends Exception> void until(Supplier<String> what, Check<E> condition)
            throws E {
        final long startNs = System.nanoTime();
        while (!condition.holds()) {
            final long waitedNs = System.nanoTime() - startNs;
            if (waitedNs > LIMIT_NS) {
                throw new AssertionError("not within two minutes: " + what.get());
            }
            LockSupport.parkNanos(Math.clamp(waitedNs / PART, LEAST_PAUSE_NS, MOST_PAUSE_NS));
        }
    }
}
