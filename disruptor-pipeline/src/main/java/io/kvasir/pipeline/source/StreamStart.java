package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DecoderMemory;

import java.util.Objects;

/**
 * Where the stream of a slot goes on whose blocks were restored from a snapshot.
 *
 * @param sequence number of the last message whose events the slot has
 * @param content what stands for the bytes of that message: other bytes under its number prove
 *     another life of the engine
 * @param complete whether nothing that was announced up to it is missing
 * @param missingBlocks announced blocks that the index had no room for
 * @param removals what removals were found to mean, {@link RemovalRule#PHYSICAL} or {@link
 *     RemovalRule#LAST_COPY}
 * @param memory what the decoder had learned
 */
public record StreamStart(
        long sequence,
        long content,
        boolean complete,
        long missingBlocks,
        RemovalRule removals,
        DecoderMemory memory) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if the number is negative
     */
    public StreamStart {
        Objects.requireNonNull(removals, "removals");
        Objects.requireNonNull(memory, "memory");
        if (sequence < 0) {
            throw new IllegalArgumentException("no message has the number " + sequence);
        }
    }
}
