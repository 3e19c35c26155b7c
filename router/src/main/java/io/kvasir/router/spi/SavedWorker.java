package io.kvasir.router.spi;

/**
 * One (worker, dp rank) of a snapshot, and how far it is.
 *
 * @param name of the worker
 * @param dpRank its data-parallel rank
 * @param url where requests for it go
 * @param id its number, unsigned; shared by its ranks
 * @param generation number of the tenant of its slot
 * @param lastEvent number of the last message of its engine that the snapshot has
 * @param digest what stands for the bytes of that message
 */
public record SavedWorker(
        String name,
        int dpRank,
        String url,
        long id,
        long generation,
        long lastEvent,
        long digest) {}
