package io.kvasir.router.settings;

/** What requests do that begin with uncached blocks which another one's worker is computing. */
public enum SingleFlight {
    /** They are routed as any other. */
    OFF,
    /** They wait until the prompt is computed. */
    WAIT,
    /** That worker counts for them as one that holds the blocks. */
    DRAW
}
