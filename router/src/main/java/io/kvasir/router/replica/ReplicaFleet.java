package io.kvasir.router.replica;

/**
 * The workers of a router as replica sync needs them: which slot a worker has, and whose a slot is.
 * Any thread.
 */
public interface ReplicaFleet {
    /**
     * A worker's slot at this moment.
     *
     * @param slot worker slot
     * @param slotGeneration which tenant of the slot
     * @param predicted whether the worker is taken to hold what is booked on it
     */
    record Slot(int slot, int slotGeneration, boolean predicted) {}

    /** Where a worker is; null where it is not registered. */
    Slot find(ReplicaWorker worker);

    /** Whose slot it is; null unless the tenant of that generation is registered. */
    ReplicaWorker at(int slot, int slotGeneration);

    /** Another object whenever the set of workers is another. */
    Object version();
}
