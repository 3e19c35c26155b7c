/**
 * Connections to event publishers: ZMTP 3 over TCP or Unix sockets, many on few threads (ADR 11).
 * Knows frames, not events. What belongs to a {@link io.kvasir.pipeline.zmtp.SocketPoller} is
 * called on its thread only.
 */
package io.kvasir.pipeline.zmtp;
