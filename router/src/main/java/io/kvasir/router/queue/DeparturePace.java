package io.kvasir.router.queue;

import java.util.concurrent.TimeUnit;

/** How fast requests leave a queue for a worker. Guarded by the {@link WaitingRoom}. */
final class DeparturePace {
    private static final long LEAST_NS = TimeUnit.SECONDS.toNanos(1);
    private static final int WEIGHT = 8; // of the past against the last interval

    private double intervalNs; // 0 before two have left
    private long lastNs;
    private boolean any;

    void left(long nowNs) {
        if (any) {
            final double last = Math.max(0, nowNs - lastNs);
            intervalNs = intervalNs == 0 ? last : intervalNs + (last - intervalNs) / WEIGHT;
        }
        any = true;
        lastNs = nowNs;
    }

    /** Time in which so many leave, of which nothing is known at first. */
    long timeFor(int requests, long mostNs) {
        return Math.clamp((long) (intervalNs * requests), LEAST_NS, Math.max(LEAST_NS, mostNs));
    }
}
