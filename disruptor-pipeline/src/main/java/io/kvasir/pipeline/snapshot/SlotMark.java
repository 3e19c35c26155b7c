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
 * @param position number in a stream that many share, up to which all messages of this slot's
 *     worker are in it; 0 where there is no such stream
 */
public record SlotMark(
        long sequence,
        long content,
        boolean complete,
        long heldBlocks,
        long missingBlocks,
        long turnover,
        long position) {
    /** Of a slot whose messages come in no stream that others share. */
    public SlotMark(
            long sequence,
            long content,
            boolean complete,
            long heldBlocks,
            long missingBlocks,
            long turnover) {
        this(sequence, content, complete, heldBlocks, missingBlocks, turnover, 0);
    }

    /** The same with another position. */
    public SlotMark withPosition(long inStream) {
        return new SlotMark(
                sequence, content, complete, heldBlocks, missingBlocks, turnover, inStream);
    }
}
