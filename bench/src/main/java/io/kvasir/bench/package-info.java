/**
 * Benchmarks. Each class states its question; results stand in {@code bench/README.md} with
 * machine, flags and commit. Designs that lost stay runnable in {@link
 * io.kvasir.opstreams.alternatives}.
 *
 * <p>Knows core-offheap, disruptor-pipeline, router, op-streams, nixl-transfer and panama-bindings;
 * nothing knows it.
 */
package io.kvasir.bench;
