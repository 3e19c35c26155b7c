package io.kvasir.pipeline.events;

import io.kvasir.pipeline.snapshot.SlotMark;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * What one worker slot holds, exact after one message: made by the writer thread in slices, and
 * taken by one other thread. Until all is made the slot's further messages wait; if these become
 * too many, or the slot gets another tenant, the snapshot is given up and what was taken of it
 * means nothing.
 */
public final class SlotSnapshot implements AutoCloseable {
    /** How it ended. */
    public enum Outcome {
        /** All was made. */
        WHOLE,
        /** The slot's events stand at no message that could be known again. */
        NO_MESSAGE,
        /** The slot's further messages had no room to wait. */
        OVERTAKEN,
        /** The slot has another tenant, or none. */
        RETIRED,
        /** The slot is set aside after an error. */
        SET_ASIDE,
        /** The one that asked for it has closed it. */
        CANCELLED,
        /** An error on the writer thread. */
        FAILED,
        /** The pipeline was closed first. */
        CLOSED
    }

    /** Chunks that are made before some are taken. */
    static final int MOST_CHUNKS = 16;

    private static final long CHECK_NS = TimeUnit.MILLISECONDS.toNanos(50);

    private final int slot;
    private final int generation;
    private final BooleanSupplier alive;
    private final Runnable wakeWriter;
    private final Queue<byte[]> chunks = new ConcurrentLinkedQueue<>();
    private final AtomicInteger waitingChunks = new AtomicInteger();
    private volatile SlotMark mark;
    private volatile Outcome outcome;
    private volatile boolean cancelled;
    private volatile Thread taker;

    SlotSnapshot(int slot, int generation, BooleanSupplier alive, Runnable wakeWriter) {
        this.slot = slot;
        this.generation = generation;
        this.alive = alive;
        this.wakeWriter = wakeWriter;
    }

    int slot() {
        return slot;
    }

    int generation() {
        return generation;
    }

    boolean isCancelled() {
        return cancelled;
    }

    /** Whether the writer is to wait until chunks are taken. */
    boolean isAhead() {
        return waitingChunks.get() >= MOST_CHUNKS;
    }

    /** The writer has begun. */
    void begun(SlotMark at) {
        mark = at;
        wakeTaker();
    }

    /** The writer has made a chunk. */
    void made(byte[] chunk) {
        waitingChunks.getAndIncrement();
        chunks.add(chunk);
        wakeTaker();
    }

    /** It is over. */
    void ended(Outcome how) {
        outcome = how; // after the last chunk: a taker that reads it finds all of them
        wakeTaker();
    }

    private void wakeTaker() {
        final Thread waiting = taker;
        if (waiting != null) {
            LockSupport.unpark(waiting);
        }
    }

    /**
     * Waits until the writer has begun.
     *
     * @return how far the slot is; null if it ended before it began, see {@link #outcome}
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public SlotMark mark() throws InterruptedException {
        taker = Thread.currentThread();
        while (mark == null && !isOver()) {
            pause();
        }
        return mark;
    }

    /**
     * Waits for the next records, to be read by {@code SlotRecords}.
     *
     * @return a chunk; null after the last one, see {@link #outcome}
     * @throws InterruptedException if the waiting thread is interrupted
     */
    public byte[] take() throws InterruptedException {
        taker = Thread.currentThread();
        while (true) {
            final boolean over = isOver(); // before the queue is read: what ended has all in it
            final byte[] chunk = chunks.poll();
            if (chunk != null) {
                if (waitingChunks.getAndDecrement() == MOST_CHUNKS) {
                    wakeWriter.run();
                }
                return chunk;
            }
            if (over) {
                return null;
            }
            pause();
        }
    }

    private boolean isOver() {
        if (outcome == null && !alive.getAsBoolean() && outcome == null) {
            outcome = Outcome.CLOSED;
        }
        return outcome != null;
    }

    private void pause() throws InterruptedException {
        LockSupport.parkNanos(this, CHECK_NS);
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    /** How it ended; null as long as it is under way. */
    public Outcome outcome() {
        return outcome;
    }

    /** Gives it up, unless it is over. Any thread. */
    @Override
    public void close() {
        if (outcome == null) {
            cancelled = true;
            wakeWriter.run();
        }
    }
}
