package io.kvasir.router.disagg;

/** Where a request is that may be split between a prefill and a decode worker. */
public enum SplitState {
    /** A prefill worker is chosen, or it is decided not to split. */
    SELECT_PREFILL,
    /** The prefill worker computes the prompt; its answer is waited for. */
    PREFILLING,
    /** The engine's parameters are put into the request of the decode worker. */
    HANDOFF,
    /** A decode worker is chosen. */
    SELECT_DECODE,
    /** The decode worker has the request; in a rendezvous the prefill worker as well. */
    DECODING,
    /** The client has its answer. */
    DONE,
    /** The request has ended otherwise. */
    FAILED;

    /**
     * Whether nothing follows.
     *
     * @return true for {@link #DONE} and {@link #FAILED}
     */
    public boolean isEnd() {
        return this == DONE || this == FAILED;
    }
}
