package io.kvasir.pipeline;

import com.lmax.disruptor.InsufficientCapacityException;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;

import io.kvasir.core.slots.RoutedPrefixes;
import io.kvasir.core.slots.SlotTable;

import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;

/**
 * The way of bookings into the slot table: many callers, one ring, one writer thread. From its
 * construction on, that thread is the only one that may write the table, and the prefixes that are
 * predicted from bookings.
 *
 * <p>Half of the ring is kept for finishing what is booked: a new booking is refused before a step
 * of a running one has to be. All methods may be called by any thread; none waits but {@link
 * #workerGone} and {@link #close}.
 */
public final class LifePipeline implements AutoCloseable {
    private static final long PARK_NS = 100_000;

    private final WriterThread thread;
    private final SlotWriter writer;
    private final Disruptor<LifeEvent> disruptor;
    private final RingBuffer<LifeEvent> ring;
    private final int reserve;
    private final AtomicLong refused = new AtomicLong();
    private volatile boolean closed;

    /**
     * Starts the writer thread; nothing is predicted.
     *
     * @param config sizes
     * @param table the table to write; not closed by this class
     */
    public LifePipeline(LifePipelineConfig config, SlotTable table) {
        this(config, table, null, requestId -> {});
    }

    /**
     * Starts the writer thread.
     *
     * @param config sizes
     * @param table the table to write; not closed by this class
     * @param routed takes the prompts of predicted bookings; its times are those of the ticks. Not
     *     closed by this class; null when nothing is predicted
     * @param ended told the id of each request that has ended without a {@link #free}: at its
     *     deadline, because its worker is gone, also before it was booked, or because as many as
     *     the table takes were running; on the writer thread, must not wait
     * @throws io.kvasir.core.memory.ClosedException if the table or the prefixes are closed
     * @throws IllegalStateException if another pipeline writes one of them
     */
    public LifePipeline(
            LifePipelineConfig config, SlotTable table, RoutedPrefixes routed, LongConsumer ended) {
        this.thread = newWriterThread(table, routed);
        try {
            this.writer =
                    new SlotWriter(
                            table,
                            routed,
                            config.retainedHashes(),
                            Objects.requireNonNull(ended),
                            thread);
            this.disruptor =
                    new Disruptor<>(
                            () -> new LifeEvent(config.initialHashes()),
                            config.ringSize(),
                            thread,
                            ProducerType.MULTI,
                            config.waitMode().strategy());
            disruptor.setDefaultExceptionHandler(writer);
            disruptor.handleEventsWith(writer);
            this.ring = disruptor.start();
        } catch (Throwable t) {
            thread.abandon();
            throw t;
        }
        this.reserve = ring.getBufferSize() / 2;
    }

    private static WriterThread newWriterThread(SlotTable table, RoutedPrefixes routed) {
        final String name = "kvasir-slot-writer";
        return routed == null
                ? new WriterThread(name, table.writer())
                : new WriterThread(name, table.writer(), routed.writer());
    }

    /**
     * Books a request of a slot's first tenant, without a deadline and without a prediction; see
     * {@link SlotTable#book} for what the caller has added before.
     *
     * @param requestId the caller's number of the request, unique while it runs
     * @param slot worker slot
     * @param localHashes local hashes of the prompt's full blocks, [count]; copied
     * @param count full blocks
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that the caller has added to the load cell
     * @return false if the ring has no room for a booking: nothing was taken
     */
    public boolean tryAdd(
            long requestId,
            int slot,
            long[] localHashes,
            int count,
            long prefillTokens,
            int provisionalBlocks) {
        return tryAdd(
                requestId,
                slot,
                0,
                localHashes,
                count,
                prefillTokens,
                provisionalBlocks,
                SlotTable.NO_DEADLINE,
                false);
    }

    /**
     * Books a request that ends of itself at a {@link #tick} after its deadline. One that comes
     * behind the {@link #workerGone} of its worker is not booked: it ends at once.
     *
     * @param requestId the caller's number of the request, unique while it runs
     * @param slot worker slot
     * @param tenancy which tenant of the slot the request goes to: the calls of {@link #workerGone}
     *     for the slot before this worker had it
     * @param localHashes local hashes of the prompt's full blocks, [count]; copied
     * @param count full blocks
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that the caller has added to the load cell
     * @param deadlineNs time by the clock of the ticks; {@link SlotTable#NO_DEADLINE} = never
     * @param predicted whether the slot is taken to hold the prompt from now on; without meaning
     *     where nothing is predicted
     * @return false if the ring has no room for a booking: nothing was taken
     */
    public boolean tryAdd(
            long requestId,
            int slot,
            int tenancy,
            long[] localHashes,
            int count,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs,
            boolean predicted) {
        final long sequence = ring.remainingCapacity() > reserve ? claim() : -1;
        if (sequence < 0) {
            refused.getAndIncrement();
            return false;
        }
        try {
            ring.get(sequence)
                    .add(
                            requestId,
                            slot,
                            tenancy,
                            localHashes,
                            count,
                            prefillTokens,
                            provisionalBlocks,
                            deadlineNs,
                            predicted);
        } finally {
            ring.publish(sequence);
        }
        return true;
    }

