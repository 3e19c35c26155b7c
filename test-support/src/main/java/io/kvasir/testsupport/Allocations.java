package io.kvasir.testsupport;

import com.sun.management.ThreadMXBean;

import java.lang.management.ManagementFactory;

/** Measures heap allocation of the calling thread, for tests of paths that must not allocate. */
public final class Allocations {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private Allocations() {}

    /**
     * Calls an action many times, first to warm up and then in measured rounds.
     *
     * @param calls calls of a round; as many again are made before the first one
     * @param action what is measured, on the calling thread
     * @return fewest bytes allocated in any round, of five or up to the first without any: what the
     *     action itself cannot avoid
     */
    public static long bytesPerRound(int calls, Runnable action) {
        repeat(calls, action);
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < 5 && fewest > 0; round++) {
            final long before = THREADS.getCurrentThreadAllocatedBytes();
            repeat(calls, action);
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        return fewest;
    }

    /**
     * Runs an action once.
     *
     * @return bytes that the calling thread allocated for it; what a code path copies shows here
     */
    public static long bytesOf(Runnable action) {
        final long before = THREADS.getCurrentThreadAllocatedBytes();
        action.run();
        return THREADS.getCurrentThreadAllocatedBytes() - before;
    }

    private static void repeat(int calls, Runnable action) {
        for (int i = 0; i < calls; i++) {
            action.run();
        }
    }
}
