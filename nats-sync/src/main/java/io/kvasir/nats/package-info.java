/**
 * What goes over NATS: so far the exchange of records of transfer ends ({@link
 * io.kvasir.nats.NatsExchange}).
 *
 * <p>Knows nixl-transfer and jnats.
 */
package io.kvasir.nats;
