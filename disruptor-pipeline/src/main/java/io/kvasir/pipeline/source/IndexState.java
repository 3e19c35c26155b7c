package io.kvasir.pipeline.source;

/** How far the index's view of one (worker, rank) can be trusted. */
public enum IndexState {
    /** Nothing has been seen yet, or the first load is under way or not applied yet. */
    LOADING(0),
    /**
     * Every message of the engine's life was seen, or everything since it cleared its cache, and
     * all of it is applied.
     */
    EXACT(1),
    /**
     * Messages are missing and are being asked for, or the last ones are not applied yet: the view
     * before them serves, and lacks nothing.
     */
    RESYNC(2),
    /**
     * Nothing comes: the connection is missing, came back with an engine that may be another, or
     * the engine serves prompts and no event comes. The credit falls with the time.
     */
    STALE(3),
    /**
     * Messages are lost, or events could not be used: blocks may be missing or believed wrongly.
     */
    DEGRADED(4),
    /** There are no events: what the worker holds is predicted from what was routed to it. */
    PREDICTED(5),
    /** The source is closed. */
    GONE(6);

    private static final IndexState[] BY_NUMBER = new IndexState[values().length];

    static {
        for (IndexState state : values()) {
            BY_NUMBER[state.number] = state;
        }
    }

    private final int number;

    IndexState(int number) {
        this.number = number;
    }

    /** The number that counters and journals have for it; it never changes. */
    public int number() {
        return number;
    }

    /**
     * The state of a number.
     *
     * @return null where it is none's
     */
    public static IndexState ofNumberOrNull(long number) {
        return number < 0 || number >= BY_NUMBER.length ? null : BY_NUMBER[(int) number];
    }
}
