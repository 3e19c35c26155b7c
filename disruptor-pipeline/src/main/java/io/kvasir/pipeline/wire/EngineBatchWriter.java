package io.kvasir.pipeline.wire;

import java.nio.charset.StandardCharsets;
import java.util.Objects;

/**
 * Writes events in the form in which engines publish them, byte for byte as vLLM 0.32 does: {@code
 * [timestamp, [event, ...], rank]} with each event a map.
 *
 * <pre>
 * stored:  type block_hashes parent_block_hash token_ids block_size lora_id medium lora_name
 * removed: type block_hashes medium
 * cleared: type
 * </pre>
 */
public final class EngineBatchWriter {
    private static final byte[] TYPE = EventFields.ascii("type");
    private static final byte[] BLOCK_STORED = EventFields.ascii("BlockStored");
    private static final byte[] BLOCK_REMOVED = EventFields.ascii("BlockRemoved");
    private static final byte[] ALL_BLOCKS_CLEARED = EventFields.ascii("AllBlocksCleared");
    private static final byte[] BLOCK_HASHES = EventFields.ascii("block_hashes");
    private static final byte[] PARENT = EventFields.ascii("parent_block_hash");
    private static final byte[] TOKEN_IDS = EventFields.ascii("token_ids");
    private static final byte[] BLOCK_SIZE = EventFields.ascii("block_size");
    private static final byte[] LORA_ID = EventFields.ascii("lora_id");
    private static final byte[] LORA_NAME = EventFields.ascii("lora_name");
    private static final byte[] MEDIUM = EventFields.ascii("medium");
    private static final byte[] GPU = EventFields.ascii("GPU");
    private static final int BYTES = 128;
    private static final int BYTES_PER_TOKEN = 5;

    private EngineBatchWriter() {}

    /**
     * A batch with a store of consecutive blocks.
     *
     * @param timestamp seconds since 1970
     * @param dpRank data-parallel rank
     * @param tokenIds tokens of all blocks; a whole number of blocks
     * @param blockHashes the engine's hash of each block
     * @param parentHash hash of the block before the first one; null at the start of a prompt
     * @param loraName name of the adapter; null for none
     * @throws IllegalArgumentException if the tokens are not blocks of one size
     */
    public static byte[] stored(
            double timestamp,
            int dpRank,
            int[] tokenIds,
            long[] blockHashes,
            Long parentHash,
            String loraName) {
        if (blockHashes.length == 0 || tokenIds.length % blockHashes.length != 0) {
            throw new IllegalArgumentException(
                    tokenIds.length + " tokens are not " + blockHashes.length + " whole blocks");
        }
        final MsgpackWriter out = begin(timestamp, tokenIds.length + 2 * blockHashes.length);
        out.map(8).text(TYPE).text(BLOCK_STORED);
        hashes(out, blockHashes);
        out.text(PARENT);
        if (parentHash == null) {
            out.nil();
        } else {
            out.unsigned(parentHash);
        }
        out.text(TOKEN_IDS).array(tokenIds.length);
        for (int token : tokenIds) {
            out.unsigned(Integer.toUnsignedLong(token));
        }
        out.text(BLOCK_SIZE).unsigned(tokenIds.length / blockHashes.length);
        out.text(LORA_ID).nil();
        out.text(MEDIUM).text(GPU);
        out.text(LORA_NAME);
        if (loraName == null || loraName.isEmpty()) {
            out.nil();
        } else {
            out.text(loraName.getBytes(StandardCharsets.UTF_8));
        }
        return out.unsigned(dpRank).toArray();
    }

    /**
     * A batch with a removal.
     *
     * @param timestamp seconds since 1970
     * @param dpRank data-parallel rank
     * @param blockHashes the engine's hashes of the removed blocks
     */
    public static byte[] removed(double timestamp, int dpRank, long[] blockHashes) {
        Objects.requireNonNull(blockHashes);
        final MsgpackWriter out = begin(timestamp, 2 * blockHashes.length);
        out.map(3).text(TYPE).text(BLOCK_REMOVED);
        hashes(out, blockHashes);
        out.text(MEDIUM).text(GPU);
        return out.unsigned(dpRank).toArray();
    }

    /**
     * A batch that says that all blocks are removed.
     *
     * @param timestamp seconds since 1970
     * @param dpRank data-parallel rank
     */
    public static byte[] cleared(double timestamp, int dpRank) {
        return begin(timestamp, 0)
                .map(1)
                .text(TYPE)
                .text(ALL_BLOCKS_CLEARED)
                .unsigned(dpRank)
                .toArray();
    }

    private static MsgpackWriter begin(double timestamp, int numbers) {
        return new MsgpackWriter(BYTES + BYTES_PER_TOKEN * numbers)
                .array(3)
                .real(timestamp)
                .array(1);
    }

    private static void hashes(MsgpackWriter out, long[] blockHashes) {
        out.text(BLOCK_HASHES).array(blockHashes.length);
        for (long hash : blockHashes) {
            out.unsigned(hash);
        }
    }
}
