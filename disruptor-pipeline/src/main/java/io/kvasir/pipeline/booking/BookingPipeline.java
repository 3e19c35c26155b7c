package io.kvasir.pipeline.booking;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.pipeline.ring.WriterRing;
import io.kvasir.pipeline.ring.WriterThread;

import org.agrona.ErrorHandler;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Pipeline from bookings to the table of active requests: many callers, one ring, one writer
 * thread. From its construction on, that thread is the only one that may write the table, and the
 * prefixes that are predicted from bookings.
 *
 * <p>Steps of a booking stand in its entry of a table, and the ring has one record of an entry at
 * most; so the ring has room for all of them, and a booking that ends before the writer has seen it
 * leaves it nothing to do. Bookings are refused only when as many are open as may be, or when the
 * more than half as many ended ones wait for the writer.
 *
 * <p>All methods may be called by any thread; none waits but {@link #close}, and {@link #book} and
 * the steps of bookings allocate nothing.
 */
public final class BookingPipeline implements AutoCloseable {
    /** The number of no booking. */
    public static final long NONE = 0;

    private final BookingPipelineConfig config;
    private final ActiveRequests table;
    private final boolean predicts;
    private final BookingTable bookings;
    private final HashPool pool;
    private final BookingWriter writer;
    private final WriterRing<BookingCommand> ring;
    private final ReplicaPort replicaPort; // null where the router has no replicas
    private final AtomicLong refused = new AtomicLong();

    /**
     * Starts the writer thread; nothing is predicted.
     *
     * @param config sizes
     * @param table the table to write, for as many requests as the config has entries; not closed
     *     by this class
     */
    public BookingPipeline(BookingPipelineConfig config, ActiveRequests table) {
        this(config, table, null);
    }

    /**
     * Starts the writer thread.
     *
     * @param config sizes
     * @param table the table to write, for as many requests as the config has entries; not closed
     *     by this class
     * @param routed takes the prompts of predicted bookings; its times are those of the ticks. Not
     *     closed by this class; null when nothing is predicted
     * @throws IllegalArgumentException if the table takes fewer requests than that
     * @throws io.kvasir.core.memory.ClosedException if the table or the prefixes are closed
     * @throws IllegalStateException if another pipeline writes one of them
     */
    public BookingPipeline(
            BookingPipelineConfig config, ActiveRequests table, PredictedPrefixes routed) {
        this(config, table, routed, _ -> {});
    }

    /**
     * Starts the writer thread.
     *
     * @param config sizes
     * @param table the table to write, for as many requests as the config has entries; not closed
     *     by this class
     * @param routed takes the prompts of predicted bookings, or null, as above
     * @param errors takes what goes wrong on the writer thread, beside the log
     * @throws IllegalArgumentException if the table takes fewer requests than that
     * @throws io.kvasir.core.memory.ClosedException if the table or the prefixes are closed
     */
    public BookingPipeline(
            BookingPipelineConfig config,
            ActiveRequests table,
            PredictedPrefixes routed,
            ErrorHandler errors) {
        if (table.config().maxRequests() < config.tableEntries()) {
            throw new IllegalArgumentException(
                    "the table of active requests is too small: its maxRequests="
                            + table.config().maxRequests()
                            + ", entries="
                            + config.tableEntries()
                            + " for maxRequests="
                            + config.maxRequests()
                            + ", replicaRequests="
                            + config.replicaRequests());
        }
        this.config = config;
        this.table = table;
        this.predicts = routed != null;
        final WriterThread thread = newWriterThread(table, routed);
        try {
            this.bookings = new BookingTable(config.maxRequests(), config.entries());
            this.pool = new HashPool(config.pendingHashes());
            final ReplicaOutbox outbox =
                    config.replicaRequests() == 0
                            ? null
                            : ReplicaOutbox.forRequests(config.maxRequests());
            this.writer =
                    new BookingWriter(
                            table, routed, bookings, pool, config, outbox, thread, errors);
            this.ring =
                    new WriterRing<>(
                            thread,
                            BookingCommand::new,
                            config.ringSize(),
                            config.waitMode().strategy(),
                            writer);
            this.replicaPort =
                    outbox == null
                            ? null
                            : new ReplicaPort(
                                    writer.replica(),
                                    outbox,
                                    config,
                                    () -> publish(BookingCommand.Kind.REPLICA_STEPS, 0));
        } catch (Throwable t) {
            thread.abandon();
            throw t;
        }
    }

    private static WriterThread newWriterThread(ActiveRequests table, PredictedPrefixes routed) {
        final String name = "kvasir-booking-writer";
        return routed == null
                ? new WriterThread(name, table.writer())
                : new WriterThread(name, table.writer(), routed.writer());
    }

    /**
     * Books a request of a slot's first tenant, without a deadline and without a prediction.
     *
     * @param slot worker slot
     * @param localHashes local hashes of the prompt's full blocks, [count]; copied
     * @param count full blocks
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that it will have in use in addition, as far as is known
     * @return the booking's number; {@link #NONE} if it is refused
     */
    public long book(
            int slot, long[] localHashes, int count, long prefillTokens, int provisionalBlocks) {
        return book(
                slot,
                0,
                localHashes,
                count,
                prefillTokens,
                provisionalBlocks,
                ActiveRequests.NO_DEADLINE,
                false);
    }

    /**
     * Books a request: its load counts when this returns. It ends of itself at a {@link #tick}
     * after its deadline. One that comes after the {@link #workerGone} of its worker is not booked:
     * it ends at once.
     *
     * @param slot worker slot
     * @param slotGeneration which tenant of the slot the request goes to: the calls of {@link
     *     #workerGone} for the slot before this worker had it
     * @param localHashes local hashes of the prompt's full blocks, [count]; copied
     * @param count full blocks
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that it will have in use in addition, as far as is known;
     *     corrected by the writer; ignored where blocks are not counted
     * @param deadlineNs time by the clock of the ticks; {@link ActiveRequests#NO_DEADLINE} = never
     * @param predicted whether the slot is taken to hold the prompt from now on, also when the
     *     booking ends at once; without meaning where nothing is predicted
     * @return the booking's number; {@link #NONE} if as many are open as may be, if too many that
     *     have ended wait for the writer, or if the pipeline is closed
     * @throws IndexOutOfBoundsException if the slot or {@code count} is out of range
     */
    public long book(
            int slot,
            int slotGeneration,
            long[] localHashes,
            int count,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs,
            boolean predicted) {
        return book(
                slot,
                slotGeneration,
                localHashes,
                count,
                prefillTokens,
                provisionalBlocks,
                deadlineNs,
                predicted,
                true);
    }

    /**
     * Books a request; as above.
     *
     * @param shared whether blocks that other requests of the slot use count once; if not, those of
     *     this one are its own
     */
    public long book(
            int slot,
            int slotGeneration,
            long[] localHashes,
            int count,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs,
            boolean predicted,
            boolean shared) {
        Objects.checkIndex(slot, table.config().maxWorkerSlots());
        Objects.checkFromIndexSize(0, count, localHashes.length);
        final int index = ring.isClosed() ? -1 : bookings.take();
        if (index < 0) {
            refused.getAndIncrement();
            return NONE;
        }
        final boolean counts = config.countsBlocks();
        final boolean isSeen = count > 0 && ((counts && shared) || (predicted && predicts));
        final int chunk = isSeen ? pool.take(localHashes, count) : HashPool.NONE;
        final int provisional = counts ? provisionalBlocks : 0;
        final Booking booking = bookings.at(index);
        booking.slot = slot;
        booking.slotGeneration = slotGeneration;
        booking.firstChunk = chunk;
        booking.hashCount = chunk == HashPool.NONE ? 0 : count;
        booking.unknownBlocks = counts && shared && chunk == HashPool.NONE ? count : 0;
        booking.unsharedBlocks = counts && !shared ? count : 0;
        booking.prefillTokens = prefillTokens;
        booking.provisionalBlocks = provisional;
        booking.deadlineNs = deadlineNs;
        table.announce(slot, prefillTokens, provisional);
        final long number = bookings.nextNumber(index);
        follow(bookings.open(number, predicted && predicts), number);
        return number;
    }

    /**
     * Whether a booking counts.
     *
     * @param number a booking's number, or {@link #NONE}
     * @return false once it has ended, by whatever
     */
    public boolean isOpen(long number) {
        return number != NONE && bookings.isOpen(number);
    }

    /**
     * Whether a booking counts and its prompt is still work to prefill.
     *
     * @param number a booking's number, or any other
     * @return false from its {@link #prefillComplete} on, once it has ended, and for a number that
     *     no booking has
     */
    public boolean isPrefilling(long number) {
        return number != NONE && bookings.isPrefilling(number);
    }

    /**
     * The request generates: its prompt is no work to prefill any more.
     *
     * @param number a booking's number
     * @return false if it generated or had ended before
     */
    public boolean prefillComplete(long number) {
        return number != NONE && follow(bookings.startDecode(number), number);
    }

    /**
     * The request's generated tokens fill more blocks. Does nothing where blocks are not counted.
     *
     * @param number a booking's number
     * @param blocks further blocks, 0 or more
     * @return false if the booking had ended before, or blocks are not counted
     * @throws IllegalArgumentException if {@code blocks} is negative
     */
    public boolean outputBlocks(long number, int blocks) {
        if (blocks < 0) {
            throw new IllegalArgumentException("blocks=" + blocks + " is negative");
        }
        return number != NONE
                && config.countsBlocks()
                && follow(bookings.addOutput(number, blocks), number);
    }

    /**
     * The request has ended.
     *
     * @param number a booking's number
     * @return false if it had ended before
     */
    public boolean free(long number) {
        return number != NONE && follow(bookings.end(number), number);
    }

    /** Does what a step of a booking asks for. */
    private boolean follow(BookingTable.Outcome outcome, long number) {
        switch (outcome) {
            case LATE -> {
                return false;
            }
            case RECORDED -> {}
            case PUBLISH -> publish(BookingCommand.Kind.BOOKING, (int) number);
            case WITHDRAWN -> withdraw((int) number);
        }
        return true;
    }

    private void withdraw(int index) {
        final Booking booking = bookings.at(index);
        table.withdraw(booking.slot, booking.prefillTokens, booking.provisionalBlocks);
        pool.give(booking.firstChunk, booking.hashCount);
        bookings.recycle(index);
    }

    /** Publishes a record, for which there is always room: see {@link BookingPipelineConfig}. */
    private void publish(BookingCommand.Kind kind, int index) {
        final long sequence = ring.claim();
        ring.record(sequence).set(kind, index);
        ring.publish(sequence);
    }

    /**
     * All requests of a worker slot have ended, and nothing is predicted for it any more: its next
     * slot generation begins.
     *
     * @param slot worker slot
     * @param whenGone called on the writer thread once nothing is booked on the slot any more; must
     *     not wait
     * @return false if the pipeline is closed
     */
    public boolean workerGone(int slot, Runnable whenGone) {
        Objects.requireNonNull(whenGone, "whenGone");
        Objects.checkIndex(slot, table.config().maxWorkerSlots());
        if (ring.isClosed()) {
            return false;
        }
        writer.workerEnds.add(new BookingWriter.WorkerEnd(slot, whenGone));
        if (writer.workerEndsQueued.compareAndSet(false, true)) {
            publish(BookingCommand.Kind.WORKERS_GONE, 0);
        }
        return true;
    }

    /**
     * What bookings before this one predict of a worker slot is wrong: its engine has lost its
     * cache. The bookings stay.
     *
     * @param slot worker slot
     * @return false if too many such calls wait for the writer: nothing is forgotten
     */
    public boolean forgetPredicted(int slot) {
        Objects.checkIndex(slot, table.config().maxWorkerSlots());
        if (ring.isClosed() || writer.forgetsQueued.incrementAndGet() > config.maxForgets()) {
            if (!ring.isClosed()) {
                writer.forgetsQueued.decrementAndGet();
            }
            return false;
        }
        publish(BookingCommand.Kind.FORGET_PREDICTED, slot);
        return true;
    }

    /**
     * Lets requests end whose deadline has come, predictions end that are too old, and the load of
     * the next 64 worker slots be compared with what is booked on them; for a housekeeping thread
     * to call, some times a second. Of several ticks that the writer finds together the latest time
     * counts.
     *
     * @param nowNs time by one clock
     * @return false if the pipeline is closed
     */
    public boolean tick(long nowNs) {
        if (ring.isClosed()) {
            return false;
        }
        writer.tickNs.accumulateAndGet(nowNs, Math::max);
        if (writer.tickQueued.compareAndSet(false, true)) {
            publish(BookingCommand.Kind.TICK, 0);
        }
        return true;
    }

    /**
     * What other routers over the same workers have to do with the bookings.
     *
     * @return null unless {@link BookingPipelineConfig#replicaRequests} is more than 0
     */
    public ReplicaPort replicaPortOrNull() {
        return replicaPort;
    }

    /** Bookings that may be open at the same time. */
    public int maxRequests() {
        return config.maxRequests();
    }

    /** Open bookings. */
    public int openBookings() {
        return bookings.openCount();
    }

    /** Whether a booking made now would be refused. */
    public boolean isFull() {
        return bookings.isFull();
    }

    /** Bookings that were refused. */
    public long refused() {
        return refused.get();
    }

    /** Records that could not be applied because of an error in the table. */
    public long failures() {
        return writer.failures();
    }

    /** Records that fit into the ring. */
    public int ringSize() {
        return ring.size();
    }

    /**
     * Position of the last record that was begun: of a change of a booking that was made before
     * this call, or a later one. For {@link #isApplied}.
     */
    public long position() {
        return ring.lastClaimed();
    }

    /**
     * Whether the loads and predictions show all records up to a position.
     *
     * @param position by {@link #position}
     */
    public boolean isApplied(long position) {
        return ring.isApplied(position);
    }

    /** Records waiting in the ring. */
    public long backlog() {
        return ring.backlog();
    }

    /**
     * Stops the writer at the next step; what else is in the ring is not applied. Idempotent. Waits
     * a second for the writer at most; a step that takes longer is finished, and the table keeps
     * its memory until then.
     */
    @Override
    public void close() {
        if (replicaPort != null) {
            replicaPort.close();
        }
        ring.close();
    }
}
