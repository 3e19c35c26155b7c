/**
 * Rings, writers and event sources: everything that changes the block index and the table of active
 * requests.
 *
 * <p>Engine events travel {@code socket → EngineStream → event ring → IndexWriter → PrefixIndex};
 * bookings travel {@code caller → booking ring → BookingWriter → ActiveRequests}. Each ring has one
 * consumer thread, and that thread is the only writer of the structure behind it.
 */
package io.kvasir.pipeline;
