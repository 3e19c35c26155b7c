package io.kvasir.gateway.routing;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Predicate;

/**
 * The last decisions, oldest overwritten. Any thread adds and reads; a reader may miss one just
 * added.
 */
public final class DecisionLog {
    /** Most that may be kept. */
    static final int MOST = 1 << 24;

    private final AtomicReferenceArray<DecisionRecord> ring;
    private final AtomicLong added = new AtomicLong();

    /**
     * Keeps so many decisions.
     *
     * @throws IllegalArgumentException if that is less than 1, or more than fit into memory
     */
    public DecisionLog(int size) {
        if (size < 1 || size > MOST) {
            throw new IllegalArgumentException("size=" + size + " must be 1.." + MOST);
        }
        ring = new AtomicReferenceArray<>(size);
    }

    void add(DecisionRecord decision) {
        ring.set((int) (added.getAndIncrement() % ring.length()), decision);
    }

    /** The last decisions, newest first, at most {@code limit} of those still kept. */
    public List<DecisionRecord> newest(int limit) {
        return newest(limit, _ -> true);
    }

    /** The decisions of requests with an id, newest first; reads all that are kept. */
    public List<DecisionRecord> of(String requestId, int limit) {
        return newest(limit, decision -> decision.requestId().equals(requestId));
    }

    private List<DecisionRecord> newest(int limit, Predicate<DecisionRecord> wanted) {
        final long end = added.get();
        final long oldest = Math.max(0, end - ring.length());
        final List<DecisionRecord> newest = new ArrayList<>();
        for (long i = end - 1; i >= oldest && newest.size() < limit; i--) {
            final DecisionRecord decision = ring.get((int) (i % ring.length()));
            if (decision != null && wanted.test(decision)) {
                newest.add(decision);
            }
        }
        return newest;
    }

    /** How many decisions are kept at most. */
    public int size() {
        return ring.length();
    }
}
