package io.kvasir.router.disagg;

/** What happens to a request that may be split. */
public enum SplitEvent {
    /** A prefill worker is booked; its answer will carry the parameters for the decode worker. */
    PREFILL_CHOSEN,
    /** A prefill worker is booked that meets the decode worker: both get the request at once. */
    RENDEZVOUS_CHOSEN,
    /** The prefill worker has answered. */
    PREFILL_ANSWERED,
    /** The prefill worker's answer is the client's: the first token was the last. */
    PREFILL_COMPLETE,
    /** The request of the decode worker is ready. */
    HANDED_OVER,
    /** A decode worker is booked. */
    DECODE_CHOSEN,
    /** The decode worker answers, so it has fetched the blocks. */
    DECODE_STARTED,
    /** No decode worker has got the request: its parameters are still good for another one. */
    DECODE_UNSENT,
    /** The answer is complete. */
    DECODE_DONE,
    /** A leg failed, or splitting is not worth it: a decode worker computes the prompt, too. */
    DECODE_ALONE,
    /** A leg failed: the prompt is computed by a prefill worker again. */
    PREFILL_AGAIN,
    /** A leg failed, and nothing else is tried. */
    GIVE_UP,
    /** The client has left, or the gateway ends. */
    ABANDONED
}
