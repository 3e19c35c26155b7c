package io.kvasir.gateway;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The last decisions, oldest overwritten. Any thread adds and reads; a reader may miss one just
 * added.
 */
final class DecisionLog {
    private final AtomicReferenceArray<DecisionRecord> ring;
    private final AtomicLong added = new AtomicLong();

    DecisionLog(int size) {
        ring = new AtomicReferenceArray<>(size);
    }

    void add(DecisionRecord decision) {
        ring.set((int) (added.getAndIncrement() % ring.length()), decision);
    }

    /** The last decisions, newest first, at most {@code limit} of those still kept. */
    List<DecisionRecord> newest(int limit) {
        final long end = added.get();
        final long count = Math.min(Math.min(limit, ring.length()), end);
        final List<DecisionRecord> newest = new ArrayList<>((int) count);
        for (long i = end - 1; i >= end - count; i--) {
            final DecisionRecord decision = ring.get((int) (i % ring.length()));
            if (decision != null) {
                newest.add(decision);
            }
        }
        return newest;
    }

    int size() {
        return ring.length();
    }
}
