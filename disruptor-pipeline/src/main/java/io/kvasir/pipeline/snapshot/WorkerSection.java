package io.kvasir.pipeline.snapshot;

import io.kvasir.pipeline.source.StreamMemory;

/**
 * What a snapshot has of one (worker, rank), all of it whole.
 *
 * @param name of the worker
 * @param dpRank its data-parallel rank
 * @param blockSize tokens per block
 * @param hashSeed seed of the local hashes
 * @param mark how far it is
 * @param memory what its stream had learned
 * @param offset where its first chunk begins in the snapshot
 * @param chunks how many chunks of records it has
 * @param followedMs when a router last followed it, in ms since 1970; 0 where that is not known
 */
public record WorkerSection(
        String name,
        int dpRank,
        int blockSize,
        long hashSeed,
        SlotMark mark,
        StreamMemory memory,
        long offset,
        int chunks,
        long followedMs) {
    /** Worker and rank, as messages name them. */
    public String label() {
        return name + "/" + dpRank;
    }

    /** The same, followed at another time. */
    public WorkerSection followed(long atMs) {
        return new WorkerSection(
                name, dpRank, blockSize, hashSeed, mark, memory, offset, chunks, atMs);
    }

    /** The same in another snapshot, where it begins elsewhere. */
    public WorkerSection movedTo(long newOffset) {
        return new WorkerSection(
                name, dpRank, blockSize, hashSeed, mark, memory, newOffset, chunks, followedMs);
    }
}
