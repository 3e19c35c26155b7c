package io.kvasir.testsupport;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Threads that work beside each other until each has done its share of the work: how long that
 * takes is for the machine to say, and no thread ends before another has met it for long enough.
 */
public final class Shares {
    private final AtomicInteger unfinished;

    /**
     * Shares of so many threads.
     *
     * @param threads how many of {@link #of} there will be
     */
    public Shares(int threads) {
        unfinished = new AtomicInteger(threads);
    }

    /**
     * The share of one thread.
     *
     * @param steps least number of steps that it works
     */
    public Share of(long steps) {
        return new Share(steps);
    }

    /** One thread's share; close it when the thread ends, also if it fails. */
    public final class Share implements AutoCloseable {
        private long left;

        private Share(long steps) {
            left = steps;
        }

        /**
         * Says that another step begins.
         *
         * @return false when all threads have done their shares
         */
        public boolean goesOn() {
            if (left >= 0 && left-- == 0) {
                unfinished.decrementAndGet();
            }
            return unfinished.get() > 0;
        }

        @Override
        public void close() {
            if (left >= 0) {
                left = -1;
                unfinished.decrementAndGet();
            }
        }
    }
}
