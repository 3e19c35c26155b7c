package io.kvasir.core.index;

import static io.kvasir.core.index.IndexCheckpointDescriptor.FOLLOWED_OFFSET;
import static io.kvasir.core.index.IndexCheckpointDescriptor.LABEL_LENGTH_OFFSET;
import static io.kvasir.core.index.IndexCheckpointDescriptor.LABEL_OFFSET;
import static io.kvasir.core.index.IndexCheckpointDescriptor.MOST_LABEL;
import static io.kvasir.core.index.IndexCheckpointDescriptor.ROOT_OFFSET;
import static io.kvasir.core.index.IndexCheckpointDescriptor.SLOT_WORDS;
import static io.kvasir.core.index.IndexCheckpointDescriptor.WORDS_OFFSET;
import static io.kvasir.core.index.IndexCheckpointDescriptor.ownerWordOffset;
import static io.kvasir.core.index.IndexCheckpointDescriptor.slotOffset;

import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

import java.util.Objects;

/**
 * Saves what the tables of an index have in fields, in the memory that outlives the process: that
 * of the index as a whole, and of the worker slots that were changed since the last commit. With
 * the arena that is all there is of the index; what is not saved is counters of what happened, and
 * the order of eviction. Writer thread only.
 */
final class IndexCheckpoint {
    private final IndexMemory memory;
    private final IndexTables tables;
    private final OffHeap ofIndex;
    private final OffHeap ofSlots;
    private final KeptWords indexWords;
    private final KeptWords slotWords;
    private final int slots;

    /** One bit for each slot that was changed since the last commit. */
    private final long[] changed;

    /** These slots. */
    private final int[] changedSlots;

    private int changedCount;

    IndexCheckpoint(IndexMemory memory, IndexTables tables, int slots) {
        this.memory = memory;
        this.tables = tables;
        this.ofIndex = memory.ofIndex();
        this.ofSlots = memory.ofSlots();
        this.indexWords = new KeptWords(ofIndex);
        this.slotWords = new KeptWords(ofSlots);
        this.slots = slots;
        this.changed = new long[(slots + Long.SIZE - 1) / Long.SIZE];
        this.changedSlots = new int[slots];
    }

    /** A slot is being changed. */
    void touch(int slot) {
        final long bit = 1L << slot;
        if ((changed[slot / Long.SIZE] & bit) == 0) {
            changed[slot / Long.SIZE] |= bit;
            changedSlots[changedCount++] = slot;
        }
    }

    /** All slots are to be saved. */
    void touchAll() {
        for (int slot = 0; slot < slots; slot++) {
            touch(slot);
        }
    }

    /** Saves what has changed; from here on it is there after a restart. */
    void commit() {
        keepIndex(indexWords.saveTo(WORDS_OFFSET));
        while (changedCount > 0) {
            final int slot = changedSlots[--changedCount];
            changed[slot / Long.SIZE] &= ~(1L << slot);
            keepSlot(slot, slotWords.saveTo(slotOffset(slot)));
        }
        memory.recoverable().commit();
    }

    /** Makes a memory complete that was empty: from here on it can be opened again. */
    void made() {
        ofIndex.putLong(ROOT_OFFSET, tables.tree.root());
        touchAll();
        commit();
        memory.recoverable().made();
    }

    /** Sets the fields of tables that were just made to what was saved. */
    void restore() {
        keepIndex(indexWords.restoreFrom(WORDS_OFFSET));
        for (int slot = 0; slot < slots; slot++) {
            keepSlot(slot, slotWords.restoreFrom(slotOffset(slot)));
        }
    }

    private void keepIndex(KeptWords words) {
        tables.arena.keep(words);
        tables.tree.keep(words);
        tables.holders.keep(words);
        assert words.at() <= FOLLOWED_OFFSET;
    }

    private void keepSlot(int slot, KeptWords words) {
        tables.shares.keep(slot, words);
        words.keep(tables.slotCells, SlotCellDescriptor.appliedSequenceOffset(slot));
        tables.missing.keep(slot, words);
        tables.heldRuns[slot].keep(words);
        tables.lookups[slot].keep(words);
        assert words.at() == slotOffset(slot) + (long) SLOT_WORDS * Long.BYTES;
    }

    /** Engines are followed at this time, unless a later one is there already. */
    void followed(long atMs) {
        store(ofIndex, FOLLOWED_OFFSET, Math.max(atMs, ofIndex.getLong(FOLLOWED_OFFSET)));
    }

    // -- what the owner keeps with a slot ------------------------------------------------------

    /** Sets a word of the index as a whole. */
    void indexWord(int word, long value) {
        store(ofIndex, indexWordOffset(word), value);
    }

    /** A word of the index as a whole. */
    long indexWord(int word) {
        return ofIndex.getLong(indexWordOffset(word));
    }

    private static long indexWordOffset(int word) {
        Objects.checkIndex(word, IndexCheckpointDescriptor.OWNER_WORDS);
        return IndexCheckpointDescriptor.indexOwnerWordOffset(word);
    }

    private static void store(OffHeap area, long at, long value) {
        if (area.getLong(at) != value) {
            area.putLong(at, value);
        }
    }

    /** Sets a word. */
    void word(int slot, int word, long value) {
        store(ofSlots, wordOffset(slot, word), value);
    }

    /** A word. */
    long word(int slot, int word) {
        return ofSlots.getLong(wordOffset(slot, word));
    }

    private static long wordOffset(int slot, int word) {
        Objects.checkIndex(word, IndexCheckpointDescriptor.OWNER_WORDS);
        return ownerWordOffset(slot, word);
    }

    /** Sets the label; false if it is too long: then there is none. */
    boolean label(int slot, byte[] label) {
        final boolean fits = label.length <= MOST_LABEL;
        final int length = fits ? label.length : 0;
        final long at = slotOffset(slot);
        for (int i = 0; i < length; i++) {
            ofSlots.putByte(at + LABEL_OFFSET + i, label[i]);
        }
        ofSlots.putLong(at + LABEL_LENGTH_OFFSET, length);
        return fits;
    }

    /** The label; empty where there is none. */
    byte[] label(int slot) {
        final long at = slotOffset(slot);
        final long length = ofSlots.getLong(at + LABEL_LENGTH_OFFSET);
        final byte[] label = new byte[Math.clamp(length, 0, MOST_LABEL)];
        for (int i = 0; i < label.length; i++) {
            label[i] = ofSlots.getByte(at + LABEL_OFFSET + i);
        }
        return label;
    }

    /** The content may be wrong: it is not to be used after a restart. */
    void spoil() {
        memory.recoverable().spoil();
    }
}
