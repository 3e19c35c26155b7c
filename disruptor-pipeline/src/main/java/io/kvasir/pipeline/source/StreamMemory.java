package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DecoderMemory;

/**
 * What a stream has learned of its engine, beside the blocks.
 *
 * @param removals what removals were found to mean
 * @param decoder what the decoder has learned
 */
public record StreamMemory(RemovalRule removals, DecoderMemory decoder) {}
