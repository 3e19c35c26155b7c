package io.kvasir.router;

import io.kvasir.core.radix.OverlapScores;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.function.IntToLongFunction;

/**
 * What the workers of one router are marked with, as sets of slots: labels and named taints, which
 * they are registered with, and adapters, which change. Changes take the lock of this object, a
 * leaf; readers take none.
 *
 * <p>A worker's slot is in the sets before the worker is among the registered ones, and leaves them
 * after it: a reader of a set between two reads of the same {@link WorkerSet} has read the marks of
 * the workers in it. Adapters may change meanwhile.
 */
final class WorkerMarks {
    /** Adapters of one worker at most. */
    static final int MOST_ADAPTERS = 4_096;

    /** Names of adapters of all workers at most. */
    static final int MOST_ADAPTER_NAMES = 65_536;

    private static final int MOST_NAME_LENGTH = 512;

    private final NamedSlots labels = new NamedSlots();
    private final NamedSlots adapters = new NamedSlots();
    private final SlotBits repelling = new SlotBits();
    private final SlotBits lackingLastBlock = new SlotBits();
    private final IntToLongFunction lackingLastBlockOf = lackingLastBlock::of;

    /** How a label is asked for: {@code key=value}, or the key alone where it has no value. */
    static String label(Map.Entry<String, String> label) {
        return label.getValue().isEmpty()
                ? label.getKey()
                : label.getKey() + '=' + label.getValue();
    }

    /** Before a worker is registered. */
    synchronized void join(Worker worker) {
        worker.labels().entrySet().forEach(each -> labels.add(label(each), worker.slot()));
        worker.namedTaints().forEach(taint -> labels.add(taint, worker.slot()));
        if (!worker.namedTaints().isEmpty()) {
            repelling.add(worker.slot());
        }
    }

    /** After a worker was taken out, and before its slot is another's. */
    synchronized void leave(Worker worker) {
        worker.labels().entrySet().forEach(each -> labels.remove(label(each), worker.slot()));
        worker.namedTaints().forEach(taint -> labels.remove(taint, worker.slot()));
        repelling.remove(worker.slot());
        lackingLastBlock.remove(worker.slot());
        worker.adapters().forEach(adapter -> adapters.remove(adapter, worker.slot()));
    }

    /**
     * Says which adapters a worker has from now on; nothing for one that was removed.
     *
     * @throws IllegalArgumentException if they are too many, or a name is none; then nothing has
     *     changed
     */
    synchronized void adapters(Worker worker, Set<String> now) {
        if (worker.isRemoved()) {
            return;
        }
        final Set<String> before = worker.adapters();
        check(worker, before, now);
        for (String name : before) {
            if (!now.contains(name)) {
                adapters.remove(name, worker.slot());
            }
        }
        final String[] kept = new String[now.size()]; // each name once in the fleet's memory
        int count = 0;
        for (String name : now) {
            kept[count++] = adapters.add(name, worker.slot());
        }
        worker.tookAdapters(Set.of(kept));
    }

    /** Takes over whether a worker's hits lack their last block; nothing of one removed. */
    synchronized void judgedLastBlock(Worker worker) {
        if (worker.isRemoved()) {
            return;
        }
        if (worker.lacksLastBlock()) {
            lackingLastBlock.add(worker.slot());
        } else {
            lackingLastBlock.remove(worker.slot());
        }
    }

    private void check(Worker worker, Set<String> before, Set<String> now) {
        checkNames(worker, now);
        int unknown = 0;
        for (String name : now) {
            unknown += before.contains(name) || adapters.find(name) != null ? 0 : 1;
        }
        if (adapters.size() + unknown > MOST_ADAPTER_NAMES) {
            throw new IllegalArgumentException(
                    "the adapters of worker "
                            + worker
                            + " make "
                            + (adapters.size() + unknown)
                            + " names in the fleet; at most "
                            + MOST_ADAPTER_NAMES);
        }
    }

    /**
     * Checks adapters that a worker is to have, but for what others have.
     *
     * @param worker by which messages name it
     * @throws IllegalArgumentException if they are too many, or a name is none
     */
    static void checkNames(Object worker, Set<String> now) {
        if (now.size() > MOST_ADAPTERS) {
            throw new IllegalArgumentException(
                    now.size()
                            + " adapters of worker "
                            + worker
                            + " are too many; at most "
                            + MOST_ADAPTERS);
        }
        for (String name : now) {
            if (!StandardCharsets.UTF_8.newEncoder().canEncode(name)) {
                throw new IllegalArgumentException(
                        "an adapter of worker "
                                + worker
                                + " has half of a surrogate pair in its name, which no page can"
                                + " show");
            }
            if (name.isBlank() || name.length() > MOST_NAME_LENGTH) {
                throw new IllegalArgumentException(
                        "an adapter of worker "
                                + worker
                                + " has a name of "
                                + name.length()
                                + " characters; 1 to "
                                + MOST_NAME_LENGTH
                                + " are needed, not all of them blank");
            }
        }
    }

    /** The workers with a label or a named taint; null where there are none. */
    SlotBits labelled(String label) {
        return labels.find(label);
    }

    /** The workers with an adapter; null where there are none. */
    SlotBits serving(String adapter) {
        return adapters.find(adapter);
    }

    /**
     * Takes the block off that engines compute anew of what their workers hold.
     *
     * @param reusable most blocks of the prompt that any engine reuses
     */
    void takeLastBlocks(OverlapScores cached, int reusable) {
        if (lackingLastBlock.count() > 0) {
            cached.lower(lackingLastBlockOf, reusable);
        }
    }

    /** The workers with named taints. */
    SlotBits repelling() {
        return repelling;
    }
}
