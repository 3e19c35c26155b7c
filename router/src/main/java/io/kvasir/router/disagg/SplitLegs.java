package io.kvasir.router.disagg;

/**
 * What a {@link SplitFlow} has done to workers. The flow calls one method at a time, in the order
 * of its events; none may block, and each may report to the flow before it returns.
 *
 * <p>{@code attempt} numbers the prefills of one request from 1, {@code decode} the decode workers
 * that are booked for it. An event that names another one than the current is late and ignored by
 * the flow. So {@link #freePrefill} is about all that there is of an attempt and all that comes of
 * it later: a booking that is made after it is released by the legs, an answer that comes after it
 * is thrown away and its blocks are freed. {@link #abortDecode} likewise.
 *
 * <p>What is begun is reported on in a time of its own that the legs see to; only a prefill has a
 * deadline of the flow.
 */
public interface SplitLegs {
    /**
     * Decides whether to split, and books a prefill worker. Reports {@link
     * SplitFlow#prefillChosen}, {@link SplitFlow#notSplit} or {@link SplitFlow#prefillFailed}.
     *
     * @param attempt of the prefill that may begin
     */
    void choosePrefill(int attempt);

    /**
     * Sends the prompt to the booked prefill worker. Reports {@link SplitFlow#prefillAnswered} or
     * {@link SplitFlow#prefillFailed}.
     *
     * @param attempt of the worker that is booked
     */
    void sendPrefill(int attempt);

    /**
     * Makes the request of the decode worker out of what the prefill worker has answered, or out of
     * the rendezvous. Reports {@link SplitFlow#handedOver}, {@link SplitFlow#prefillComplete} or
     * {@link SplitFlow#prefillFailed}.
     *
     * @param attempt of the prefill that has answered
     */
    void handOver(int attempt);

    /**
     * Answers the client with what the prefill worker has answered.
     *
     * @param attempt of the prefill that is complete
     */
    void answer(int attempt);

    /**
     * Books a decode worker. Reports {@link SplitFlow#decodeChosen} or {@link
     * SplitFlow#decodeFailed}.
     *
     * @param decode its number
     * @param split whether it fetches the blocks; false: it computes the prompt, too
     */
    void chooseDecode(int decode, boolean split);

    /**
     * Sends the request to the booked decode worker; in a rendezvous that of the prefill worker
     * first, unless it was sent for a decode worker before. Reports {@link
     * SplitFlow#decodeStarted}, {@link SplitFlow#decodeDone}, {@link SplitFlow#decodeUnsent} or
     * {@link SplitFlow#decodeFailed}.
     */
    void sendDecode();

    /**
     * The decode worker has fetched the blocks, which need not be freed any more. The prefill's
     * request in a rendezvous may not have ended yet: the legs see to it that it does.
     */
    void blocksFetched();

    /**
     * Whether there is a worker that can compute the prompt and answer, too. Asked when a leg has
     * failed and that is the fallback; of some engines no decode worker can.
     *
     * @return whether {@link FallbackPolicy#DECODE_ONLY} is possible
     */
    boolean canAnswerAlone();

    /** Ends the decode worker's request and its booking, if there are any. */
    void abortDecode();

    /**
     * Ends a prefill's request and its booking, and has the worker free the blocks that it holds,
     * or will turn out to hold.
     *
     * @param attempt of the prefill; one that never began needs nothing
     */
    void freePrefill(int attempt);

    /**
     * A leg of a split request has failed. For counting: what is to be done is asked for by the
     * other methods.
     *
     * @param failure what happened
     * @param next what follows: {@link SplitEvent#DECODE_ALONE}, {@link SplitEvent#PREFILL_AGAIN},
     *     {@link SplitEvent#GIVE_UP}, or {@link SplitEvent#ABANDONED} where the client has a part
     *     of the answer
     */
    void failed(LegFailure failure, SplitEvent next);

    /**
     * The request has failed: the client is to be answered.
     *
     * @param failure that nothing else was tried after
     */
    void report(LegFailure failure);
}
