/**
 * The client's side of HTTP: ports, their connections and limits, admission and bodies of requests,
 * the gateway's own responses, whether a client is still there, and which callers are trusted.
 *
 * <p>Public for the gateway's own packages. Knows {@code openai}, {@code config}, {@code log} and
 * {@code metrics}; neither workers nor routing. Handlers that answer by themselves run on I/O
 * threads and do not block; bodies are read on virtual threads.
 */
package io.kvasir.gateway.server;
