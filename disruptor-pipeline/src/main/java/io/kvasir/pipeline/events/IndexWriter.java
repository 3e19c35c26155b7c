package io.kvasir.pipeline.events;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.ExceptionHandler;

import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.ring.WriterThread;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Applies the event ring to the index. The only thread that writes index memory: it takes no lock
 * and reads no clock.
 *
 * <p>An error while applying never ends the thread: it is counted, the slot is emptied and set
 * aside, and its batches are skipped until one begins with a clear, which its stream sends when it
 * loads the slot again.
 */
final class IndexWriter implements EventHandler<IndexCommand>, ExceptionHandler<IndexCommand> {
    private static final Logger LOG = LoggerFactory.getLogger(IndexWriter.class);
    private static final byte[] NO_LABEL = {};
    private final PrefixIndex index;
    private final IndexApplier applier;
    private final SpareBatches spares;
    private final WriterThread thread;
    private final WriterMailbox mailbox;
    private final ErrorHandler errors;
    private final int[] generations; // per slot: tenants retired so far
    private final SlotExporter exporter;
    private final BitSet quarantined = new BitSet();
    private final AtomicLong applied = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong skipped = new AtomicLong();
    private volatile int quarantinedSlots;

    IndexWriter(
            PrefixIndex index,
            LowerTiers lowerOrNull,
            SpareBatches spares,
            WriterThread thread,
            WriterMailbox mailbox,
            int snapshotBatches,
            ErrorHandler errors) {
        this.index = index;
        this.applier = new IndexApplier(index, lowerOrNull);
        this.spares = spares;
        this.thread = thread;
        this.mailbox = mailbox;
        this.errors = errors;
        this.generations = new int[index.config().maxWorkerSlots()];
        this.exporter =
                new SlotExporter(
                        index,
                        applier.marks(),
                        quarantined::get,
                        this::applyWaiting,
                        snapshotBatches);
    }

    @Override
    public void onEvent(IndexCommand event, long sequence, boolean endOfBatch) {
        if (thread.isStopping()) {
            return;
        }
        mailbox.run();
        if (thread.isStopping()) {
            return;
        }
        if (event.batch != null) {
            apply(event);
        } else if (event.load != null) {
            load(event.load, event.part);
        }
        event.release(spares);
        exporter.step();
    }

    /** Does a part of what may wait for events; false when there is nothing to do. */
    boolean work() {
        return !thread.isStopping() && exporter.step();
    }

    /** A snapshot is wanted. Runs from the mailbox. */
    void ask(SlotSnapshot snapshot) {
        exporter.ask(snapshot, generations[snapshot.slot()]);
    }

    /** Drops what an unfinished load has put in. Runs from the mailbox. */
    void drop(SlotLoad load) {
        if (load.generation() == generations[load.slot()] && !load.hasFailed()) {
            load.fail();
            try {
                applier.clear(load.slot());
                index.eventApplied(load.slot(), KvBatch.NO_SEQUENCE); // all of it may be there
                index.commit();
            } catch (RuntimeException error) {
                setAside(load.slot(), error);
                failures.getAndIncrement();
            }
        }
    }

    /** The tenant of a slot has a stream. Runs from the mailbox. */
    void listen(int slot, int generation, ApplyListener listener) {
        if (slot < generations.length && generation == generations[slot]) {
            applier.listen(slot, listener);
        }
    }

    /** Keeps bytes with a slot by which its tenant is known again. Runs from the mailbox. */
    void label(int slot, byte[] label) {
        try {
            index.keptLabel(slot, label);
            index.commit();
        } catch (RuntimeException error) {
            setAside(slot, error);
            failures.getAndIncrement();
        }
    }

    /** Keeps how far the event plane is in the index. Runs from the mailbox. */
    void keep(PlanePosition position) {
        keep(() -> applier.marks().keep(position), "how far the event plane is could not be kept");
    }

    /** Keeps when engines are followed. Runs from the mailbox. */
    void followed(long atMs) {
        keep(() -> index.followed(atMs), "when engines were followed could not be kept");
    }

    /** A reader found the index damaged. Runs from the mailbox. */
    void damaged() {
        index.spoil();
        applier.damaged();
    }

    private void keep(Runnable change, String failed) {
        try {
            change.run();
            index.commit();
        } catch (RuntimeException error) {
            failures.getAndIncrement();
            index.spoil();
            report(failed, error);
        }
    }

    /** How far an earlier process has kept the event plane; null if it has not. */
    PlanePosition keptPosition() {
        return applier.marks().planePosition();
    }

