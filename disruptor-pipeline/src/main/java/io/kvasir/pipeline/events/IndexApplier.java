package io.kvasir.pipeline.events;

import io.kvasir.core.index.LowerTiers;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StorageTier;
import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

/**
 * Applies batches to an index on the calling thread, which must be the index's only writer. Used by
 * the ring's consumer, and directly where no ring is wanted: tests, offline checks.
 */
public final class IndexApplier implements KvEventSink {
    private static final int RETAINED_BLOCKS = 1 << 16;
    private final PrefixIndex index;
    private final LowerTiers lowerOrNull;

    private final SlotMarks marks;

    /** Of each slot, the listener of its last batch, or given before the first; null for none. */
    private final ApplyListener[] listeners;

    // Copies of the batch's words, because the index reads both lists from 0. They take 1 to 3 ns
    // a block where a store has 4 or more, of the 100 that the index takes for it; without them
    // each of its indices into the lists would have an offset beside it.
    private long[] engineHashes = new long[256];
    private long[] localHashes = new long[256];

    /**
     * @param index the index to write; not closed by this class
     */
    public IndexApplier(PrefixIndex index) {
        this(index, null);
    }

    /**
     * @param index the index to write; not closed by this class
     * @param lowerOrNull the tiers below the device, of that index; null where none is indexed
     */
    public IndexApplier(PrefixIndex index, LowerTiers lowerOrNull) {
        this.index = index;
        this.lowerOrNull = lowerOrNull;
        this.marks = new SlotMarks(index);
        this.listeners = new ApplyListener[index.config().maxWorkerSlots()];
        index.onEviction(this::evicted);
    }

    private void evicted(int slot, long[] removed, int count) {
        final ApplyListener listener = listeners[slot];
        if (listener != null) {
            listener.evicted(count);
            listener.missing(index.missingBlocks(slot));
        }
    }

    @Override
    public long mostBlocks() {
        return index.config().maxHeldBlocks();
    }

    @Override
    public boolean hasRoom(int slot) {
        return index.hasRoom(slot);
    }

    @Override
    public void listen(int slot, ApplyListener listener) {
        listeners[slot] = listener;
        listener.missing(index.missingBlocks(slot));
    }

    /** The slot has no tenant any more: its listener is not called again. */
    void forget(int slot) {
        listeners[slot] = null;
        marks.forget(slot);
        marks.keep(slot);
    }

    /** A reader found the index damaged: no slot is known to hold all of its blocks any more. */
    void damaged() {
        marks.damaged();
        for (ApplyListener listener : listeners) {
            if (listener != null) {
                listener.damaged();
            }
        }
    }

    /** How far the slots are. */
    SlotMarks marks() {
        return marks;
    }

    /**
     * Applies one batch.
     *
     * @param batch what to apply; its listener is notified
     * @return true
     */
    @Override
    public boolean offer(KvBatch batch) {
        final ApplyListener listener = batch.listener();
        listeners[batch.slot()] = listener;
        for (int at = batch.first(); at >= 0; at = batch.next(at)) {
            if (batch.tier(at) != StorageTier.DEVICE) {
                applyLower(batch, at);
                continue;
            }
            switch (batch.kind(at)) {
                case STORED -> store(batch, at, listener);
                case REMOVED -> remove(batch, at, listener);
                case REMOVED_TO -> {
                    index.removeTo(batch.slot(), batch.engineHash(at), batch.count(at));
                    if (lowerOrNull != null) {
                        lowerOrNull.deviceRemovedTo(
                                batch.slot(), batch.engineHash(at), batch.count(at));
                    }
                    listener.removed(1, 0);
                }
                case REFILL -> {
                    if (batch.count(at) == 0) {
                        index.beginRefill(batch.slot());
                    } else {
                        index.endRefill(batch.slot());
                    }
                }
                case TIER_CLEARED -> {
                    if (lowerOrNull != null) {
                        lowerOrNull.deviceCleared(batch.slot()); // while it is known what was there
                    }
                    index.clear(batch.slot());
                    marks.cleared(batch.slot());
                    listener.cleared();
                }
                case NAMED -> throw new IllegalArgumentException("of a lower tier only");
                case CLEARED -> {
                    clear(batch.slot());
                    marks.cleared(batch.slot());
                    listener.cleared();
                }
            }
        }
        marks.applied(batch);
        marks.keep(batch.slot());
        index.eventApplied(batch.slot(), batch.sequence());
        index.commit();
        listener.missing(index.missingBlocks(batch.slot()));
        listener.applied(batch.operations());
        return true;
    }

    /** Empties a slot in all tiers. */
    void clear(int slot) {
        try {
            index.clear(slot);
        } finally {
            if (lowerOrNull != null) {
                lowerOrNull.cleared(slot);
            }
        }
    }

    /**
     * An operation in a lower tier, which the listener, of the index itself, is not notified of.
     */
    private void applyLower(KvBatch batch, int at) {
        if (lowerOrNull == null) {
            return;
        }
        final int count = batch.count(at);
        reserve(count);
        batch.engineHashes(at, engineHashes);
        switch (batch.kind(at)) {
            case STORED -> {
                batch.localHashes(at, localHashes);
                lowerOrNull.stored(
                        batch.slot(),
                        batch.tier(at),
                        batch.isRoot(at),
                        batch.parent(at),
                        engineHashes,
                        localHashes,
                        count);
            }
            case NAMED ->
                    lowerOrNull.storedByName(batch.slot(), batch.tier(at), engineHashes, count);
            case REMOVED -> lowerOrNull.removed(batch.slot(), batch.tier(at), engineHashes, count);
            case TIER_CLEARED -> lowerOrNull.tierCleared(batch.slot(), batch.tier(at));
            default -> throw new IllegalArgumentException(batch.kind(at) + " is of no tier");
        }
        trim();
    }

    private void store(KvBatch batch, int at, ApplyListener listener) {
        final int count = batch.count(at);
        reserve(count);
        batch.engineHashes(at, engineHashes);
        batch.localHashes(at, localHashes);
        final boolean root = batch.isRoot(at);
        final StoreResult result =
                index.store(
                        batch.slot(),
                        root,
                        batch.parent(at),
                        engineHashes,
                        localHashes,
                        count,
                        batch.isReport(at));
        if (lowerOrNull != null) {
            lowerOrNull.deviceStored(
                    batch.slot(),
                    root,
                    batch.parent(at),
                    engineHashes,
                    localHashes,
                    count,
                    batch.isReport(at),
                    result);
        }
        marks.stored(batch.slot(), result);
        listener.stored(result, count);
        trim();
    }

    private void remove(KvBatch batch, int at, ApplyListener listener) {
        final int count = batch.count(at);
        reserve(count);
        batch.engineHashes(at, engineHashes);
        final int unknown = index.remove(batch.slot(), engineHashes, count, batch.copyRule());
        if (lowerOrNull != null) {
            lowerOrNull.deviceRemoved(batch.slot(), engineHashes, count, batch.copyRule());
        }
        listener.removed(count, unknown);
        trim();
    }

    private void reserve(int count) {
        if (engineHashes.length < count) {
            engineHashes = new long[count];
            localHashes = new long[count];
        }
    }

    private void trim() {
        if (engineHashes.length > RETAINED_BLOCKS) {
            engineHashes = new long[RETAINED_BLOCKS];
            localHashes = new long[RETAINED_BLOCKS];
        }
    }
}
