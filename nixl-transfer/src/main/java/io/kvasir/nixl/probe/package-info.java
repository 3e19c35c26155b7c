/**
 * What transfers reach on this machine: two ends ({@link io.kvasir.nixl.probe.TransferEnd} here,
 * {@link io.kvasir.nixl.probe.TransferPeer} in a process of its own), requests of one size after
 * the other between them, and probes that say which backends open and which lanes UCX chooses.
 * {@code kvasir nixl} prints their results; benchmarks use the ends.
 *
 * <p>Each object belongs to one thread. What may end its process runs in a child JVM.
 */
package io.kvasir.nixl.probe;
