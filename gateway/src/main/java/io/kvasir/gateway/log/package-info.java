/**
 * What is written of requests: the record of one request, the access log, and text made fit for a
 * line of a log.
 *
 * <p>Public for the gateway's own packages. Knows {@code openai} and {@code config}. Requests put
 * entries into a bounded queue and never wait; one thread writes the access log.
 */
package io.kvasir.gateway.log;
