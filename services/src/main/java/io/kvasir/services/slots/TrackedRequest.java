package io.kvasir.services.slots;

/**
 * A request that is running.
 *
 * @param group whose it is
 * @param id its name there
 * @param worker id of its worker
 * @param dpRank rank that it runs on
 * @param slot of that rank
 * @param number in the table of active requests
 */
record TrackedRequest(
        TrackedGroup group, String id, long worker, long dpRank, int slot, long number) {}
