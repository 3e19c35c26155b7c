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
     * @param predicted whether the worker is taken to hold what is booked on it at this moment
     */
    record Slot(int slot, int slotGeneration, boolean predicted) {}

    /** Where a worker is; null where it is not registered. */
    Slot find(ReplicaWorker worker);

    /**
     * Whether the worker of a slot is taken to hold what is booked on it from now on: it may have
     * got events since its slot was found.
     */
    default boolean isPredicted(Slot slot) {
        return slot.predicted();
    }

    /** Whose slot it is; null unless the tenant of that generation is registered. */
    ReplicaWorker at(int slot, int slotGeneration);

    /** Another object whenever the set of workers is another. */
    Object version();
}
