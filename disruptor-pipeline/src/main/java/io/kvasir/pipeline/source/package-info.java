/**
 * Connections to event publishers: ZMTP 3 over TCP or Unix sockets, many on few threads (ADR 11).
 */
package io.kvasir.pipeline.source;
