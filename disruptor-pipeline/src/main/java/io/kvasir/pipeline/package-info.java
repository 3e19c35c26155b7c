/**
 * Rings, writers and event sources: everything that changes the block index and the table of active
 * requests. This package is empty; the arrows among the others go one way:
 *
 * <pre>
 *   events  ──► source ──► zmtp
 *      │           └─────► wire
 *      └──► ring ◄── booking            capture (knows none of the others)
 * </pre>
 *
 * <p>Engine events travel {@code socket → EngineStream → event ring → IndexWriter → PrefixIndex};
 * bookings travel {@code caller → booking ring → BookingWriter → ActiveRequests}. Each ring has one
 * consumer thread, and that thread is the only writer of the structure that it feeds.
 */
package io.kvasir.pipeline;
