package io.kvasir.router;

import java.util.Arrays;

/**
 * The registered workers at one moment. Immutable. One more worker costs a copy of one bit for each
 * slot, and no copy of the others: {@link WorkerArray}.
 */
final class WorkerSet {
    static final WorkerSet EMPTY =
            new WorkerSet(WorkerArray.EMPTY, WorkerArray.EMPTY, new long[0], new long[0][]);

    private final WorkerArray workers;
    private final WorkerArray bySlot;
    private final long[] slots; // one bit a slot
    private final long[][] tainted; // by taint: one bit a slot, as far as there are any

    private WorkerSet(WorkerArray workers, WorkerArray bySlot, long[] slots, long[][] tainted) {
        this.workers = workers;
        this.bySlot = bySlot;
        this.slots = slots;
        this.tainted = tainted;
    }

    /** Reads no other worker. Sets that come of one another are made by one thread at a time. */
    WorkerSet with(Worker worker) {
        final int slot = worker.slot();
        return new WorkerSet(
                workers.with(workers.length(), worker),
                bySlot.with(slot, worker),
                with(slots, slot),
                taintedWith(worker));
    }

    private static long[] with(long[] bits, int slot) {
        final long[] more = Arrays.copyOf(bits, Math.max(bits.length, slot / Long.SIZE + 1));
        more[slot / Long.SIZE] |= 1L << slot;
        return more;
    }

    private long[][] taintedWith(Worker worker) {
        if (worker.taints() == 0) {
            return tainted;
        }
        final int end = Long.SIZE - Long.numberOfLeadingZeros(worker.taints());
        final long[][] more = Arrays.copyOf(tainted, Math.max(tainted.length, end));
        Arrays.fill(more, tainted.length, more.length, new long[0]);
        for (long rest = worker.taints(); rest != 0; rest &= rest - 1) {
            final int taint = Long.numberOfTrailingZeros(rest);
            more[taint] = with(more[taint], worker.slot());
        }
        return more;
    }

    WorkerSet without(Worker worker) {
        final Worker[] fewer =
                Arrays.stream(workers.copy()).filter(w -> w != worker).toArray(Worker[]::new);
        int end = bySlot.length();
        while (end > 0 && (bySlot.get(end - 1) == null || bySlot.get(end - 1) == worker)) {
            end--;
        }
        final Worker[] fewerBySlot = Arrays.copyOf(bySlot.copy(), end);
        final long[] fewerSlots = Arrays.copyOf(slots, (end + Long.SIZE - 1) / Long.SIZE);
        if (worker.slot() < end) {
            fewerBySlot[worker.slot()] = null;
        }
        final int group = worker.slot() / Long.SIZE;
        if (group < fewerSlots.length) {
            fewerSlots[group] &= ~(1L << worker.slot());
        }
        return new WorkerSet(
                WorkerArray.of(fewer),
                WorkerArray.of(fewerBySlot),
                fewerSlots,
                taintedWithout(worker));
    }

    private long[][] taintedWithout(Worker worker) {
        if (worker.taints() == 0) {
            return tainted;
        }
        final long[][] fewer = tainted.clone();
        for (long rest = worker.taints(); rest != 0; rest &= rest - 1) {
            final int taint = Long.numberOfTrailingZeros(rest);
            fewer[taint] = fewer[taint].clone();
            fewer[taint][worker.slot() / Long.SIZE] &= ~(1L << worker.slot());
        }
        return fewer;
    }

    int size() {
        return workers.length();
    }

    /** The i-th in order of registration. */
    Worker worker(int i) {
        return workers.get(i);
    }

    /** All of them in order of registration: a copy. */
    Worker[] workers() {
        return workers.copy();
    }

    /** The worker of a slot; null when none was registered there. */
    Worker at(int slot) {
        return slot < bySlot.length() ? bySlot.get(slot) : null;
    }

    /** One more than the highest slot. */
    int slotEnd() {
        return bySlot.length();
    }

    /** Number of groups of 64 slots that hold all of them. */
    int groups() {
        return slots.length;
    }

    /** Registered slots of a group of 64, one bit each, lowest first. */
    long slots(int group) {
        return slots[group];
    }

    /** Slots of a group whose workers have one of some taints. */
    long tainted(long taints, int group) {
        long bits = 0;
        for (long rest = taints; rest != 0; rest &= rest - 1) {
            final int taint = Long.numberOfTrailingZeros(rest);
            if (taint < tainted.length && group < tainted[taint].length) {
                bits |= tainted[taint][group];
            }
        }
        return bits;
    }
}
