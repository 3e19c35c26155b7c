/**
 * The servers behind the gateway: where they are found ({@link
 * io.kvasir.gateway.upstream.Discovery}), which there are ({@link
 * io.kvasir.gateway.upstream.UpstreamRegistry}), whether each is usable (breaker and probes), how
 * connections to them are made, and how an exchange with one can fail ({@link
 * io.kvasir.gateway.upstream.UpstreamFault}).
 *
 * <p>Public for the gateway's own packages. Knows {@code openai}, {@code config}, {@code log}, the
 * router and the HTTP client; no HTTP server. Thread-safe where not said otherwise; each source of
 * workers and each probed server has a thread of its own.
 */
package io.kvasir.gateway.upstream;
