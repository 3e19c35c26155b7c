/**
 * Transfers of GPU memory on one machine with one GPU, measured: what {@code
 * nixl-transfer/gpu/run.sh} starts. Uses the bindings and the JDK's {@code java.base} only, because
 * the runtime that the script takes to a bare machine has no more.
 */
package io.kvasir.bench.gpu;
