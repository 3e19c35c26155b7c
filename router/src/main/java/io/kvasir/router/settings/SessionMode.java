package io.kvasir.router.settings;

/** What a session's worker means for its next request. */
public enum SessionMode {
    /** It is chosen as long as it is a candidate. */
    HARD,
    /**
     * It is chosen as long as its load, in blocks to prefill and in use, exceeds the least of all
     * candidates by no more than the prompt's own blocks: what it would cost to begin elsewhere.
     */
    SOFT
}
