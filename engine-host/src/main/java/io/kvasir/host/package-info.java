/**
 * Engines written in Java. An author implements {@link io.kvasir.host.Generator}; an {@link
 * io.kvasir.host.EngineHost} serves it over the OpenAI API, as gateways ask vLLM's servers, and
 * registers it under a lease.
 *
 * <p>Knows registrations; no index, no router. Cache events are published beside it, by whatever
 * publisher the author takes; {@link io.kvasir.host.EngineHost.Builder#register} says where they
 * are.
 */
package io.kvasir.host;
