/**
 * Server-sent events of an engine's or a gateway's answer, cut out of the bytes of a connection.
 *
 * <p>Knows the JDK only. One thread at a time.
 */
package io.kvasir.protocol.sse;
