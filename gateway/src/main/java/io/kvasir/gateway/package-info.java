/**
 * The OpenAI-compatible HTTP front: takes a completion request, turns its prompt into the tokens
 * that the engine will compute, asks the router for a worker and passes the answer through.
 *
 * <p>API: {@link io.kvasir.gateway.GatewayServer}, started with a {@link
 * io.kvasir.gateway.config.GatewayConfig}.
 *
 * <p>This package puts the others together and has the endpoints of both ports. Each knows only
 * those that follow it: root, {@code proxy}, {@code server} and {@code routing}, {@code metrics},
 * {@code upstream}, {@code log}, {@code config}, {@code openai}; the two named together do not know
 * each other.
 */
package io.kvasir.gateway;
