package io.kvasir.pipeline.snapshot;

/**
 * How far a worker slot is: what it holds is exact after one message of its engine.
 *
 * @param sequence number of the last message whose events it has
 * @param content what stands for the bytes of that message
 * @param complete whether nothing that was announced up to it is missing, but for lack of room
 * @param heldBlocks engine hashes that it holds
 * @param missingBlocks announced blocks that it does not hold for lack of room
 * @param turnover blocks still to be removed until none of these is missing any more
 */
public record SlotMark(
        long sequence,
        long content,
        boolean complete,
        long heldBlocks,
        long missingBlocks,
        long turnover) {}
