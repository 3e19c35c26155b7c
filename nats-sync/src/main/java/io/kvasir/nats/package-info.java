/**
 * What goes over NATS: the exchange of records of transfer ends ({@link
 * io.kvasir.nats.NatsExchange}); events of workers' caches are in {@code .events}.
 *
 * <p>Knows disruptor-pipeline, nixl-transfer and jnats.
 */
package io.kvasir.nats;
