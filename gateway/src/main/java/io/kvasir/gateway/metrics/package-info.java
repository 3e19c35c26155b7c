/**
 * The page of metrics. Takes values: of the gateway's packages it knows only the workers, which
 * label series, and the record of a request.
 *
 * <p>Public for the gateway's own packages. Recording is thread-safe, takes no lock and allocates
 * nothing once a series is there; one page is written at a time.
 */
package io.kvasir.gateway.metrics;
