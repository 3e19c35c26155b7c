package io.kvasir.gateway.disagg;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Counts how prefills ended. Any thread. */
final class ReleaseCounters {
    final LongAdder fetched = new LongAdder();
    final LongAdder released = new LongAdder();
    final LongAdder heartbeats = new LongAdder();
    private final Map<LeaseReason, LongAdder> left = new EnumMap<>(LeaseReason.class);

    ReleaseCounters() {
        for (LeaseReason reason : LeaseReason.values()) {
            left.put(reason, new LongAdder());
        }
    }

    void leave(LeaseReason reason) {
        left.get(reason).increment();
    }

    BlockReleaseCounts with(long held) {
        final Map<LeaseReason, Long> sums = new EnumMap<>(LeaseReason.class);
        left.forEach((reason, count) -> sums.put(reason, count.sum()));
        return new BlockReleaseCounts(held, fetched.sum(), released.sum(), sums, heartbeats.sum());
    }
}
