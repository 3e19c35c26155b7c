package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.util.Arrays;

/**
 * CPU times of a stream's events over several passes. A pass does exactly what the one before did,
 * so what an event costs by itself shows in every pass and an interrupt only in one: the least of
 * the passes counts. Recording allocates nothing. One thread.
 */
final class EventCosts {
    private static final int NOT_SEEN = Integer.MAX_VALUE;

    private final KvopsStream stream;
    private final int[] leastNs; // by operation
    private final Histogram raw = Latencies.histogram();
    private long rawSumNs;

    EventCosts(KvopsStream stream) {
        this.stream = stream;
        this.leastNs = new int[stream.size()];
        Arrays.fill(leastNs, NOT_SEEN);
    }

    /** Records what an event took in the pass that is going on. */
    void record(int operation, long ns) {
        leastNs[operation] = (int) Math.min(leastNs[operation], ns);
        if (!stream.isClear(operation)) {
            raw.recordValue(Latencies.clamped(ns));
            rawSumNs += ns;
        }
    }

    /** Mean of all passes in nanoseconds, clears left out. */
    double rawMeanNs() {
        return raw.getTotalCount() == 0 ? 0 : (double) rawSumNs / raw.getTotalCount();
    }

    /** Puts the figures of all passes; none where nothing was recorded. */
    Measured into(Measured measured, MachinePauses pauses) {
        final Histogram least = Latencies.histogram();
        final Histogram over = Latencies.histogram();
        long sumNs = 0;
        long beyond = 0;
        long clears = 0;
        long longestClearNs = 0;
        long maxOverNs = 0;
        int longest = -1;
        for (int i = 0; i < leastNs.length; i++) {
            final int ns = leastNs[i];
            if (ns == NOT_SEEN) {
                continue;
            }
            if (stream.isClear(i)) {
                clears++;
                longestClearNs = Math.max(longestClearNs, ns);
                continue;
            }
            final long overNs = Math.max(0, ns - EventBound.ns(stream.eventBlocks(i)));
            least.recordValue(Latencies.clamped(ns));
            over.recordValue(Latencies.clamped(overNs));
            maxOverNs = Math.max(maxOverNs, overNs);
            sumNs += ns;
            beyond += overNs > 0 ? 1 : 0;
            longest = longest < 0 || ns > leastNs[longest] ? i : longest;
        }
        if (clears > 0) {
            measured.put(Figure.CLEARS, clears).putUs(Figure.CLEAR_MAX_US, longestClearNs);
        }
        final long events = least.getTotalCount();
        if (events == 0) {
            return measured;
        }
        return measured.putUs(Figure.EVENT_MEAN_US, (double) sumNs / events)
                .putUs(Figure.EVENT_P50_US, least.getValueAtPercentile(50))
                .putUs(Figure.EVENT_P99_US, least.getValueAtPercentile(99))
                .putUs(Figure.EVENT_P999_US, least.getValueAtPercentile(99.9))
                .putUs(Figure.EVENT_P9999_US, least.getValueAtPercentile(99.99))
                .putUs(Figure.EVENT_MAX_US, (long) leastNs[longest])
                .put(Figure.EVENT_MAX_BLOCKS, (long) stream.eventBlocks(longest))
                .put(Figure.EVENT_MAX_OPERATION, (long) longest)
                .putUs(Figure.EVENT_P9999_OVER_BOUND_US, over.getValueAtPercentile(99.99))
                .putUs(Figure.EVENT_MAX_OVER_BOUND_US, maxOverNs)
                .put(Figure.EVENT_SHARE_OVER_BOUND, (double) beyond / events)
                .putUs(Figure.EVENT_RAW_P9999_US, raw.getValueAtPercentile(99.99))
                .putUs(Figure.EVENT_RAW_MAX_US, raw.getMaxValue())
                .putUs(
                        Figure.EVENT_MACHINE_P9999_US,
                        pauses.floorNs(99.99, Math.max(1, rawMeanNs())))
                .put(Figure.EVENTS, events);
    }
}
