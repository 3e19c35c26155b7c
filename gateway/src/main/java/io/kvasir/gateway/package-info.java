/**
 * The OpenAI-compatible HTTP front: takes a completion request, turns its prompt into the tokens
 * that the engine will compute, asks the router for a worker and passes the answer through.
 *
 * <p>API: {@link io.kvasir.gateway.GatewayServer}, {@link io.kvasir.gateway.GatewayConfig}, {@link
 * io.kvasir.gateway.WorkerConfig}.
 */
package io.kvasir.gateway;
