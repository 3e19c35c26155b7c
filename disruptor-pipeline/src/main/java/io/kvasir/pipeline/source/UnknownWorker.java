package io.kvasir.pipeline.source;

/**
 * A worker that speaks on an {@link EventPlane} and has no stream there.
 *
 * @param workerId the worker, 64 unsigned bits
 * @param dpRank its data-parallel rank
 * @param events events of it that were left out
 */
public record UnknownWorker(long workerId, int dpRank, long events) {}
