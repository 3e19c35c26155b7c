package io.kvasir.router.settings;

/** Which of the requests that wait for a worker is next, all else being equal. */
public enum QueuePolicy {
    /** First come, first served. */
    FCFS,
    /** Last come, first served: while there is too much, some are served soon. */
    LCFS,
    /**
     * Weighted shortest processing time: fewest uncached tokens first, so that the mean wait is
     * short.
     */
    WSPT
}
