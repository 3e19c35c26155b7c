package io.kvasir.sim.batch;

import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.PullStage;

import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Faults of answers and hand-offs that are still to happen. Any thread. */
public final class InjectedFaults {
    /** How long a number of pulls stand still. */
    private record Stall(AtomicInteger left, long ns) {}

    private final Duration lease;
    private final Map<HandoffFault, AtomicInteger> faults = new EnumMap<>(HandoffFault.class);
    private final Map<PullStage, Stall> stalls = new EnumMap<>(PullStage.class);
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger cuts = new AtomicInteger();
    private volatile int failureStatus = 503;

    /** None, for an engine whose prefills are held so long. */
    public InjectedFaults(HandoffConfig config) {
        this.lease = config.lease();
        for (HandoffFault fault : HandoffFault.values()) {
            faults.put(fault, new AtomicInteger());
        }
    }

    /** Lets the next prefills go wrong; replaces what was left. */
    public void set(HandoffFault fault, int count) {
        faults.get(fault).set(count);
    }

    /** Lets the next pulls stand still; replaces what was left of the stage. */
    public synchronized void stall(PullStage stage, Duration duration, int count) {
        stalls.put(stage, new Stall(new AtomicInteger(count), duration.toNanos()));
    }

    /** Whether a fault happens now. */
    public boolean next(HandoffFault fault) {
        return take(faults.get(fault));
    }

    /** How long the next prefill is held. */
    Duration nextLease() {
        return next(HandoffFault.LEASE_ENDS_EARLY) ? Duration.ZERO : lease;
    }

    /** Where the next pull stands still. */
    synchronized PullStalls nextPull() {
        return stalls.isEmpty()
                ? PullStalls.NONE
                : new PullStalls(
                        next(PullStage.BEFORE), next(PullStage.DURING), next(PullStage.AFTER));
    }

    private long next(PullStage stage) {
        final Stall stall = stalls.get(stage);
        return stall != null && take(stall.left) ? stall.ns : 0;
    }

    /** Answers the next requests with an error; replaces what was left. */
    public void fail(int status, int count) {
        failureStatus = status;
        failures.set(count);
    }

    /** Cuts the next streams; replaces what was left. */
    public void cut(int count) {
        cuts.set(count);
    }

    /** Status with which this request fails, or 0. */
    public int nextFailure() {
        return take(failures) ? failureStatus : 0;
    }

    /** Whether this stream is cut. */
    public boolean nextCut() {
        return take(cuts);
    }

    /** Counts one down; false when none is left. */
    private static boolean take(AtomicInteger left) {
        return left.get() > 0 && left.getAndUpdate(n -> Math.max(0, n - 1)) > 0;
    }
}
