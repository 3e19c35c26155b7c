/**
 * Benchmarks. Each class states its question; results stand in {@code bench/README.md} with
 * machine, flags and commit. Designs that lost stay runnable in {@link
 * io.kvasir.bench.alternatives}.
 *
 * <p>Knows core-offheap, disruptor-pipeline, router, nixl-transfer and panama-bindings.
 */
package io.kvasir.bench;
