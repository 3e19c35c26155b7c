package io.kvasir.sim;

import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Faults of hand-offs that are still to happen. Any thread. */
final class HandoffFaults {
    /** How long a number of pulls stand still. */
    private record Stall(AtomicInteger left, long ns) {}

    private final Duration lease;
    private final Map<HandoffFault, AtomicInteger> faults = new EnumMap<>(HandoffFault.class);
    private final Map<PullStage, Stall> stalls = new EnumMap<>(PullStage.class);

    HandoffFaults(HandoffConfig config) {
        this.lease = config.lease();
        for (HandoffFault fault : HandoffFault.values()) {
            faults.put(fault, new AtomicInteger());
        }
    }

    void set(HandoffFault fault, int count) {
        faults.get(fault).set(count);
    }

    synchronized void stall(PullStage stage, Duration duration, int count) {
        stalls.put(stage, new Stall(new AtomicInteger(count), duration.toNanos()));
    }

    /** Whether a fault happens now. */
    boolean next(HandoffFault fault) {
        return SimFaults.take(faults.get(fault));
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
        return stall != null && SimFaults.take(stall.left) ? stall.ns : 0;
    }
}
