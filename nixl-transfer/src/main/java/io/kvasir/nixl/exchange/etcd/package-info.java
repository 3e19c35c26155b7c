/**
 * Peer records in etcd, over its JSON gateway and the JDK's HTTP client: kept under a lease,
 * watched by prefix. Threads of its own; listeners are called on them.
 *
 * <p>Knows {@code exchange} and Jackson.
 */
package io.kvasir.nixl.exchange.etcd;
