/**
 * Peer records in etcd ({@link io.kvasir.registry.etcd.EtcdClient}): kept under a lease, watched by
 * prefix. Threads of its own; listeners are called on them.
 *
 * <p>Knows {@code exchange} and the room worker-registry.
 */
package io.kvasir.nixl.exchange.etcd;
