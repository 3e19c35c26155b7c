package io.kvasir.bench.kvops;

import java.util.Locale;

/** What a replay measures. The name in lower case is the field's name in JSON. */
public enum Figure {
    /** Thread CPU time per stored or removed block, in nanoseconds. */
    APPLY_NS_PER_BLOCK,
    /** Thread CPU time per store, removal or clear, in nanoseconds. */
    APPLY_NS_PER_EVENT,
    /** Mean wall time of a query without loss of the core. */
    QUERY_MEAN_US,
    /** Half of the queries took at most this, wall time without loss of the core. */
    QUERY_P50_US,
    /** 99 % of the queries took at most this. */
    QUERY_P99_US,
    /** 99.9 % of the queries took at most this. */
    QUERY_P999_US,
    /** 99.99 % of the queries took at most this. */
    QUERY_P9999_US,
    /** Like {@link #QUERY_P50_US}, lost cores included. */
    QUERY_RAW_P50_US,
    /** Like {@link #QUERY_P99_US}, lost cores included. */
    QUERY_RAW_P99_US,
    /** Like {@link #QUERY_P999_US}, lost cores included. */
    QUERY_RAW_P999_US,
    /** Like {@link #QUERY_P9999_US}, lost cores included. */
    QUERY_RAW_P9999_US,
    /** Share of queries during which the thread lost its core, 0..1; those are left out. */
    PREEMPTED_SHARE,
    /**
     * What {@link #QUERY_P999_US} would be of queries that take no time, met by the machine's
     * pauses at the rate of these: the floor of that percentile on this machine.
     */
    MACHINE_P999_US,
    /** The same for {@link #QUERY_P9999_US}. */
    MACHINE_P9999_US,
    /** Queries measured. */
    QUERIES,
    /** Queries whose answer was not the stream's; in order only, elsewhere 0. */
    CHECKSUM_MISMATCHES,
    /** Stores that the index refused. */
    REFUSED_STORES,
    /** Blocks of all events applied. */
    EVENT_BLOCKS,
    /** Bytes of the index at the end per (worker, block) pair held then. */
    BYTES_PER_PAIR,
    /** (Worker, block) pairs held at the end. */
    HELD_PAIRS,
    /** Bytes of the index at the end. */
    BYTES,
    /** Wall time from the start to the last event applied, in seconds. */
    WALL_S,
    /** Half of the events were applied this late; open loop only. */
    EVENT_LAG_P50_US,
    /** 99 % of the events were applied this late at most; open loop only. */
    EVENT_LAG_P99_US,
    /** Time that the backlog took after the last event was due; open loop only. */
    DRAIN_MS,
    /** What the CPU clock costs, taken off each interval. */
    CPU_CLOCK_COST_NS;

    /** Name of the field in JSON. */
    public String field() {
        return name().toLowerCase(Locale.ROOT);
    }
}
