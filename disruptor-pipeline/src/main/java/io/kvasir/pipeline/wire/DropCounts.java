package io.kvasir.pipeline.wire;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLongArray;

/** Counts of what was dropped, by reason. One thread adds, any thread reads. */
public final class DropCounts {
    private static final DropReason[] REASONS = DropReason.values();
    private final AtomicLongArray counts = new AtomicLongArray(REASONS.length);

    /** Creates counts that are all 0. */
    public DropCounts() {}

    /**
     * Counts one drop.
     *
     * @param reason why
     */
    public void add(DropReason reason) {
        counts.getAndIncrement(reason.ordinal());
    }

    /**
     * How often something was dropped for a reason.
     *
     * @param reason the reason asked for
     * @return number of drops since the start
     */
    public long get(DropReason reason) {
        return counts.get(reason.ordinal());
    }

    /** All drops since the start. */
    public long total() {
        long total = 0;
        for (int i = 0; i < counts.length(); i++) {
            total += counts.get(i);
        }
        return total;
    }

    /** The counts that are not 0, by {@link DropReason#label()}, in the order of the labels. */
    public Map<String, Long> nonZero() {
        final Map<String, Long> result = new TreeMap<>();
        for (DropReason reason : REASONS) {
            final long count = get(reason);
            if (count != 0) {
                result.put(reason.label(), count);
            }
        }
        return result;
    }
}
