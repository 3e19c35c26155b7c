package io.kvasir.opstreams.kvops;

/**
 * What a KVOPS file says about itself.
 *
 * @param blockTokens tokens per block
 * @param workers workers, {@value #MAX_WORKERS} at most; their numbers are 0..workers-1
 * @param capacity blocks that one worker's cache holds
 * @param records records of all kinds
 * @param queries QUERY records
 * @param stored STORED records
 * @param removed REMOVED records
 * @param queryBlocks blocks of all queries
 * @param storedBlocks blocks of all stores
 * @param removedBlocks blocks of all removals
 * @param routed ROUTED records, one a request
 * @param seed of the generator
 * @param flags sum of the flags below
 * @param maxQuery blocks of the longest query
 * @param maxEvent blocks of the longest store or removal
 */
public record KvopsHeader(
        int blockTokens,
        int workers,
        long capacity,
        long records,
        long queries,
        long stored,
        long removed,
        long queryBlocks,
        long storedBlocks,
        long removedBlocks,
        long routed,
        long seed,
        long flags,
        int maxQuery,
        int maxEvent) {
    /** Largest number of workers. */
    public static final int MAX_WORKERS = 1 << 16;

    /** Flag: each query carries the checksum of its answer. */
    public static final long CHECKSUMS = 1;

    /** Flag: names of blocks are their sequence hashes. */
    public static final long CHAINED_NAMES = 2;

    /** Flag: output blocks are stored too. */
    public static final long DECODE_STORES = 4;

    /** Flag: a block is held while it was stored more often than removed. */
    public static final long COUNTED_COPIES = 8;

    /** Flag: every worker names blocks its own way. */
    public static final long SALTED_NAMES = 16;

    /** Whether all of the given flags are set. */
    public boolean has(long wanted) {
        return (flags & wanted) == wanted;
    }

    /** Blocks of all stores and removals: what cost per block is divided by. */
    public long eventBlocks() {
        return storedBlocks + removedBlocks;
    }
}
