package io.kvasir.pipeline.source;

import java.util.Objects;

/**
 * Where the stream of a slot continues whose blocks were restored from a snapshot.
 *
 * @param sequence number of the last message whose events the slot has
 * @param content what stands for the bytes of that message: other bytes under its number prove
 *     another life of the engine
 * @param complete whether nothing that was announced up to it is missing
 * @param missingBlocks announced blocks that the index had no room for
 * @param memory what its stream had learned
 */
public record StreamStart(
        long sequence, long content, boolean complete, long missingBlocks, StreamMemory memory) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if the number is negative
     */
    public StreamStart {
        Objects.requireNonNull(memory, "memory");
        if (sequence < 0) {
            throw new IllegalArgumentException("no message has the number " + sequence);
        }
    }
}
