/**
 * One inference request on its way: attempts at workers, retries, the response passed to the
 * client, and what is learned from it.
 *
 * <p>Public for the gateway's own packages: {@link io.kvasir.gateway.proxy.ProxyExchange} and what
 * it is made of. The highest package below the root. After the start of an exchange everything runs
 * on I/O threads and nothing blocks; an exchange's state is guarded by it, an attempt's outcomes
 * come one at a time.
 */
package io.kvasir.gateway.proxy;
