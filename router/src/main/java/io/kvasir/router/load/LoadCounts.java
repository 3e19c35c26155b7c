package io.kvasir.router.load;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** Counts reports by source and by what became of them. Any thread. */
public final class LoadCounts {
    private final Map<LoadSource, Map<LoadOutcome, LongAdder>> counts =
            new EnumMap<>(LoadSource.class); // filled here, then only read

    /** No report yet. */
    LoadCounts() {
        for (LoadSource source : LoadSource.values()) {
            final Map<LoadOutcome, LongAdder> bySource = new EnumMap<>(LoadOutcome.class);
            for (LoadOutcome outcome : LoadOutcome.values()) {
                bySource.put(outcome, new LongAdder());
            }
            counts.put(source, bySource);
        }
    }

    /**
     * Counts one; for those that have not reached a worker.
     *
     * @return the outcome
     */
    public LoadOutcome add(LoadSource source, LoadOutcome outcome) {
        counts.get(source).get(outcome).increment();
        return outcome;
    }

    /** How many there were. */
    public long of(LoadSource source, LoadOutcome outcome) {
        return counts.get(source).get(outcome).sum();
    }
}
