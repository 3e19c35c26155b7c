/**
 * What a gateway is started with: the table of settings, the configuration file, workers as they
 * are described, secrets.
 *
 * <p>API: {@link io.kvasir.gateway.config.GatewayConfig}, {@link
 * io.kvasir.gateway.config.GatewaySettings}, {@link io.kvasir.gateway.config.WorkerConfig}, the
 * types of the settings, and {@link io.kvasir.gateway.config.GatewayException} for what is wrong
 * with them; other public types are for the gateway's own packages. Knows the router's settings and
 * none of the gateway's other packages. Values are immutable; {@link
 * io.kvasir.gateway.config.BearerTokens} are read anew by any thread.
 */
package io.kvasir.gateway.config;
