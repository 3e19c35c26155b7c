package io.kvasir.pipeline;

/** How far the index's view of one (worker, rank) can be trusted. */
public enum IndexState {
    /** Nothing has been seen yet, or the first load is under way. */
    LOADING,
    /** Every message of the engine's life was seen, or everything since it cleared its cache. */
    EXACT,
    /** Messages are missing and are being asked for. */
    RESYNC,
    /**
     * Messages are lost, or events could not be used: blocks may be missing or believed wrongly.
     */
    DEGRADED,
    /** There are no events: what the worker holds is predicted from what was routed to it. */
    PREDICTED,
    /** The source is closed. */
    GONE
}
