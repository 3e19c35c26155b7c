package io.kvasir.core.index;

import static io.kvasir.core.index.EngineHashRecordDescriptor.COPIES_OFFSET;
import static io.kvasir.core.index.EngineHashRecordDescriptor.ENGINE_HASH_OFFSET;
import static io.kvasir.core.index.EngineHashRecordDescriptor.NEXT_OFFSET;
import static io.kvasir.core.index.EngineHashRecordDescriptor.POSITION_OFFSET;
import static io.kvasir.core.index.EngineHashRecordDescriptor.PREVIOUS_OFFSET;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;

/**
 * What one worker slot has announced beyond one copy of each block under one engine hash: copy
 * counts above 1, and aliases. A block with an alias has a record for each of its engine hashes,
 * the first one at the head of their chain. Writer thread only.
 */
final class EngineHashRecords {
    /** No record. */
    static final int NO_RECORD = -1;

    private static final int PER_SEGMENT =
            SegmentedLines.SEGMENT_LINES
                    * BuddyArena.LINE_LENGTH
                    / EngineHashRecordDescriptor.LENGTH;

    private final OffHeap memory;
    private final SegmentedLines lines;
    private int capacity;
    private int fresh;
    private int free = NO_RECORD;
    private int used;

    EngineHashRecords(BuddyArena arena) {
        this.memory = arena.memory();
        this.lines = new SegmentedLines(arena);
    }

    /** Names what there is beside the memory. */
    void keep(KeptWords words) {
        capacity = words.keep(capacity);
        fresh = words.keep(fresh);
        free = words.keep(free);
        used = words.keep(used);
        lines.keep(words);
    }

    /** Records. */
    int used() {
        return used;
    }

    /** Numbers of records are below this; not all of them are in use. */
    int end() {
        return fresh;
    }

    /**
     * Makes the record of an engine hash with one copy, in no chain.
     *
     * @return its number, or {@link #NO_RECORD} when there is no memory
     */
    int add(long engineHash, int position) {
        final int record;
        if (free != NO_RECORD) {
            record = free;
            free = next(record);
        } else if (fresh < capacity || grow()) {
            record = fresh++;
        } else {
            return NO_RECORD;
        }
        final long at = at(record);
        memory.putLong(at + ENGINE_HASH_OFFSET, engineHash);
        memory.putInt(at + POSITION_OFFSET, position);
        memory.putInt(at + COPIES_OFFSET, 1);
        memory.putInt(at + NEXT_OFFSET, 0);
        memory.putInt(at + PREVIOUS_OFFSET, 0);
        used++;
        return record;
    }

    private boolean grow() {
        if (!lines.grow()) {
            return false;
        }
        final int segments = lines.lines() / SegmentedLines.SEGMENT_LINES;
        capacity =
                segments == 0
                        ? lines.lines() * BuddyArena.LINE_LENGTH / EngineHashRecordDescriptor.LENGTH
                        : segments * PER_SEGMENT;
        return true;
    }

    /** Frees a record that is in no chain. */
    void remove(int record) {
        used--;
        if (used == 0) {
            clear();
            return;
        }
        memory.putInt(at(record) + NEXT_OFFSET, free + 1);
        free = record;
    }

    /** Gives all memory back; takes time for each segment. */
    void clear() {
        lines.release();
        capacity = 0;
        fresh = 0;
        free = NO_RECORD;
        used = 0;
    }

    /** Puts a record that is in no chain after another one. */
    void chain(int record, int before) {
        final int next = next(before);
        memory.putInt(at(record) + NEXT_OFFSET, next + 1);
        memory.putInt(at(record) + PREVIOUS_OFFSET, before + 1);
        memory.putInt(at(before) + NEXT_OFFSET, record + 1);
        if (next != NO_RECORD) {
            memory.putInt(at(next) + PREVIOUS_OFFSET, record + 1);
        }
    }

    /** Takes a record out of its chain. */
    void unchain(int record) {
        final int next = next(record);
        final int previous = previous(record);
        if (previous != NO_RECORD) {
            memory.putInt(at(previous) + NEXT_OFFSET, next + 1);
        }
        if (next != NO_RECORD) {
            memory.putInt(at(next) + PREVIOUS_OFFSET, previous + 1);
        }
        memory.putInt(at(record) + NEXT_OFFSET, 0);
        memory.putInt(at(record) + PREVIOUS_OFFSET, 0);
    }

    long engineHash(int record) {
        return memory.getLong(at(record) + ENGINE_HASH_OFFSET);
    }

    int position(int record) {
        return memory.getInt(at(record) + POSITION_OFFSET);
    }

    int copies(int record) {
        return memory.getInt(at(record) + COPIES_OFFSET);
    }

    void copies(int record, int copies) {
        memory.putInt(at(record) + COPIES_OFFSET, copies);
    }

    /** Record of another engine hash of the block, or {@link #NO_RECORD}. */
    int next(int record) {
        return memory.getInt(at(record) + NEXT_OFFSET) - 1;
    }

    /** Record before this one in the chain of its block, or {@link #NO_RECORD}. */
    int previous(int record) {
        return memory.getInt(at(record) + PREVIOUS_OFFSET) - 1;
    }

    /** Where the records are; for tests. */
    SegmentedLines lines() {
        return lines;
    }

    private long at(int record) {
        return lines.offset(record / PER_SEGMENT * SegmentedLines.SEGMENT_LINES)
                + (long) (record % PER_SEGMENT) * EngineHashRecordDescriptor.LENGTH;
    }
}
