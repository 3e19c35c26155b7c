package io.kvasir.services.slots;

/** A registered worker and the slots of its ranks, in their order. */
final class TrackedWorker {
    final long id;
    final long firstRank;
    final int[] slots;

    TrackedWorker(long id, long firstRank, int[] slots) {
        this.id = id;
        this.firstRank = firstRank;
        this.slots = slots;
    }

    /** Slot of a rank; −1 where it has no such rank. */
    int slotOf(long dpRank) {
        final long index = dpRank - firstRank;
        return index < 0 || index >= slots.length ? -1 : slots[(int) index];
    }
}
