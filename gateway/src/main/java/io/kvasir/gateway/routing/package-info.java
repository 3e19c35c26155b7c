/**
 * From a parsed request to a booked worker: reading of prompts into tokens on a bounded set of
 * threads ({@link io.kvasir.gateway.routing.PromptExecutor}), overrides by headers, the reservation
 * and the record of why ({@link io.kvasir.gateway.routing.DecisionRecord}).
 *
 * <p>Public for the gateway's own packages. Uses no HTTP server: a picker of endpoints that gets
 * requests another way needs this package and {@code openai}. Reservations and the log of decisions
 * are thread-safe.
 */
package io.kvasir.gateway.routing;
