package io.kvasir.core.closing;

import java.util.function.Supplier;

/**
 * Work that is done to its end in an interrupted thread: the interrupt is kept back, and the thread
 * is interrupted again afterwards. For what would be lost otherwise, such as a last save: waits end
 * at once in such a thread, and files that it reads are closed under it. Stateless.
 */
public final class Uninterrupted {
    /** How often {@link #call} begins anew after a failure of work that was interrupted. */
    static final int MOST_FAILURES = 8;

    /**
     * Something to be done.
     *
     * @param <T> what it gives
     * @param <E> how it may fail
     */
    @FunctionalInterface
    public interface Work<T, E extends Exception> {
        /** Does it, from the beginning where it is called again. */
        T run() throws E, InterruptedException;
    }

    private Uninterrupted() {}

    /**
     * Runs work once: an interrupt that was there is kept back, one that comes meanwhile is not.
     */
    public static void run(Runnable work) {
        get(
                () -> {
                    work.run();
                    return null;
                });
    }

    /**
     * Runs work as {@link #run} does.
     *
     * @return what it gives
     */
    public static <T> T get(Supplier<T> work) {
        final boolean interrupted = Thread.interrupted();
        try {
            return work.get();
        } finally {
            restore(interrupted);
        }
    }

    /**
     * Does work, and does it again whenever an interrupt has ended it: one that was there before,
     * or comes meanwhile. Work that waits must say itself for how long at most, counted from a time
     * before this call.
     *
     * @return what it gives
     * @throws E if it fails without an interrupt, or again and again with one
     */
    public static <T, E extends Exception> T call(Work<T, E> work) throws E {
        boolean interrupted = Thread.interrupted();
        int failures = 0;
        try {
            while (true) {
                try {
                    return work.run();
                } catch (InterruptedException e) {
                    interrupted = true;
                } catch (Exception e) { // of a channel that the interrupt has closed, among others
                    if (!Thread.interrupted()) {
                        throw e;
                    }
                    interrupted = true;
                    if (++failures > MOST_FAILURES) {
                        throw e;
                    }
                }
            }
        } finally {
            restore(interrupted);
        }
    }

    private static void restore(boolean interrupted) {
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
