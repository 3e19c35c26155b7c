package io.kvasir.pipeline;

import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.wire.ApplyListener;

import java.util.concurrent.atomic.AtomicLong;

/** What became of one stream's batches. Written by the applying thread, read by any. */
final class StreamCounters implements ApplyListener {
    final AtomicLong applied = new AtomicLong();
    final AtomicLong blocksStored = new AtomicLong();
    final AtomicLong blocksRemoved = new AtomicLong();
    final AtomicLong unknownRemovals = new AtomicLong();
    final AtomicLong unknownParents = new AtomicLong();
    final AtomicLong capacityRefusals = new AtomicLong();
    final AtomicLong invalidStores = new AtomicLong();
    final AtomicLong failures = new AtomicLong();

    /** Batches that the applying thread is done with, whatever became of them. */
    final AtomicLong batches = new AtomicLong();

    private volatile String impairment = "";

    /**
     * Why the index misses blocks that were announced since the last clear; empty if it does not.
     */
    String impairment() {
        return impairment;
    }

    @Override
    public void stored(StoreResult result, int blocks) {
        switch (result) {
            case STORED -> blocksStored.getAndAdd(blocks);
            case UNKNOWN_PARENT -> {
                unknownParents.getAndIncrement();
                impairment = "stores behind blocks that the index does not know were refused";
            }
            case CAPACITY -> {
                capacityRefusals.getAndIncrement();
                impairment =
                        "the index is full: stores were refused; raise index.maxBlocks and"
                                + " index.maxHeldBlocks";
            }
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
    public void cleared() {
        impairment = "";
    }

    @Override
    public void applied(int operations) {
        applied.getAndAdd(operations);
        batches.getAndIncrement();
    }

    @Override
    public void failed() {
        impairment = "an error inside the index: the slot is set aside until it is loaded again";
        failures.getAndIncrement();
        batches.getAndIncrement();
    }

    @Override
    public void skipped() {
        batches.getAndIncrement();
    }
}
