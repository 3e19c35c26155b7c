package io.kvasir.opstreams.kvops;

import org.HdrHistogram.Histogram;

import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Collects the figures of one run in their units. One thread. */
final class Measured {
    private static final double NS_PER_US = TimeUnit.MICROSECONDS.toNanos(1);

    private final Map<Figure, Double> figures = new EnumMap<>(Figure.class);

    Measured put(Figure figure, double value) {
        figures.put(figure, value);
        return this;
    }

    Measured put(Figure figure, long value) {
        return put(figure, (double) value); // exact up to 2^53
    }

    Measured putUs(Figure figure, double ns) {
        return put(figure, ns / NS_PER_US);
    }

    Measured putUs(Figure figure, long ns) {
        return putUs(figure, (double) ns);
    }

    Measured latencies(Latencies latencies, boolean seesPreemption) {
        put(Figure.QUERIES, latencies.count());
        if (seesPreemption) {
            put(Figure.PREEMPTED_SHARE, latencies.preemptedShare());
        }
        putUs(Figure.QUERY_MEAN_US, latencies.meanNs());
        final Histogram kept = latencies.kept();
        putUs(Figure.QUERY_P50_US, kept.getValueAtPercentile(50));
        putUs(Figure.QUERY_P99_US, kept.getValueAtPercentile(99));
        putUs(Figure.QUERY_P999_US, kept.getValueAtPercentile(99.9));
        putUs(Figure.QUERY_P9999_US, kept.getValueAtPercentile(99.99));
        final Histogram raw = latencies.raw();
        putUs(Figure.QUERY_RAW_P50_US, raw.getValueAtPercentile(50));
        putUs(Figure.QUERY_RAW_P99_US, raw.getValueAtPercentile(99));
        putUs(Figure.QUERY_RAW_P999_US, raw.getValueAtPercentile(99.9));
        return putUs(Figure.QUERY_RAW_P9999_US, raw.getValueAtPercentile(99.99));
    }

    /** CPU time of all events; none of them leaves the figures out. */
    Measured apply(long cpuNs, long events, long blocks) {
        put(Figure.EVENT_BLOCKS, blocks);
        if (blocks > 0) {
            put(Figure.APPLY_NS_PER_BLOCK, (double) cpuNs / blocks);
        }
        if (events > 0) {
            put(Figure.APPLY_NS_PER_EVENT, (double) cpuNs / events);
        }
        return this;
    }

    Measured memory(BlockIndex index) {
        final long held = index.heldBlocks();
        put(Figure.HELD_PAIRS, held);
        if (index.bytes() >= 0) {
            put(Figure.BYTES, index.bytes());
            if (held > 0) {
                put(Figure.BYTES_PER_PAIR, (double) index.bytes() / held);
                put(Figure.USED_BYTES_PER_PAIR, (double) index.usedBytes() / held);
            }
        }
        return this;
    }

    ForkResult with(Latencies latencies) {
        return new ForkResult(figures, latencies.kept());
    }
}
