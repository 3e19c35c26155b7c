package io.kvasir.router.queue;

/** The caller's hold on a request that waits. Any thread. */
public interface QueueTicket {
    /**
     * Gives the request up. Frees what it takes of the queue at once.
     *
     * @return true if it will be neither admitted nor refused; false if it was, or was cancelled
     *     before
     */
    boolean cancel();

    /**
     * Whether its outcome is open.
     *
     * @return false once it is admitted, refused or cancelled
     */
    boolean isWaiting();
}
