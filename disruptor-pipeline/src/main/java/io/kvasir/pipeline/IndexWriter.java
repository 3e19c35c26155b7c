package io.kvasir.pipeline;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.ExceptionHandler;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.pipeline.wire.KvBatch;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.BitSet;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Applies the event ring to the index. The only thread that writes index memory: it takes no lock
 * and reads no clock.
 *
 * <p>An error while applying never ends the thread: it is counted, the slot is emptied and set
 * aside, and its batches are skipped until one begins with a clear, which its stream sends when it
 * loads the slot again.
 */
final class IndexWriter implements EventHandler<KvEvent>, ExceptionHandler<KvEvent> {
    private static final Logger LOG = LoggerFactory.getLogger(IndexWriter.class);
    private final PrefixIndex index;
    private final IndexApplier applier;
    private final SpareBatches spares;
    private final WriterThread thread;
    private final BitSet quarantined = new BitSet();
    private final AtomicLong applied = new AtomicLong();
    private final AtomicLong failures = new AtomicLong();
    private final AtomicLong skipped = new AtomicLong();
    private volatile int quarantinedSlots;

    IndexWriter(PrefixIndex index, SpareBatches spares, WriterThread thread) {
        this.index = index;
        this.applier = new IndexApplier(index);
        this.spares = spares;
        this.thread = thread;
    }

    @Override
    public void onEvent(KvEvent event, long sequence, boolean endOfBatch) {
        if (thread.isStopping()) {
            return;
        }
        if (event.retire) {
            retire(event);
        } else {
            apply(event.batch);
        }
        event.release(spares);
    }

    private void retire(KvEvent event) {
        index.clear(event.batch.slot());
        index.eventApplied(event.batch.slot(), KvBatch.NO_SEQUENCE);
        release(event.batch.slot());
        event.whenSwept.run();
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

    @Override
    public void handleEventException(Throwable error, long sequence, KvEvent event) {
        final int slot = event.batch.slot();
        LOG.error(
                "slot {} is set aside: applying message {} failed",
                slot,
                event.batch.sequence(),
                error);
        quarantined.set(slot);
        quarantinedSlots = quarantined.cardinality();
        event.batch.listener().failed();
        event.release(spares);
        try {
            index.clear(slot);
        } catch (RuntimeException | AssertionError again) {
            LOG.error("slot {} could not be emptied either", slot, again);
        }
        failures.getAndIncrement(); // last: what is counted has been dealt with
    }

    @Override
    public void handleOnStartException(Throwable error) {
        LOG.error("index writer did not start cleanly", error);
    }

    @Override
    public void handleOnShutdownException(Throwable error) {
        LOG.error("index writer did not stop cleanly", error);
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
