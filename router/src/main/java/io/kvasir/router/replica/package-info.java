/**
 * Replica sync: routers over the same workers see each other's bookings, so that each one's load is
 * that of all and simultaneous requests do not herd.
 *
 * <p>A router broadcasts what becomes of its own bookings through a {@code ReplicaLink}, which may
 * lose, double and reorder; sums over its bookings ({@code Digest}) follow in a period. A router
 * whose copy sums up to something else asks for the list of that worker's bookings, ends what is
 * not in it, and asks for what it lacks. So a lost message is repaired within two periods, and a
 * router that joins asks for nothing else: its copy is empty.
 *
 * <pre>
 *   booking writer ──► ReplicaOutbox ──► ReplicaPublisher ──► ReplicaLink ──► other routers
 *         ▲                                                                        │
 *         └── ReplicaPort ◄── PeerTable ◄── ReplicaInbox (bounded) ◄── ReplicaLink ◄┘
 * </pre>
 *
 * <p>Threads: one, {@code kvasir-replica}, owns all but the inbox; it or the embedder's ticks call
 * {@code ReplicaSync.step}. The paths of select and reserve know nothing of this package.
 */
package io.kvasir.router.replica;
