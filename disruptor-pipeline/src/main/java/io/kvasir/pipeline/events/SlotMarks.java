package io.kvasir.pipeline.events;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.StoreResult;
import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.source.PlanePosition;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.pipeline.wire.KvBatch;

/**
 * Which message each slot was brought to last, and how completely; and what its stream had learned
 * by then, but for lists. Where the index is kept, that is kept with the slot. Writer thread only.
 */
final class SlotMarks {
    /** The content of the message of the slot's number is known. */
    private static final byte KNOWN = 1;

    /** Nothing was missing from its stream then. */
    private static final byte COMPLETE = 2;

    /**
     * The index has refused stores as unknown or invalid, or was found damaged, since the last
     * clear.
     */
    private static final byte REFUSED = 4;

    /** Removals mean the last copy. */
    private static final byte LAST_COPY = 8;

    /** Blocks are hashed for EAGLE. */
    private static final byte EAGLE = 16;

    /** There are seeds of salted chains, which are not kept. */
    private static final byte SALTED = 32;

    /** What is of the message, and is replaced with the next one. */
    private static final byte OF_MESSAGE = KNOWN | COMPLETE | LAST_COPY | EAGLE | SALTED;

    private static final long[] NO_SEEDS = {};
    private static final int CONTENT_WORD = 0;
    private static final int FLAGS_WORD = 1;
    private static final int GROUP_WORD = 2;
    private static final int POSITION_WORD = 3;
    private static final int STORE_WORD = 0; // of the index
    private static final int UP_TO_WORD = 1; // likewise

    private final PrefixIndex index;
    private final long[] contents;
    private final long[] groups;
    private final byte[] flags;
    private final long[] positions; // in a stream that many share

    SlotMarks(PrefixIndex index) {
        this.index = index;
        this.contents = new long[index.config().maxWorkerSlots()];
        this.groups = new long[contents.length];
        this.flags = new byte[contents.length];
        this.positions = new long[contents.length];
        for (int slot = 0; index.isKept() && slot < flags.length; slot++) {
            contents[slot] = index.keptWord(slot, CONTENT_WORD);
            flags[slot] = (byte) index.keptWord(slot, FLAGS_WORD);
            groups[slot] = index.keptWord(slot, GROUP_WORD);
            positions[slot] = index.keptWord(slot, POSITION_WORD);
        }
    }

    /** Keeps what is known of a slot with the change under way. */
    void keep(int slot) {
        if (index.isKept()) {
            index.keptWord(slot, CONTENT_WORD, contents[slot]);
            index.keptWord(slot, FLAGS_WORD, flags[slot]);
            index.keptWord(slot, GROUP_WORD, groups[slot]);
            index.keptWord(slot, POSITION_WORD, positions[slot]);
        }
    }

    /**
     * How far the messages that many slots share are in the index as a whole; null if that was
     * never kept.
     */
    PlanePosition planePosition() {
        final long store = index.keptIndexWord(STORE_WORD);
        return store == 0 ? null : new PlanePosition(store, index.keptIndexWord(UP_TO_WORD));
    }

    /**
     * Keeps that with the change under way. The positions of slots are of the same store: where it
     * is another one, none of them is known any more.
     */
    void keep(PlanePosition position) {
        if (index.keptIndexWord(STORE_WORD) != position.store()) {
            for (int slot = 0; slot < positions.length; slot++) {
                positions[slot] = 0;
                index.keptWord(slot, POSITION_WORD, 0);
            }
        }
        index.keptIndexWord(STORE_WORD, position.store());
        index.keptIndexWord(UP_TO_WORD, position.upTo());
    }

    /** A store of a slot had this result. */
    void stored(int slot, StoreResult result) {
        if (result == StoreResult.UNKNOWN_PARENT || result == StoreResult.INVALID) {
            flags[slot] |= REFUSED;
        }
    }

    /** All of a slot was dropped: it is as no message has left it, unless that is applied now. */
    void cleared(int slot) {
        flags[slot] &= ~(REFUSED | KNOWN);
    }

    /** No slot is known to hold all of its blocks until it is cleared. */
    void damaged() {
        for (int slot = 0; slot < flags.length; slot++) {
            flags[slot] |= REFUSED;
        }
    }

    /** A batch is applied, and the slot's number not yet that of the batch. */
    void applied(KvBatch batch) {
        final int slot = batch.slot();
        if (batch.isOfMessage()) {
            contents[slot] = batch.content();
            positions[slot] = batch.position();
            groups[slot] = batch.mainGroup();
            int of = KNOWN;
            of |= batch.isComplete() ? COMPLETE : 0;
            of |= batch.copyRule() == CopyRule.LAST_COPY ? LAST_COPY : 0;
            of |= batch.learnedEagle() ? EAGLE : 0;
            of |= batch.isSalted() ? SALTED : 0;
            flags[slot] = (byte) ((flags[slot] & ~OF_MESSAGE) | of);
        } else if (batch.sequence() != index.appliedSequence(slot)) {
            flags[slot] &= ~KNOWN; // what is beside messages has the number of the last one
        }
    }

    /** The slot has been restored. What its stream had learned is kept with its next message. */
    void restored(int slot, SlotMark mark) {
        contents[slot] = mark.content();
        positions[slot] = mark.position();
        flags[slot] = (byte) (KNOWN | (mark.complete() ? COMPLETE : 0) | SALTED);
    }

    /** The slot has no tenant any more. */
    void forget(int slot) {
        flags[slot] = 0;
    }

    /** What the stream of a slot had learned; null if not all of it is known. */
    StreamMemory memory(int slot) {
        return (flags[slot] & (KNOWN | SALTED)) == KNOWN
                ? new StreamMemory(
                        (flags[slot] & LAST_COPY) != 0
                                ? RemovalRule.LAST_COPY
                                : RemovalRule.PHYSICAL,
                        new DecoderMemory(groups[slot], (flags[slot] & EAGLE) != 0, NO_SEEDS))
                : null;
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
                index.turnover(slot),
                positions[slot]);
    }
}
