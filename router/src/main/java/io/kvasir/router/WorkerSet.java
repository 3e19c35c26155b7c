package io.kvasir.router;

import java.util.Arrays;

/** The registered workers at one moment. Immutable. */
final class WorkerSet {
    static final WorkerSet EMPTY = new WorkerSet(new Worker[0], new Worker[0], new long[0]);

    private final Worker[] workers;
    private final Worker[] bySlot;
    private final long[] slots; // one bit a slot

    private WorkerSet(Worker[] workers, Worker[] bySlot, long[] slots) {
        this.workers = workers;
        this.bySlot = bySlot;
        this.slots = slots;
    }

    /** Copies arrays; reads no other worker. */
    WorkerSet with(Worker worker) {
        final int slot = worker.slot();
        final Worker[] more = Arrays.copyOf(workers, workers.length + 1);
        more[workers.length] = worker;
        final Worker[] moreBySlot = Arrays.copyOf(bySlot, Math.max(bySlot.length, slot + 1));
        moreBySlot[slot] = worker;
        final long[] moreSlots = Arrays.copyOf(slots, Math.max(slots.length, slot / Long.SIZE + 1));
        moreSlots[slot / Long.SIZE] |= 1L << slot;
        return new WorkerSet(more, moreBySlot, moreSlots);
    }

    WorkerSet without(Worker worker) {
        final Worker[] fewer =
                Arrays.stream(workers).filter(w -> w != worker).toArray(Worker[]::new);
        int end = bySlot.length;
        while (end > 0 && (bySlot[end - 1] == null || bySlot[end - 1] == worker)) {
            end--;
        }
        final Worker[] fewerBySlot = Arrays.copyOf(bySlot, end);
        final long[] fewerSlots = Arrays.copyOf(slots, (end + Long.SIZE - 1) / Long.SIZE);
        if (worker.slot() < end) {
            fewerBySlot[worker.slot()] = null;
        }
        final int group = worker.slot() / Long.SIZE;
        if (group < fewerSlots.length) {
            fewerSlots[group] &= ~(1L << worker.slot());
        }
        return new WorkerSet(fewer, fewerBySlot, fewerSlots);
    }

    int size() {
        return workers.length;
    }

    /** The i-th in order of registration. */
    Worker worker(int i) {
        return workers[i];
    }

    /** All of them in order of registration; not to be changed. */
    Worker[] workers() {
        return workers;
    }

    /** The worker of a slot; null when none was registered there. */
    Worker at(int slot) {
        return slot < bySlot.length ? bySlot[slot] : null;
    }

    /** One more than the highest slot. */
    int slotEnd() {
        return bySlot.length;
    }

    /** Number of groups of 64 slots that hold all of them. */
    int groups() {
        return slots.length;
    }

    /** Registered slots of a group of 64, one bit each, lowest first. */
    long slots(int group) {
        return slots[group];
    }
}
