package io.kvasir.opstreams.kvops;

import java.util.Locale;

/** What a replay measures. The name in lower case is the field's name in JSON. */
public enum Figure {
    /** Thread CPU time per stored or removed block, in nanoseconds. */
    APPLY_NS_PER_BLOCK,
    /** Thread CPU time per store, removal or clear, in nanoseconds. */
    APPLY_NS_PER_EVENT,
    /** Mean thread CPU time of a store or removal by itself; mode events only, as all below. */
    EVENT_MEAN_US,
    /** Half of the stores and removals took at most this. */
    EVENT_P50_US,
    /** 99 % of the stores and removals took at most this. */
    EVENT_P99_US,
    /** 99.9 % of the stores and removals took at most this. */
    EVENT_P999_US,
    /** 99.99 % of the stores and removals took at most this. */
    EVENT_P9999_US,
    /** The longest store or removal. */
    EVENT_MAX_US,
    /** Blocks of the longest store or removal. */
    EVENT_MAX_BLOCKS,
    /** Number of the longest store or removal among the stream's index operations, from 0. */
    EVENT_MAX_OPERATION,
    /** 99.99 % of the stores and removals took at most this more than {@link EventBound} grants. */
    EVENT_P9999_OVER_BOUND_US,
    /** The most that a store or removal took beyond its {@link EventBound}. */
    EVENT_MAX_OVER_BOUND_US,
    /** Share of stores and removals that took longer than {@link EventBound} grants, 0..1. */
    EVENT_SHARE_OVER_BOUND,
    /** Like {@link #EVENT_P9999_US}, every pass by itself. */
    EVENT_RAW_P9999_US,
    /** Like {@link #EVENT_MAX_US}, every pass by itself. */
    EVENT_RAW_MAX_US,
    /** What {@link #EVENT_RAW_P9999_US} would be of events that take no time. */
    EVENT_MACHINE_P9999_US,
    /** Stores and removals timed. */
    EVENTS,
    /** The longest clear; its cost grows with what the worker held. */
    CLEAR_MAX_US,
    /** Clears timed. */
    CLEARS,
    /** Share of the stream's operations that were replayed before the time limit, 0..1. */
    REPLAYED_SHARE,
    /** Bytes of fresh memory that were touched before the clock ran; 0 = untouched. */
    TOUCHED_BYTES,
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
    /** Bytes of that memory in use at the end per pair held then. */
    USED_BYTES_PER_PAIR,
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
    /** Passes over the stream before the measured one, until figures stood still. */
    WARM_UP_PASSES,
    /** Events of all those passes. */
    WARM_UP_EVENTS,
    /** Queries of all those passes. */
    WARM_UP_QUERIES,
    /** 1 when figures stood still, 0 when the time for the warm-up was over before. */
    WARM_UP_SETTLED,
    /** What the CPU clock costs, taken off each interval. */
    CPU_CLOCK_COST_NS;

    private static final int ONE_IN_HUNDRED = 100;
    private static final int ONE_IN_THOUSAND = 1_000;
    private static final int ONE_IN_TEN_THOUSAND = 10_000;

    /** The value's unit, empty for counts and shares. */
    public String unit() {
        final String field = field();
        if (field.endsWith("_us")) {
            return "us";
        }
        if (field.endsWith("_ns") || field.contains("_ns_per_")) {
            return "ns";
        }
        if (field.endsWith("_ms")) {
            return "ms";
        }
        if (field.endsWith("_s")) {
            return "s";
        }
        return field.contains("bytes") ? "B" : "";
    }

    /**
     * Queries or events that this percentile needs at least: with fewer it is the longest of them
     * by another name. 1 for what is no such percentile.
     */
    public int leastSamples() {
        final String field = field();
        if (field.contains("p9999_")) {
            return ONE_IN_TEN_THOUSAND;
        }
        if (field.contains("p999_")) {
            return ONE_IN_THOUSAND;
        }
        return field.contains("p99_") ? ONE_IN_HUNDRED : 1;
    }

    /** What {@link #leastSamples()} counts: queries, or stores and removals. */
    public Figure samples() {
        return field().startsWith("event_") ? EVENTS : QUERIES;
    }

    /** Name of the field in JSON. */
    public String field() {
        return name().toLowerCase(Locale.ROOT);
    }
}
