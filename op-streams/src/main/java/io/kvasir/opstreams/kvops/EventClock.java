package io.kvasir.opstreams.kvops;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Thread CPU time of single events. The CPU clock is a system call of some 500 ns, more than most
 * events take, so an event is timed by the wall clock (some 20 ns, taken off). Only an interval
 * that is long enough for the thread to have lost its core inside is measured again by the CPU
 * clock: from an anchor, a moment at which both clocks were read, and the wall time that passed
 * without loss of the core from there to the event's start. No event is left out; a long one is
 * interrupted more often than a short one, and leaving it out would hide what is looked for.
 *
 * <p>Made and used on one thread: {@link #start()}, the event, {@link #stop()}.
 */
final class EventClock {
    /** A thread that loses its core and gets it back is away for longer. */
    static final long LONG_NS = TimeUnit.MICROSECONDS.toNanos(1);

    /** Starts after which the anchor is renewed: interrupts drive the two clocks apart. */
    static final int ANCHOR_STARTS = 64;

    private static final int SAMPLES = 10_001;

    private final ThreadUsage usage;
    private final LongSupplier wallClock;
    private final long wallCostNs;
    private final long cpuCostNs;
    private long anchorNs;
    private long anchorCpuNs;
    private int starts;
    private long startNs;
    private long endNs;

    /**
     * For the calling thread.
     *
     * @param usage of the calling thread
     */
    EventClock(ThreadUsage usage) {
        this(usage, System::nanoTime, wallCostNs(), usage.clockCostNs());
    }

    /**
     * With given clocks.
     *
     * @param wallClock in nanoseconds
     * @param wallCostNs what the wall clock shows of an empty interval
     * @param cpuCostNs what the CPU clock shows of an empty interval
     */
    EventClock(ThreadUsage usage, LongSupplier wallClock, long wallCostNs, long cpuCostNs) {
        this.usage = usage;
        this.wallClock = wallClock;
        this.wallCostNs = wallCostNs;
        this.cpuCostNs = cpuCostNs;
        anchor();
    }

    private static long wallCostNs() {
        final long[] intervals = new long[SAMPLES];
        for (int round = 0; round < 2; round++) { // the first is for the compiler
            for (int i = 0; i < SAMPLES; i++) {
                final long before = System.nanoTime();
                intervals[i] = System.nanoTime() - before;
            }
        }
        Arrays.sort(intervals);
        return intervals[SAMPLES / 2];
    }

    private void anchor() {
        anchorCpuNs = usage.cpuNs();
        anchorNs = wallClock.getAsLong();
        endNs = anchorNs;
        starts = 0;
    }

    /** An event starts now. */
    void start() {
        final long nowNs = wallClock.getAsLong();
        if (nowNs - endNs >= LONG_NS || ++starts == ANCHOR_STARTS) { // the core may have been lost
            anchor();
            startNs = wallClock.getAsLong();
        } else {
            startNs = nowNs;
        }
    }

    /** The event has ended: its CPU time in nanoseconds, not negative. */
    long stop() {
        endNs = wallClock.getAsLong();
        final long wallNs = Math.max(0, endNs - startNs - wallCostNs);
        if (wallNs < LONG_NS) {
            return wallNs;
        }
        final long sinceAnchorNs = usage.cpuNs() - anchorCpuNs - cpuCostNs;
        final long beforeNs = startNs - anchorNs;
        anchor();
        return Math.clamp(sinceAnchorNs - beforeNs, 0, wallNs);
    }
}
