/**
 * Traces of requests for OpenTelemetry: one span for the client's request and one for each worker
 * that is asked, which carry the client's trace on. Without a collector that is set, nothing here
 * does anything and trace headers pass through as they are.
 *
 * <p>{@code Tracing} is what all requests share, {@code RequestTrace} one request's, {@code
 * LegTrace} that of one worker that is asked for it.
 */
package io.kvasir.gateway.trace;
