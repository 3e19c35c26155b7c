package io.kvasir.pipeline;

import java.util.Arrays;

/** One record of the life ring: a step in the life of a booked request. */
final class LifeEvent {
    /** The steps. */
    enum Kind {
        ADD,
        PREFILL_COMPLETE,
        OUTPUT_BLOCK,
        FREE,
        WORKER_GONE,
        FORGET_PREDICTED,
        TICK
    }

    Kind kind = Kind.FREE;
    long requestId;
    int slot;
    int tenancy; // of an ADD
    int count;
    long prefillTokens;
    int provisionalBlocks;
    boolean predicted;
    long timeNs; // of an ADD its deadline, of a TICK now
    long[] hashes;
    Runnable whenGone; // of a WORKER_GONE

    LifeEvent(int initialHashes) {
        hashes = new long[initialHashes];
    }

    void add(
            long request,
            int workerSlot,
            int slotTenancy,
            long[] localHashes,
            int hashCount,
            long tokens,
            int blocks,
            long deadlineNs,
            boolean isPredicted) {
        kind = Kind.ADD;
        requestId = request;
        slot = workerSlot;
        tenancy = slotTenancy;
        prefillTokens = tokens;
        provisionalBlocks = blocks;
        timeNs = deadlineNs;
        predicted = isPredicted;
        count = hashCount;
        if (hashes.length < hashCount) {
            hashes = Arrays.copyOf(localHashes, hashCount);
        } else {
            System.arraycopy(localHashes, 0, hashes, 0, hashCount);
        }
    }

    void step(Kind step, long request) {
        kind = step;
        requestId = request;
        count = 0;
    }

    void workerGone(int workerSlot, Runnable after) {
        kind = Kind.WORKER_GONE;
        requestId = 0;
        slot = workerSlot;
        whenGone = after;
        count = 0;
    }

    void forgetPredicted(int workerSlot) {
        kind = Kind.FORGET_PREDICTED;
        requestId = 0;
        slot = workerSlot;
        count = 0;
    }

    void tick(long nowNs) {
        kind = Kind.TICK;
        requestId = 0;
        timeNs = nowNs;
        count = 0;
    }

    void release(int retainedHashes) {
        whenGone = null;
        if (hashes.length > retainedHashes) {
            hashes = new long[retainedHashes];
        }
    }
}
