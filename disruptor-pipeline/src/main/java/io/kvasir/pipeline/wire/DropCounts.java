package io.kvasir.pipeline.wire;

import java.util.EnumMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/** Counts of what was dropped, by reason. One thread adds, any thread reads. */
public final class DropCounts {
    private final Map<DropReason, AtomicLong> counts = new EnumMap<>(DropReason.class);

    /** Creates counts that are all 0. */
    public DropCounts() {
        for (DropReason reason : DropReason.values()) {
            counts.put(reason, new AtomicLong());
        }
    }

    /**
     * Counts one drop.
     *
     * @param reason why
     */
    public void add(DropReason reason) {
        counts.get(reason).getAndIncrement();
    }

    /**
     * How often something was dropped for a reason.
     *
     * @param reason the reason asked for
     * @return number of drops since the start
     */
    public long get(DropReason reason) {
        return counts.get(reason).get();
    }

    /** All drops since the start. */
    public long total() {
        long total = 0;
        for (AtomicLong count : counts.values()) {
            total += count.get();
        }
        return total;
    }

    /** The counts that are not 0, by {@link DropReason#label()}, in the order of the labels. */
    public Map<String, Long> nonZero() {
        final Map<String, Long> result = new TreeMap<>();
        counts.forEach(
                (reason, count) -> {
                    if (count.get() != 0) {
                        result.put(reason.label(), count.get());
                    }
                });
        return result;
    }
}
