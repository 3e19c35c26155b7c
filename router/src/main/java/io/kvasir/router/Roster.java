package io.kvasir.router;

import java.util.Arrays;

/** The registered workers at one moment. Immutable. */
final class Roster {
    static final Roster EMPTY = new Roster(new Worker[0]);

    private final Worker[] workers;
    private final Worker[] bySlot;
    private final long[] slots; // one bit a slot

    private Roster(Worker[] workers) {
        this.workers = workers;
        int end = 0;
        for (Worker worker : workers) {
            end = Math.max(end, worker.slot() + 1);
        }
        bySlot = new Worker[end];
        slots = new long[(end + Long.SIZE - 1) / Long.SIZE];
        for (Worker worker : workers) {
            bySlot[worker.slot()] = worker;
            slots[worker.slot() / Long.SIZE] |= 1L << worker.slot();
        }
    }

    Roster with(Worker worker) {
        final Worker[] more = Arrays.copyOf(workers, workers.length + 1);
        more[workers.length] = worker;
        return new Roster(more);
    }

    Roster without(Worker worker) {
        return new Roster(Arrays.stream(workers).filter(w -> w != worker).toArray(Worker[]::new));
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
