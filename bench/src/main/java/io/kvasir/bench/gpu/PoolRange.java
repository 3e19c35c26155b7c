package io.kvasir.bench.gpu;

/**
 * Where a pool lies, for descriptors.
 *
 * @param address its first byte
 * @param length bytes
 * @param device 0 for host memory, else the GPU's ordinal
 */
record PoolRange(long address, long length, int device) {}
