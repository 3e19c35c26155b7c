package io.kvasir.router;

import java.util.Arrays;

/** The registered workers at one moment. Immutable. */
final class WorkerSet {
    static final WorkerSet EMPTY =
            new WorkerSet(new Worker[0], new Worker[0], new long[0], new long[0][]);

    private final Worker[] workers;
    private final Worker[] bySlot;
    private final long[] slots; // one bit a slot
    private final long[][] tainted; // by taint: one bit a slot, as far as there are any

    private WorkerSet(Worker[] workers, Worker[] bySlot, long[] slots, long[][] tainted) {
        this.workers = workers;
        this.bySlot = bySlot;
        this.slots = slots;
        this.tainted = tainted;
    }

    /** Copies arrays; reads no other worker. */
    WorkerSet with(Worker worker) {
        final int slot = worker.slot();
        final Worker[] more = Arrays.copyOf(workers, workers.length + 1);
        more[workers.length] = worker;
        final Worker[] moreBySlot = Arrays.copyOf(bySlot, Math.max(bySlot.length, slot + 1));
        moreBySlot[slot] = worker;
        return new WorkerSet(more, moreBySlot, with(slots, slot), taintedWith(worker));
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
        return new WorkerSet(fewer, fewerBySlot, fewerSlots, taintedWithout(worker));
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
