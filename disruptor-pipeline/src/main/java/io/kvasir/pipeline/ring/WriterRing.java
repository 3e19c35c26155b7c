package io.kvasir.pipeline.ring;

import com.lmax.disruptor.EventFactory;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.ExceptionHandler;
import com.lmax.disruptor.InsufficientCapacityException;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.WaitStrategy;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;

/**
 * A ring of records from many threads to one writer thread, and the end of both. A record is
 * claimed, filled and published; between claim and publication nothing may fail or take long, as
 * later records wait for it.
 *
 * <p>All methods may be called by any thread.
 *
 * @param <E> the records, made once and used again
 */
public final class WriterRing<E> {
    /** No record could be claimed. */
    public static final long NONE = -1;

    private final WriterThread thread;
    private final Disruptor<E> disruptor;
    private final RingBuffer<E> ring;
    private volatile boolean started;
    private volatile boolean closed;

    /**
     * Starts the writer thread.
     *
     * @param thread of the writer; ended by {@link #close}
     * @param records makes one record
     * @param size records, a power of two
     * @param wait how the writer waits for the next
     * @param writer applies records, and takes what it throws itself
     */
    public <W extends EventHandler<E> & ExceptionHandler<E>> WriterRing(
            WriterThread thread, EventFactory<E> records, int size, WaitStrategy wait, W writer) {
        this(thread, records, size, wait, writer, false);
    }

    /**
     * Starts the writer thread, at once or when a record is first asked for with {@link #tryClaim}.
     *
     * @param thread of the writer; ended by {@link #close}
     * @param records makes one record
     * @param size records, a power of two
     * @param wait how the writer waits for the next
     * @param writer applies records, and takes what it throws itself
     * @param onDemand whether the thread waits until it is needed
     */
    public <W extends EventHandler<E> & ExceptionHandler<E>> WriterRing(
            WriterThread thread,
            EventFactory<E> records,
            int size,
            WaitStrategy wait,
            W writer,
            boolean onDemand) {
        this.thread = thread;
        disruptor = new Disruptor<>(records, size, thread, ProducerType.MULTI, wait);
        disruptor.setDefaultExceptionHandler(writer);
        disruptor.handleEventsWith(writer);
        ring = disruptor.getRingBuffer();
        if (!onDemand) {
            start();
        }
    }

    private synchronized void start() {
        if (!started && !closed) {
            disruptor.start();
            started = true;
        }
    }

    /** Claims a record without waiting; {@link #NONE} when the ring is full or closed. */
    public long tryClaim() {
        if (closed) {
            return NONE;
        }
        if (!started) {
            start();
        }
        try {
            return ring.tryNext();
        } catch (InsufficientCapacityException e) {
            return NONE; // the exception is a constant without a trace
        }
    }

    /** Claims a record; for rings that have room for all that can be under way. */
    public long claim() {
        return ring.next();
    }

    /** The claimed record. */
    public E record(long sequence) {
        return ring.get(sequence);
    }

    /** Gives the record to the writer. */
    public void publish(long sequence) {
        ring.publish(sequence);
    }

    /** Whether a claim made now would probably succeed. */
    public boolean hasRoom() {
        return ring.hasAvailableCapacity(1);
    }

    /** Records that fit. */
    public int size() {
        return ring.getBufferSize();
    }

    /** Records that wait for the writer. */
    public long backlog() {
        return ring.getBufferSize() - ring.remainingCapacity();
    }

    /** Number of the last record that was claimed, published or not; -1 before the first. */
    public long lastClaimed() {
        return ring.getCursor();
    }

    /**
     * Whether the writer has applied a record and all before it.
     *
     * @param sequence number of the record
     * @return true once what they changed is to be seen; some records later at worst, as the writer
     *     says so after each batch
     */
    public boolean isApplied(long sequence) {
        return ring.getMinimumGatingSequence() >= sequence;
    }

    /** Whether {@link #close} was called. */
    public boolean isClosed() {
        return closed;
    }

    /**
     * Ends the writer at the next record; what else is in the ring is not applied. Idempotent.
     * Waits a second for the writer at most; a record that takes longer is finished, and the memory
     * that it writes stays until then.
     */
    public synchronized void close() {
        if (!closed) {
            closed = true;
            if (started) {
                thread.stop(disruptor);
            } else {
                thread.abandon();
            }
        }
    }
}