    /**
     * The request generates: its prompt is no work to prefill any more.
     *
     * @param requestId a booked request
     * @return false if the ring has no room, which booked requests cannot cause
     */
    public boolean prefillComplete(long requestId) {
        return step(LifeEvent.Kind.PREFILL_COMPLETE, requestId);
    }

    /**
     * The request's generated tokens fill one more block.
     *
     * @param requestId a booked request
     * @return false if only the room for finishing requests is left: the block is not counted
     */
    public boolean outputBlock(long requestId) {
        if (ring.remainingCapacity() <= reserve) {
            refused.getAndIncrement();
            return false;
        }
        return step(LifeEvent.Kind.OUTPUT_BLOCK, requestId);
    }

    /**
     * The request has ended.
     *
     * @param requestId a booked request
     * @return false if the ring has no room, which booked requests cannot cause
     */
    public boolean free(long requestId) {
        return step(LifeEvent.Kind.FREE, requestId);
    }

    /**
     * All requests of a worker slot have ended, and nothing is predicted for it any more: its next
     * tenancy begins. Waits while the ring is full.
     *
     * @param slot worker slot
     * @param whenGone called on the writer thread once nothing is booked on the slot any more; must
     *     not wait
     * @return false if the pipeline is closed
     */
    public boolean workerGone(int slot, Runnable whenGone) {
        Objects.requireNonNull(whenGone, "whenGone");
        long sequence = claim();
        while (sequence < 0) {
            if (closed) {
                return false;
            }
            LockSupport.parkNanos(PARK_NS);
            sequence = claim();
        }
        try {
            ring.get(sequence).workerGone(slot, whenGone);
        } finally {
            ring.publish(sequence);
        }
        return true;
    }

    /**
     * What bookings before this one predict of a worker slot is wrong: its engine has lost its
     * cache. The bookings stay.
     *
     * @param slot worker slot
     * @return false if the ring is too full for that now: nothing is forgotten
     */
    public boolean forgetPredicted(int slot) {
        final long sequence = ring.remainingCapacity() > reserve ? claim() : -1;
        if (sequence < 0) {
            refused.getAndIncrement();
            return false;
        }
        try {
            ring.get(sequence).forgetPredicted(slot);
        } finally {
            ring.publish(sequence);
        }
        return true;
    }

    /**
     * Lets requests end whose deadline has come, predictions end that are too old, and the load of
     * the next 64 worker slots be compared with what is booked on them; for a housekeeping thread
     * to call, some times a second.
     *
     * @param nowNs time by one clock
     * @return false if the ring is too full for that now; a later tick makes up for it
     */
    public boolean tick(long nowNs) {
        final long sequence = ring.remainingCapacity() > reserve ? claim() : -1;
        if (sequence < 0) {
            return false;
        }
        try {
            ring.get(sequence).tick(nowNs);
        } finally {
            ring.publish(sequence);
        }
        return true;
    }

    private boolean step(LifeEvent.Kind kind, long requestId) {
        final long sequence = claim();
        if (sequence < 0) {
            refused.getAndIncrement();
            return false;
        }
        try {
            ring.get(sequence).step(kind, requestId);
        } finally {
            ring.publish(sequence);
        }
        return true;
    }

    private long claim() {
        if (closed) {
            return -1;
        }
        try {
            return ring.tryNext();
        } catch (InsufficientCapacityException e) {
            return -1; // the exception is a constant without a trace
        }
    }

    /** Steps that the ring had no room for. */
    public long refused() {
        return refused.get();
    }

    /** Steps that could not be applied because of an error in the table. */
    public long failures() {
        return writer.failures();
    }

    /** Steps waiting in the ring. */
    public long backlog() {
        return ring.getBufferSize() - ring.remainingCapacity();
    }

    /**
     * Stops the writer at the next step; what else is in the ring is not applied. Idempotent. Waits
     * a second for the writer at most; a step that takes longer is finished, and the table keeps
     * its memory until then.
     */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            thread.stop(disruptor);
        }
    }
}
