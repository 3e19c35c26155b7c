package io.kvasir.router.disagg;

/** What is done when a request that may be split goes from one state to the next. */
public enum SplitAction {
    /** Decide whether to split, and book a prefill worker. */
    CHOOSE_PREFILL,
    /** Send the prompt to the prefill worker. */
    SEND_PREFILL,
    /** Put the parameters into the request of the decode worker. */
    HAND_OVER,
    /** Answer with what the prefill worker has answered. */
    ANSWER,
    /** Book a decode worker. */
    CHOOSE_DECODE,
    /** Send the request to the decode worker; in a rendezvous that of the prefill worker first. */
    SEND_DECODE,
    /** The prefill worker's blocks have been fetched: nothing is left to be freed. */
    BLOCKS_FETCHED,
    /** End the decode worker's request, if there is one. */
    ABORT_DECODE,
    /** End the prefill worker's request if it runs; free the blocks that it holds or will hold. */
    FREE_PREFILL,
    /** Answer with the failure that ended the request. */
    REPORT
}