    /** What an earlier process has left of each slot. Before the writer runs. */
    List<KeptSlot> keptSlots() {
        final List<KeptSlot> kept = new ArrayList<>();
        for (int slot = 0; index.isKept() && slot < generations.length; slot++) {
            final byte[] label = index.keptLabel(slot);
            if (label.length > 0 || index.heldBlocks(slot) + index.missingBlocks(slot) > 0) {
                kept.add(
                        new KeptSlot(
                                slot,
                                label,
                                applier.marks().of(slot),
                                applier.marks().memory(slot)));
            }
        }
        return List.copyOf(kept);
    }

    private void load(SlotLoad load, byte[] part) {
        if (load.generation() != generations[load.slot()]) {
            load.fail();
            return;
        }
        try {
            if (!load.apply(part, index, applier.marks())) {
                applier.clear(load.slot());
                index.eventApplied(load.slot(), KvBatch.NO_SEQUENCE);
                load.fail(); // last: a caller that reads it finds the slot empty
            }
            index.commit(); // a slot that is not whole has no mark yet
        } catch (RuntimeException error) {
            load.fail();
            setAside(load.slot(), error);
            failures.getAndIncrement();
        }
    }

    private void applyWaiting(KvBatch batch) {
        try {
            apply(batch);
        } catch (Throwable error) {
            failed(batch, error);
        }
        spares.give(batch);
    }

    /** Empties a slot for its next tenant. Runs from the mailbox, so nothing is thrown. */
    void retire(int slot, Runnable whenSwept) {
        generations[slot]++;
        try {
            exporter.retire(slot, this::skip);
            applier.clear(slot);
            applier.forget(slot);
            index.keptLabel(slot, NO_LABEL);
            index.eventApplied(slot, KvBatch.NO_SEQUENCE);
            index.commit();
            release(slot);
            whenSwept.run();
        } catch (Throwable error) {
            setAside(slot, error); // and its slot is not given out again
            failures.getAndIncrement();
        }
    }

    private void apply(IndexCommand event) {
        final int slot = event.batch.slot();
        if (slot < generations.length && event.generation != generations[slot]) {
            skipped.getAndIncrement(); // of a worker that is removed
            return;
        }
        if (exporter.keep(event.batch)) {
            event.batch = null; // applied later
            return;
        }
        apply(event.batch);
    }

    private void skip(KvBatch batch) {
        skipped.getAndIncrement();
        spares.give(batch);
    }

    private void apply(KvBatch batch) {
        final int slot = batch.slot();
        if (quarantined.get(slot)) {
            if (batch.first() < 0 || batch.kind(batch.first()) != KvBatch.Kind.CLEARED) {
                skipped.getAndIncrement();
                batch.listener().skipped();
                return;
            }
            release(slot);
        }
        applier.offer(batch);
        applied.getAndAdd(batch.operations());
    }

    private void release(int slot) {
        quarantined.clear(slot);
        quarantinedSlots = quarantined.cardinality();
    }

    /** Nothing may be thrown here, whatever is left of the heap: it would end the thread. */
    @Override
    public void handleEventException(Throwable error, long sequence, IndexCommand event) {
        final KvBatch batch = event.batch;
        if (batch != null) {
            notApplied(batch, error);
        }
        try {
            event.release(spares);
        } catch (Throwable again) {
            failures.getAndIncrement(); // one spare less
        }
        failures.getAndIncrement(); // last: what is counted has been dealt with
    }

    private void failed(KvBatch batch, Throwable error) {
        notApplied(batch, error);
        failures.getAndIncrement();
    }

    private void notApplied(KvBatch batch, Throwable error) {
        try {
            setAside(batch.slot(), error);
            batch.listener().failed();
        } catch (Throwable again) {
            failures.getAndIncrement();
        }
    }

    private void setAside(int slot, Throwable error) {
        try {
            quarantined.set(slot);
            quarantinedSlots = quarantined.cardinality();
            index.spoil(); // no restart is to find what an error has left in the middle
            applier.clear(slot);
        } catch (Throwable again) {
            failures.getAndIncrement(); // not emptied either, and set aside
        }
        report("slot " + slot + " is set aside: applying its events failed", error);
    }

    private void report(String what, Throwable error) {
        try {
            LOG.error(what, error);
            errors.onError(error);
        } catch (Throwable again) {
            failures.getAndIncrement(); // the counter has to do
        }
    }

    @Override
    public void handleOnStartException(Throwable error) {
        LOG.error("index writer did not start cleanly", error);
        errors.onError(error);
    }

    @Override
    public void handleOnShutdownException(Throwable error) {
        LOG.error("index writer did not stop cleanly", error);
        errors.onError(error);
    }

    /** Index operations applied. */
    long applied() {
        return applied.get();
    }

    /** Batches and retirements that threw. */
    long failures() {
        return failures.get();
    }

    /** Batches skipped because their slot was set aside. */
    long skipped() {
        return skipped.get();
    }

    /** Slots set aside now. */
    int quarantinedSlots() {
        return quarantinedSlots;
    }
}
