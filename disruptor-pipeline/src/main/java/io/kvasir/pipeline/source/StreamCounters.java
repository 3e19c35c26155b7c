package io.kvasir.pipeline.source;

import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.wire.ApplyListener;

import java.util.concurrent.atomic.AtomicLong;

/** What became of one stream's batches. Written by the applying thread, read by any. */
final class StreamCounters implements ApplyListener {
    private static final long NOT_FULL = Long.MAX_VALUE;
    private static final String KNOBS = "; raise max-blocks and max-held-blocks, or index-bytes";

    final AtomicLong applied = new AtomicLong();
    final AtomicLong blocksStored = new AtomicLong();
    final AtomicLong blocksRemoved = new AtomicLong();
    final AtomicLong unknownRemovals = new AtomicLong();
    final AtomicLong unknownParents = new AtomicLong();
    final AtomicLong capacityRefusals = new AtomicLong();
    final AtomicLong missingParents = new AtomicLong();
    final AtomicLong evictedBlocks = new AtomicLong();
    final AtomicLong invalidStores = new AtomicLong();
    final AtomicLong failures = new AtomicLong();

    private final BatchProgress progress;
    private volatile String impairment = "";
    private volatile boolean failed;
    private volatile long missing;
    private volatile long removedWhenFull = NOT_FULL; // blocks removed before the last refusal

    StreamCounters(BatchProgress progress) {
        this.progress = progress;
    }

    /**
     * Why the index misses blocks that were announced since the last clear, except because it is
     * full; empty if it does not.
     */
    String impairment() {
        return impairment;
    }

    /** Whether an error inside the index is the reason. */
    boolean hasFailed() {
        return failed;
    }

    /** Blocks that were announced and are not held because the index is full. */
    long missing() {
        return missing;
    }

    /** Why blocks are {@link #missing}; empty if none are. */
    String shortage() {
        final long blocks = missing;
        return blocks == 0
                ? ""
                : "the index is full: " + blocks + " blocks were evicted or refused" + KNOBS;
    }

    /** Stores that the index did not take, for whatever reason. */
    long refusedStores() {
        return unknownParents.get()
                + capacityRefusals.get()
                + missingParents.get()
                + invalidStores.get();
    }

    /** Whether blocks of this stream were removed since the index had no room for others. */
    boolean hasRoomAgain() {
        return blocksRemoved.get() > removedWhenFull;
    }

    @Override
    public void stored(StoreResult result, int blocks) {
        switch (result) {
            case STORED -> blocksStored.getAndAdd(blocks);
            case UNKNOWN_PARENT -> {
                unknownParents.getAndIncrement();
                impairment = "stores after blocks that the index does not know were refused";
            }
            case CAPACITY -> {
                capacityRefusals.getAndIncrement();
                removedWhenFull = blocksRemoved.get();
            }
            case MISSING_PARENT -> missingParents.getAndIncrement();
            case INVALID -> {
                invalidStores.getAndIncrement();
                impairment = "stores that contradict what the index knows were refused";
            }
        }
    }

    @Override
    public void removed(int blocks, int unknown) {
        blocksRemoved.getAndAdd(blocks);
        unknownRemovals.getAndAdd(unknown);
    }

    @Override
    public void evicted(int blocks) {
        evictedBlocks.getAndAdd(blocks);
        removedWhenFull = blocksRemoved.get();
    }

    @Override
    public void missing(long blocks) {
        if (missing != blocks) {
            missing = blocks;
        }
    }

    @Override
    public void cleared() {
        missing = 0;
        failed = false;
        impairment = "";
        removedWhenFull = NOT_FULL;
    }

    @Override
    public void applied(int operations) {
        applied.getAndAdd(operations);
        progress.apply();
    }

    @Override
    public void failed() {
        failed = true;
        impairment = "an error inside the index: the slot is set aside until it is loaded again";
        failures.getAndIncrement();
        progress.apply();
    }

    @Override
    public void damaged() {
        failed = true;
        impairment = "the index is damaged: it may lack blocks until the engine is loaded again";
    }

    @Override
    public void skipped() {
        progress.apply();
    }
}
