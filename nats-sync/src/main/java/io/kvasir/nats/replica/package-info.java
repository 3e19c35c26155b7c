/**
 * Replica sync over NATS core: a {@code ReplicaLink} whose messages about bookings routers of other
 * makes read, too (docs/spec/replica-sync.md).
 *
 * <p>Threads: one of jnats a connection delivers; any thread sends. While NATS cannot be reached,
 * messages are dropped and counted, and digests repair what was missed.
 */
package io.kvasir.nats.replica;
