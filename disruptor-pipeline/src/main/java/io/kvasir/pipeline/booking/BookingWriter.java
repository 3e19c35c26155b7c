package io.kvasir.pipeline.booking;

import static io.kvasir.pipeline.booking.Booking.BOOKED;
import static io.kvasir.pipeline.booking.Booking.DECODE;
import static io.kvasir.pipeline.booking.Booking.GENERATION_MASK;
import static io.kvasir.pipeline.booking.Booking.OPEN;
import static io.kvasir.pipeline.booking.Booking.OUTPUT_MASK;
import static io.kvasir.pipeline.booking.Booking.PREDICTED;
import static io.kvasir.pipeline.booking.Booking.QUEUED;

import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.ExceptionHandler;
import com.lmax.disruptor.Sequence;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.pipeline.log.LogLimit;
import io.kvasir.pipeline.ring.WriterThread;

import org.agrona.ErrorHandler;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * Applies the booking ring to the table of active requests and to the prefixes that are predicted
 * from bookings. The only thread that writes them: it takes no lock and reads no clock; time comes
 * with ticks. An error while applying is counted and never ends the thread.
 */
final class BookingWriter
        implements EventHandler<BookingCommand>, ExceptionHandler<BookingCommand> {
    private static final Logger LOG = LoggerFactory.getLogger(BookingWriter.class);

    /** Slots whose load is compared with what is booked on them, at each tick. */
    private static final int SLOTS_PER_TICK = 64;

    /**
     * After so many records of a batch their room is given back, a power of two: an entry may have
     * its next record in the ring before the batch ends.
     */
    private static final int RECORDS_KEPT = 32;

    /** The end of a worker: its slot, and what to run when nothing of it is left. */
    record WorkerEnd(int slot, Runnable after) {}

    // left by other threads before they set a flag (full order): the record that the first setter
    // publishes lets this thread clear the flag, then read all that was left until then
    final Queue<WorkerEnd> workerEnds = new ConcurrentLinkedQueue<>();
    final AtomicBoolean workerEndsQueued = new AtomicBoolean();
    final AtomicInteger forgetsQueued = new AtomicInteger();
    final AtomicLong tickNs = new AtomicLong(Long.MIN_VALUE);
    final AtomicBoolean tickQueued = new AtomicBoolean();

    private final ActiveRequests table;
    private final PredictedPrefixes routed; // null when nothing is predicted
    private final BookingTable bookings;
    private final HashPool pool;
    private final boolean countsBlocks;
    private final LongConsumer endBooked;
    private final Consumer<Throwable> stepFailed;
    private final WriterThread thread;
    private final ErrorHandler errors;
    private final int[] slotGenerations; // workers removed so far, per slot
    private final ReplicaWriter replica; // null where the router has no replicas
    private final AtomicLong failures = new AtomicLong();
    private final LogLimit failureLines = new LogLimit();
    private Sequence applied; // up to which the ring has room again
    private long[] hashes = new long[1_024];
    private boolean ticked;
    private long firstTickNs;
    private long elapsedNs; // from the first tick to the last; what came before is as old as it

    BookingWriter(
            ActiveRequests table,
            PredictedPrefixes routed,
            BookingTable bookings,
            HashPool pool,
            BookingPipelineConfig config,
            ReplicaOutbox outbox,
            WriterThread thread,
            ErrorHandler errors) {
        this.table = table;
        this.routed = routed;
        this.bookings = bookings;
        this.pool = pool;
        this.countsBlocks = config.countsBlocks();
        this.endBooked = this::endBooked;
        this.stepFailed = error -> failed("a step of another router", 0, error);
        this.thread = thread;
        this.errors = errors;
        this.slotGenerations = new int[table.config().maxWorkerSlots()];
        this.replica =
                outbox == null
                        ? null
                        : new ReplicaWriter(table, routed, slotGenerations, config, outbox);
    }

    /** The part that other routers are sent; null where there are none. */
    ReplicaWriter replica() {
        return replica;
    }

    @Override
    public void setSequenceCallback(Sequence sequence) {
        applied = sequence;
    }

    @Override
    public void onEvent(BookingCommand event, long sequence, boolean endOfBatch) {
        if (thread.isStopping()) {
            return;
        }
        switch (event.kind) {
            case BOOKING -> apply(event.index);
            case WORKERS_GONE -> workersGone();
            case FORGET_PREDICTED -> {
                forgetsQueued.decrementAndGet();
                forgetPredicted(event.index);
            }
            case REPLICA_STEPS -> replicaSteps();
            case TICK -> tick();
        }
        if (endOfBatch && replica != null) {
            replica.endOfBatch();
        }
        if (sequence % RECORDS_KEPT == RECORDS_KEPT - 1) {
            applied.set(sequence); // the record is not used from here on
        }
    }

    private void apply(int index) {
        final Booking booking = bookings.at(index);
        boolean done = false;
        while (!done) { // again when a caller has changed the word meanwhile
            final long word = booking.wordAcquire();
            if (Booking.is(word, BOOKED)) {
                done = Booking.is(word, OPEN) ? advance(index, booking, word) : end(index, word);
            } else if (Booking.is(word, OPEN | PREDICTED)) {
                done = book(index, booking, word);
            } else { // withdrawn; its entry may be the next one's already
                done = booking.changeWord(word, word & ~QUEUED);
            }
        }
    }

    private boolean book(int index, Booking booking, long word) {
        // copied before the compare-and-set of the word below: if the entry was withdrawn and
        // filled again meanwhile, the word has changed and the copy is not used
        final int slot = booking.slot;
        final int slotGeneration = booking.slotGeneration;
        final int count = booking.hashCount;
        final int chunk = booking.firstChunk;
        final int unknownBlocks = booking.unknownBlocks;
        final int unsharedBlocks = booking.unsharedBlocks;
        final int provisionalBlocks = booking.provisionalBlocks;
        final long prefillTokens = booking.prefillTokens;
        final long deadlineNs = booking.deadlineNs;
        // one that was decided while another worker was there means nothing for its successor
        final boolean current = slotGeneration == slotGenerations[slot];
        copyHashes(chunk, count);
        if (!current || !Booking.is(word, OPEN)) {
            if (!bookings.dismiss(index, word)) {
                return false;
            }
            table.refuse(slot, prefillTokens, provisionalBlocks);
            pool.give(chunk, count);
            bookings.recycle(index);
            visit(current && Booking.is(word, PREDICTED), slot, count);
            return true;
        }
        if (!booking.changeWord(word, (word | BOOKED) & ~(QUEUED | PREDICTED | OUTPUT_MASK))) {
            return false;
        }
        pool.give(chunk, count);
        table.book(
                number(index, word),
                slot,
                hashes,
                // else the hashes are for the prediction alone
                countsBlocks && unsharedBlocks == 0 ? count : 0,
                unknownBlocks,
                unsharedBlocks,
                prefillTokens,
                provisionalBlocks,
                deadlineNs);
        if (replica != null) {
            replica.added(
                    number(index, word),
                    slot,
                    slotGeneration,
                    hashes,
                    unsharedBlocks == 0 ? count : 0,
                    unknownBlocks + unsharedBlocks,
                    prefillTokens);
        }
        advanceBy(index, booking, word);
        visit(Booking.is(word, PREDICTED), slot, count);
        return true;
    }

    private void visit(boolean predicted, int slot, int count) {
        if (predicted) {
            routed.visit(slot, hashes, count, elapsedNs);
        }
    }

    private void copyHashes(int chunk, int count) {
        if (hashes.length < count) {
            hashes = new long[Math.max(count, 2 * hashes.length)];
        }
        pool.copy(chunk, count, hashes);
    }

    private boolean advance(int index, Booking booking, long word) {
        if (!booking.changeWord(word, word & ~(QUEUED | OUTPUT_MASK))) {
            return false;
        }
        advanceBy(index, booking, word);
        return true;
    }

    private void advanceBy(int index, Booking booking, long word) {
        final long number = number(index, word);
        if (Booking.is(word, DECODE) && table.prefillComplete(number) && replica != null) {
            replica.prefilled(number, booking.slot, booking.slotGeneration);
        }
        final int blocks = Booking.outputBlocks(word);
        if (table.outputBlocks(number, blocks) && blocks > 0 && replica != null) {
            replica.output(number, booking.slot, booking.slotGeneration);
        }
    }

    private boolean end(int index, long word) {
        table.free(number(index, word)); // before the entry is given back with its index
        endBooked(number(index, word));
        return false; // the record is done with when the next look finds the entry free
    }

    /** A request has left the table of active requests. */
    private void endBooked(long number) {
        if (replica != null) {
            if (!replica.isOwn(number)) {
                return; // of another router, whose numbers are not of this table
            }
            final Booking booking = bookings.at((int) number); // not yet given to another
            replica.freed(number, booking.slot, booking.slotGeneration);
        }
        bookings.endBooked(number);
    }

    private void replicaSteps() {
        replica.predictionTime(elapsedNs);
        replica.applySteps(stepFailed);
    }

    private static long number(int index, long word) {
        return (word & GENERATION_MASK) | index;
    }

    private void workersGone() {
        // cleared (volatile) before the queue is read: an end added after the read finds the flag
        // clear and publishes a record of its own, so none is left without a record
        workerEndsQueued.set(false);
        for (WorkerEnd end = workerEnds.poll(); end != null; end = workerEnds.poll()) {
            try {
                workerGone(end);
            } catch (Throwable error) { // the others have no record of their own
                failed("ending the worker of slot", end.slot, error);
            }
        }
    }

    private void workerGone(WorkerEnd end) {
        slotGenerations[end.slot]++;
        table.workerGone(end.slot, endBooked);
        forgetPredicted(end.slot);
        end.after.run();
    }

    private void forgetPredicted(int slot) {
        if (routed != null) {
            routed.clear(slot);
        }
    }

    private void tick() {
        // cleared (volatile) before the time is read: a later tick publishes a record of its own
        tickQueued.set(false);
        final long nowNs = tickNs.get();
        table.expire(nowNs, endBooked);
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
    public void handleEventException(Throwable error, long sequence, BookingCommand event) {
        failed(event.kind, event.index, error);
    }

    /** Nothing may be thrown here, whatever is left of the heap: it would end the thread. */
    private void failed(Object step, int where, Throwable error) {
        failures.getAndIncrement();
        try {
            final String more = failureLines.take(System.nanoTime());
            if (more != null) {
                LOG.error("{} {} failed{}", step, where, more, error);
            }
            errors.onError(error);
        } catch (Throwable again) {
            failures.getAndIncrement(); // the counter has to do
        }
    }

    @Override
    public void handleOnStartException(Throwable error) {
        LOG.error("booking writer did not start cleanly", error);
        errors.onError(error);
    }

    @Override
    public void handleOnShutdownException(Throwable error) {
        LOG.error("booking writer did not stop cleanly", error);
        errors.onError(error);
    }

    long failures() {
        return failures.get();
    }
}
