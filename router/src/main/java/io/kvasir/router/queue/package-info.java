/**
 * Admission: requests that no worker has room for wait, and are booked when one has. A contract of
 * its own beside {@link io.kvasir.router.KvRouter#reserve}, which never waits. Stands on the
 * router's public API alone, and nothing of the router stands on it.
 *
 * <p>{@link io.kvasir.router.queue.RouterQueue} is the way in. The {@code WaitingRoom} has what
 * waits, in order; {@code Entry} is one of these and has one outcome, the first that is reached;
 * {@code PrefixFlights} has the prompts that are being computed and that others can follow.
 *
 * <p>Threads: any thread admits and cancels. One thread of the queue books what has waited; where
 * the embedder ticks, its calls of {@link io.kvasir.router.queue.RouterQueue#step} do. The booking
 * writer and callers that release a booking set a bit and wake that thread.
 */
package io.kvasir.router.queue;
