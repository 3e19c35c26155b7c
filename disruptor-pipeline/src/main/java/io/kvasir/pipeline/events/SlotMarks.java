package io.kvasir.pipeline.events;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.wire.KvBatch;

/** Which message each slot was brought to last, and how completely. Writer thread only. */
final class SlotMarks {
    /** The content of the message of the slot's number is known. */
    private static final byte KNOWN = 1;

    /** Nothing was missing from its stream then. */
    private static final byte COMPLETE = 2;

    /** The index has refused stores as unknown or invalid since the last clear. */
    private static final byte REFUSED = 4;

    private final PrefixIndex index;
    private final long[] contents;
    private final byte[] flags;

    SlotMarks(PrefixIndex index) {
        this.index = index;
        this.contents = new long[index.config().maxWorkerSlots()];
        this.flags = new byte[contents.length];
    }

    /** A store of a slot had this result. */
    void stored(int slot, StoreResult result) {
        if (result == StoreResult.UNKNOWN_PARENT || result == StoreResult.INVALID) {
            flags[slot] |= REFUSED;
        }
    }

    /** All of a slot was dropped. */
    void cleared(int slot) {
        flags[slot] &= ~REFUSED;
    }

    /** A batch is applied, and the slot's number not yet that of the batch. */
    void applied(KvBatch batch) {
        final int slot = batch.slot();
        if (batch.isOfMessage()) {
            contents[slot] = batch.content();
            final int kept = flags[slot] & REFUSED;
            flags[slot] = (byte) (kept | KNOWN | (batch.isComplete() ? COMPLETE : 0));
        } else if (batch.sequence() != index.appliedSequence(slot)) {
            flags[slot] &= ~KNOWN; // what is beside messages has the number of the last one
        }
    }

    /** The slot has been restored. */
    void restored(int slot, SlotMark mark) {
        contents[slot] = mark.content();
        flags[slot] = (byte) (KNOWN | (mark.complete() ? COMPLETE : 0));
    }

    /** The slot has no tenant any more. */
    void forget(int slot) {
        flags[slot] = 0;
    }

    /** How far a slot is; null if it is not known exactly. */
    SlotMark of(int slot) {
        final long sequence = index.appliedSequence(slot);
        if (sequence < 0 || (flags[slot] & KNOWN) == 0) {
            return null;
        }
        return new SlotMark(
                sequence,
                contents[slot],
                (flags[slot] & (COMPLETE | REFUSED)) == COMPLETE,
                index.heldBlocks(slot),
                index.missingBlocks(slot),
                index.turnover(slot));
    }
}
