package io.kvasir.router.queue;

import io.kvasir.router.Decision;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteRequest;

/**
 * A request that is to be booked, and what becomes of it. Exactly one of {@link #admitted} and
 * {@link #refused} is called, once, unless the request is cancelled; before {@link
 * RouterQueue#admit} returns on the caller's thread, or later on the queue's. Both must be quick
 * and must not wait: others wait behind them.
 */
public interface QueuedRequest {
    /**
     * Sets the prompt and its overrides. Called for each try, by one thread at a time; the same
     * each time.
     *
     * @param request empty, of the queue's router; belongs to the queue again when this returns
     */
    void fill(RouteRequest request);

    /**
     * It is booked.
     *
     * @param lease the booking, the caller's from now on
     * @param decision the reasons; the queue's again when this returns
     * @param waitedNs time from {@link RouterQueue#admit} to the try that has booked it; 0 where
     *     that was at once
     */
    void admitted(Lease lease, Decision decision, long waitedNs);

    /**
     * It is not booked, and does not wait any more.
     *
     * @param why a {@link QueueException}, a {@link io.kvasir.router.RouteException}, a {@link
     *     io.kvasir.core.memory.ClosedException} of the router, or what {@link #fill}, a cost or a
     *     policy threw: an {@link Error} as the cause of an {@link IllegalStateException}, a
     *     checked exception that is not declared as it is
     */
    void refused(Exception why);
}
