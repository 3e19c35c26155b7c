package io.kvasir.pipeline.events;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.SlotExport;
import io.kvasir.pipeline.events.SlotSnapshot.Outcome;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SlotRecords;
import io.kvasir.pipeline.wire.KvBatch;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.Consumer;
import java.util.function.IntPredicate;

/**
 * Makes snapshots of slots, one after the other, a slice between two events. Batches of the slot
 * that is under way wait here, and are applied some at a time when it is over. No batch is lost:
 * where there is no room for one more, the snapshot is given up. Writer thread only.
 */
final class SlotExporter {
    private static final Logger LOG = LoggerFactory.getLogger(SlotExporter.class);

    /** Blocks of one slice: some ten microseconds. */
    static final int SLICE_BLOCKS = 1024;

    /** Waiting batches that are applied between two events. */
    private static final int BATCHES_AT_ONCE = 8;

    private final PrefixIndex index;
    private final SlotMarks marks;
    private final IntPredicate setAside;
    private final Consumer<KvBatch> apply; // does not throw
    private final int maxBatches;
    private final Queue<SlotSnapshot> asked = new ArrayDeque<>();
    private final Queue<KvBatch> waiting = new ArrayDeque<>();
    private SlotSnapshot current; // null when none is under way
    private final SlotRecords records = new SlotRecords(chunk -> current.made(chunk));
    private SlotExport export;
    private int slot = -1; // whose batches wait, -1 for none

    /**
     * @param setAside whether a slot is set aside
     * @param apply applies a batch that has waited; must not throw
     * @param maxBatches batches that may wait
     */
    SlotExporter(
            PrefixIndex index,
            SlotMarks marks,
            IntPredicate setAside,
            Consumer<KvBatch> apply,
            int maxBatches) {
        this.index = index;
        this.marks = marks;
        this.setAside = setAside;
        this.apply = apply;
        this.maxBatches = maxBatches;
    }

    /** A snapshot is wanted, of the tenant that the slot has now or of an earlier one. */
    void ask(SlotSnapshot snapshot, int generationNow) {
        if (snapshot.generation() == generationNow) {
            asked.add(snapshot);
        } else {
            snapshot.ended(Outcome.RETIRED);
        }
    }

    /**
     * Keeps a batch back, if others of its slot have to come first.
     *
     * @return false if it is to be applied now
     */
    boolean keep(KvBatch batch) {
        if (batch.slot() != slot) {
            return false;
        }
        if (waiting.size() < maxBatches) {
            waiting.add(batch);
            return true;
        }
        end(Outcome.OVERTAKEN);
        applyWaiting(Integer.MAX_VALUE);
        return false;
    }

    /** Does the next small part of what is wanted; false when there is nothing to do now. */
    boolean step() {
        if (current == null) {
            if (slot >= 0) {
                applyWaiting(BATCHES_AT_ONCE);
                return true;
            }
            return begin();
        }
        if (current.isCancelled()) {
            end(Outcome.CANCELLED);
            return true;
        }
        if (setAside.test(slot)) {
            end(Outcome.SET_ASIDE); // what was left of it has been cleared
            return true;
        }
        if (current.isAhead()) {
            return false;
        }
        try {
            if (!export.show(SLICE_BLOCKS, records)) {
                records.finish();
                end(Outcome.WHOLE);
            }
        } catch (RuntimeException e) {
            LOG.error("the snapshot of slot {} failed", slot, e);
            end(Outcome.FAILED);
        }
        return true;
    }

    private boolean begin() {
        final SlotSnapshot next = asked.poll();
        if (next == null) {
            return false;
        }
        final SlotMark mark = marks.of(next.slot());
        if (next.isCancelled()) {
            next.ended(Outcome.CANCELLED);
        } else if (setAside.test(next.slot())) {
            next.ended(Outcome.SET_ASIDE);
        } else if (mark == null) {
            next.ended(Outcome.NO_MESSAGE);
        } else {
            export = index.export(next.slot());
            current = next;
            slot = next.slot();
            next.begun(mark);
        }
        return true;
    }

    private void end(Outcome outcome) {
        if (current != null) {
            export.close();
            export = null;
            current.ended(outcome);
            current = null;
            records.clear();
        }
    }

    private void applyWaiting(int most) {
        for (int left = most; left > 0 && !waiting.isEmpty(); left--) {
            apply.accept(waiting.poll());
        }
        if (waiting.isEmpty()) {
            slot = -1;
        }
    }

    /** The slot gets another tenant: what is under way of it means nothing any more. */
    void retire(int retired, Consumer<KvBatch> drop) {
        asked.removeIf(
                snapshot -> {
                    if (snapshot.slot() == retired) {
                        snapshot.ended(Outcome.RETIRED);
                    }
                    return snapshot.slot() == retired;
                });
        if (slot == retired) {
            end(Outcome.RETIRED);
            waiting.forEach(drop);
            waiting.clear();
            slot = -1;
        }
    }
}
