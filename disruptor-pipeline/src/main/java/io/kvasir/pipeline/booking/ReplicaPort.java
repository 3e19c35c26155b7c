package io.kvasir.pipeline.booking;

import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The booking pipeline as the thread that keeps router replicas in step has it: what becomes of the
 * router's own bookings, and how those of other routers enter the load. One thread at a time; no
 * method waits. Steps are applied in the order of the calls, by the booking writer.
 *
 * <p>Bookings of other routers have numbers {@code [generation:32 | index:32]} that the caller
 * gives: the index from {@link #firstIndex} on, {@link #capacity} of them, each under one booking
 * at a time, the generation not 0 and another one than the index had before.
 */
public final class ReplicaPort {
    private static final int MAX_STEPS = 8_192;

    private final ReplicaWriter writer;
    private final ReplicaOutbox outbox;
    private final Runnable publish;
    private final int firstIndex;
    private final int capacity;
    private final AtomicBoolean closed = new AtomicBoolean();

    ReplicaPort(
            ReplicaWriter writer,
            ReplicaOutbox outbox,
            BookingPipelineConfig config,
            Runnable publish) {
        this.writer = writer;
        this.outbox = outbox;
        this.publish = publish;
        this.firstIndex = config.entries();
        this.capacity = config.replicaRequests();
    }

    /** What has become of the router's own bookings. */
    public ReplicaOutbox outbox() {
        return outbox;
    }

    /** Lowest index of another router's booking. */
    public int firstIndex() {
        return firstIndex;
    }

    /** Bookings of other routers that there is room for. */
    public int capacity() {
        return capacity;
    }

    /** Whether so many steps wait for the writer that the caller had better pause. */
    public boolean isBusy() {
        return writer.stepsQueued.get() >= MAX_STEPS;
    }

    /** Steps that wait for the writer; any thread. */
    public int waitingSteps() {
        return writer.stepsQueued.get();
    }

    /**
     * Books a request of another router. Does nothing if the slot has another tenant by then.
     *
     * @param number the booking's number
     * @param slot worker slot
     * @param slotGeneration which tenant of the slot
     * @param localHashes local hashes of the prompt by this router's seed; kept until it is applied
     * @param ownBlocks blocks beside them, which it shares with no other
     * @param prefillTokens tokens that the worker has to prefill
     * @param predicted whether the slot is taken to hold the prompt from now on
     */
    public void book(
            long number,
            int slot,
            int slotGeneration,
            long[] localHashes,
            int ownBlocks,
            long prefillTokens,
            boolean predicted) {
        step(
                w ->
                        w.book(
                                number,
                                slot,
                                slotGeneration,
                                localHashes,
                                localHashes.length,
                                ownBlocks,
                                prefillTokens,
                                predicted));
    }

    /** The prompt of another router's request is computed. */
    public void prefillComplete(long number) {
        step(w -> w.prefillComplete(number));
    }

    /**
     * The output of another router's request has filled more blocks.
     *
     * @param blocks further blocks; fewer where it is negative
     */
    public void outputBlocks(long number, int blocks) {
        step(w -> w.outputBlocks(number, blocks));
    }

    /** Another router's request has ended. */
    public void free(long number) {
        step(w -> w.free(number));
    }

    /** Has digests of the router's own bookings put into the outbox. */
    public void digest() {
        step(ReplicaWriter::digest);
    }

    /** Has a list of the router's own bookings on a slot put into the outbox. */
    public void list(int slot, int slotGeneration) {
        step(w -> w.list(slot, slotGeneration));
    }

    /** Has one of the router's own bookings put into the outbox once more, if it is open. */
    public void resend(long number) {
        step(w -> w.resend(number));
    }

    private void step(ReplicaWriter.Step step) {
        if (closed.get()) {
            return;
        }
        writer.steps.add(step);
        writer.stepsQueued.getAndIncrement();
        if (writer.queued.compareAndSet(false, true)) {
            publish.run();
        }
    }

    void close() {
        closed.set(true);
    }
}
