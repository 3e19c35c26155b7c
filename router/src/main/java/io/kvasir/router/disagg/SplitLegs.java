package io.kvasir.router.disagg;

/**
 * What a {@link SplitFlow} has done to workers. The flow calls one method at a time, in the order
 * of its events; none may block, and each may report to the flow before it returns.
 *
 * <p>{@code attempt} numbers the prefills of one request from 1. An event that names another
 * attempt than the current one is late and ignored by the flow.
 */
public interface SplitLegs {
    /**
     * Decides whether to split, and books a prefill worker. Reports {@link
     * SplitFlow#prefillChosen}, {@link SplitFlow#notSplit} or {@link SplitFlow#prefillFailed}.
     *
     * @param attempt its number
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
     * the rendezvous. Reports {@link SplitFlow#handedOver} or {@link SplitFlow#prefillFailed}.
     *
     * @param attempt of the prefill that has answered
     */
    void handOver(int attempt);

    /**
     * Books a decode worker. Reports {@link SplitFlow#decodeChosen} or {@link
     * SplitFlow#decodeFailed}.
     *
     * @param split whether it fetches the blocks; false: it computes the prompt, too
     */
    void chooseDecode(boolean split);

    /**
     * Sends the request to the booked decode worker; in a rendezvous that of the prefill worker
     * first, unless it was sent for a decode worker before. Reports {@link
     * SplitFlow#decodeStarted}, {@link SplitFlow#decodeDone}, {@link SplitFlow#decodeUnsent} or
     * {@link SplitFlow#decodeFailed}.
     */
    void sendDecode();

    /** The decode worker has fetched the blocks of the current prefill. */
    void blocksFetched();

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
     * The request has failed: the client is to be answered.
     *
     * @param failure that nothing else was tried after
     */
    void report(LegFailure failure);
}
