package io.kvasir.pipeline;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.ExceptionHandler;

import io.kvasir.core.slots.RoutedPrefixes;
import io.kvasir.core.slots.SlotTable;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * Applies the life ring to the slot table and to the prefixes that are predicted from bookings. The
 * only thread that writes them: it takes no lock and reads no clock; time comes with ticks. An
 * error while applying is counted and never ends the thread.
 */
final class SlotWriter implements EventHandler<LifeEvent>, ExceptionHandler<LifeEvent> {
    private static final Logger LOG = LoggerFactory.getLogger(SlotWriter.class);

    /** Slots whose load is compared with what is booked on them, at each tick. */
    private static final int SLOTS_PER_TICK = 64;

    private final SlotTable table;
    private final RoutedPrefixes routed; // null when nothing is predicted
    private final int retainedHashes;
    private final LongConsumer ended;
    private final WriterThread thread;
    private final int[] tenancies; // workers that are gone, per slot
    private final AtomicLong failures = new AtomicLong();
    private boolean ticked;
    private long firstTickNs;
    private long elapsedNs; // from the first tick to the last; what came before is as old as it

    SlotWriter(
            SlotTable table,
            RoutedPrefixes routed,
            int retainedHashes,
            LongConsumer ended,
            WriterThread thread) {
        this.table = table;
        this.routed = routed;
        this.retainedHashes = retainedHashes;
        this.ended = ended;
        this.thread = thread;
        this.tenancies = new int[table.config().maxWorkerSlots()];
    }

    @Override
    public void onEvent(LifeEvent event, long sequence, boolean endOfBatch) {
        if (thread.isStopping()) {
            return;
        }
        switch (event.kind) {
            case ADD -> add(event);
            case PREFILL_COMPLETE -> table.prefillComplete(event.requestId);
            case OUTPUT_BLOCK -> table.outputBlock(event.requestId);
            case FREE -> table.free(event.requestId);
            case WORKER_GONE -> workerGone(event);
            case FORGET_PREDICTED -> forgetPredicted(event.slot);
            case TICK -> tick(event.timeNs);
        }
    }

    private void add(LifeEvent event) {
        if (event.tenancy == tenancies[event.slot]) {
            book(event);
        } else {
            // decided while its worker was there: nothing of it may count for the successor
            table.refuse(event.slot, event.prefillTokens, event.provisionalBlocks);
            ended.accept(event.requestId);
        }
        event.release(retainedHashes);
    }

    private void book(LifeEvent event) {
        final long handle =
                table.book(
                        event.requestId,
                        event.slot,
                        event.hashes,
                        event.count,
                        event.prefillTokens,
                        event.provisionalBlocks,
                        event.timeNs);
        if (handle == SlotTable.FULL) {
            ended.accept(event.requestId); // the caller's number of requests is another
        }
        if (event.predicted && routed != null) {
            routed.visit(event.slot, event.hashes, event.count, elapsedNs);
        }
    }

    private void workerGone(LifeEvent event) {
        tenancies[event.slot]++;
        table.workerGone(event.slot, ended);
        forgetPredicted(event.slot);
        event.whenGone.run();
        event.release(retainedHashes);
    }

    private void forgetPredicted(int slot) {
        if (routed != null) {
            routed.clear(slot);
        }
    }

    private void tick(long nowNs) {
        table.expire(nowNs, ended);
        table.reconcile(nowNs, SLOTS_PER_TICK);
        if (!ticked) {
            ticked = true;
            firstTickNs = nowNs;
        }
        elapsedNs = Math.max(elapsedNs, nowNs - firstTickNs);
        if (routed != null) {
            routed.expire(elapsedNs);
        }
    }

    @Override
    public void handleEventException(Throwable error, long sequence, LifeEvent event) {
        failures.getAndIncrement();
        event.release(retainedHashes);
        LOG.error("{} of request {} failed", event.kind, event.requestId, error);
    }

    @Override
    public void handleOnStartException(Throwable error) {
        LOG.error("slot writer did not start cleanly", error);
    }

    @Override
    public void handleOnShutdownException(Throwable error) {
        LOG.error("slot writer did not stop cleanly", error);
    }

    long failures() {
        return failures.get();
    }
}
