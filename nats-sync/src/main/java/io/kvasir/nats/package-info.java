/**
 * What goes over NATS: the exchange of records of transfer ends ({@link
 * io.kvasir.nats.NatsExchange}) and registrations of workers ({@link io.kvasir.nats.NatsStore});
 * events of workers' caches are in {@code .events}, bookings of router replicas in {@code
 * .replica}.
 *
 * <p>Knows router, disruptor-pipeline, nixl-transfer, worker-registry and jnats.
 */
package io.kvasir.nats;
