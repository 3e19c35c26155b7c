package io.kvasir.opstreams.kvops;

import java.util.Arrays;

/**
 * What the operating system says about the calling thread. Made and used on one thread.
 *
 * <p>On Linux both answers are one system call each; elsewhere CPU time comes from the JVM and
 * nothing tells that the thread lost its core.
 */
public abstract class ThreadUsage {
    private static final int SAMPLES = 20_001;

    ThreadUsage() {}

    /** For the calling thread, the best that this machine has. */
    public static ThreadUsage ofCurrentThread() {
        return LinuxThreadUsage.isAvailable() ? new LinuxThreadUsage() : new JvmThreadUsage();
    }

    /** CPU time of the thread in nanoseconds. */
    public abstract long cpuNs();

    /** How often the thread lost its core unasked; constant where nothing tells. */
    public abstract long involuntarySwitches();

    /** Whether {@link #involuntarySwitches()} means anything. */
    public abstract boolean seesPreemption();

    /**
     * Measures what one interval between two calls of {@link #cpuNs()} shows although nothing lies
     * between them; to be taken off every interval. Takes some 10 ms.
     *
     * @return median of many intervals in nanoseconds
     */
    public final long clockCostNs() {
        final long[] intervals = new long[SAMPLES];
        for (int round = 0; round < 2; round++) { // the first is for the compiler
            long before = cpuNs();
            for (int i = 0; i < SAMPLES; i++) {
                final long now = cpuNs();
                intervals[i] = now - before;
                before = now;
            }
        }
        Arrays.sort(intervals);
        return intervals[SAMPLES / 2];
    }
}
