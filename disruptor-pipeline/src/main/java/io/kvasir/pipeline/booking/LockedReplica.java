package io.kvasir.pipeline.booking;

import io.kvasir.core.load.ActiveRequests;
import io.kvasir.pipeline.log.LogLimit;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The part in replica sync of a table of active requests that has no {@link BookingPipeline},
 * because its owner writes it under a lock: says what becomes of the owner's requests, and applies
 * those of others under the same lock, on the replica thread.
 *
 * <p>The owner calls all methods but {@link #port} with the lock held, after each change. Its
 * requests have indexes below {@link BookingPipelineConfig#entries}, and numbers that are never
 * given twice.
 */
public final class LockedReplica {
    private static final Logger LOG = LoggerFactory.getLogger(LockedReplica.class);

    private final Object lock;
    private final int[] slotGenerations; // tenants that each slot has had; guarded by the lock
    private final ReplicaWriter writer; // likewise
    private final ReplicaPort port;
    private final LogLimit failureLines = new LogLimit();

    /**
     * @param table for {@link BookingPipelineConfig#tableEntries} requests; not closed by this
     * @param config sizes of both
     * @param lock under which the table is written
     */
    public LockedReplica(ActiveRequests table, BookingPipelineConfig config, Object lock) {
        this.lock = lock;
        this.slotGenerations = new int[table.config().maxWorkerSlots()];
        final ReplicaOutbox outbox = ReplicaOutbox.forRequests(config.maxRequests());
        this.writer = new ReplicaWriter(table, null, slotGenerations, config, outbox);
        this.port = new ReplicaPort(writer, outbox, config, this::applySteps);
    }

    private void applySteps() {
        synchronized (lock) {
            writer.applySteps(this::failed);
            writer.endOfBatch();
        }
    }

    private void failed(Throwable error) {
        final String more = failureLines.take(System.nanoTime());
        if (more != null) {
            LOG.error("a step of another tracker could not be applied{}", more, error);
        }
    }

    /** The same for the thread that keeps the replicas in step; any thread. */
    public ReplicaPort port() {
        return port;
    }

    /** Whether a number is that of a request of the owner; else it is another replica's. */
    public boolean isOwn(long number) {
        return writer.isOwn(number);
    }

    /** How many workers had a slot before the one of now. */
    public int slotGeneration(int slot) {
        return slotGenerations[slot];
    }

    /**
     * A request of the owner was booked.
     *
     * @param hashes of the prompt's full blocks; copied
     * @param prefillTokens tokens that the worker has to prefill
     */
    public void added(long number, int slot, long[] hashes, long prefillTokens) {
        writer.added(number, slot, slotGenerations[slot], hashes, hashes.length, 0, prefillTokens);
        writer.endOfBatch();
    }

    /** The prompt of a request of the owner is computed. */
    public void prefilled(long number, int slot) {
        writer.prefilled(number, slot, slotGenerations[slot]);
        writer.endOfBatch();
    }

    /** A request of the owner has ended. */
    public void freed(long number, int slot) {
        writer.freed(number, slot, slotGenerations[slot]);
        writer.endOfBatch();
    }

    /** The worker of a slot was removed, and all requests on it have ended. */
    public void workerGone(int slot) {
        slotGenerations[slot]++;
    }
}
