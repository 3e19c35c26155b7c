package io.kvasir.pipeline.source;

/** How far the index's view of one (worker, rank) can be trusted. */
public enum IndexState {
    /** Nothing has been seen yet, or the first load is under way or not applied yet. */
    LOADING,
    /**
     * Every message of the engine's life was seen, or everything since it cleared its cache, and
     * all of it is applied.
     */
    EXACT,
    /**
     * Messages are missing and are being asked for, or the last ones are not applied yet: the view
     * before them serves.
     */
    RESYNC,
    /**
     * Nothing is heard: the connection is missing, came back with an engine that may be another, or
     * the engine serves prompts and no event comes. The credit falls with the time.
     */
    STALE,
    /**
     * Messages are lost, or events could not be used: blocks may be missing or believed wrongly.
     */
    DEGRADED,
    /** There are no events: what the worker holds is predicted from what was routed to it. */
    PREDICTED,
    /** The source is closed. */
    GONE
}
