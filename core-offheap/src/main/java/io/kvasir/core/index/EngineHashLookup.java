package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRunDescriptor.NO_POSITION;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;

/**
 * The engine hashes of one worker slot: which block each stands for, with how many copies, and
 * which further ones its block has. Each stands for one block. Writer thread only.
 *
 * <p>Most of them stand beside the run that is held ({@link HeldRuns}) and are only looked up
 * through the {@link EngineHashIndex}, whose entry is a position; what has more than one copy or an
 * alias has a record, and its number, with the highest bit set, as its entry.
 */
final class EngineHashLookup implements EngineHashIndex.Names {
    private static final int RECORD = 1 << 31;

    private final HeldRuns heldRuns;
    private final EngineHashIndex index;
    private final EngineHashRecords records;
    private int expected = NO_POSITION;
    private int expectedElse = NO_POSITION;
    private int aliases;

    EngineHashLookup(
            BuddyArena arena,
            HeldRuns heldRuns,
            EngineHashIndex.Key key,
            EngineHashIndex.Batch batch) {
        this.heldRuns = heldRuns;
        this.index = new EngineHashIndex(arena, key, batch, this);
        this.records = new EngineHashRecords(arena);
    }

    @Override
    public long name(int entry) {
        return entry < 0 ? records.engineHash(entry & ~RECORD) : heldRuns.name(entry);
    }

    /** In three steps, so that the loads of each step overlap. */
    @Override
    public void names(int[] entries, int count, long[] names) {
        for (int i = 0; i < count; i++) {
            names[i] = entries[i] < 0 ? 0 : heldRuns.headerOffset(entries[i]);
        }
        for (int i = 0; i < count; i++) {
            names[i] = entries[i] < 0 ? 0 : heldRuns.nameOffsetOf(names[i], entries[i]);
        }
        for (int i = 0; i < count; i++) {
            names[i] = entries[i] < 0 ? name(entries[i]) : heldRuns.nameAt(names[i]);
        }
    }

    /** Names what there is beside the memory. */
    void keep(KeptWords words) {
        aliases = words.keep(aliases);
        index.keep(words);
        records.keep(words);
    }

    /** Engine hashes beside the first of a block. */
    int aliases() {
        return aliases;
    }

    /** Whether an engine hash has more copies than one, or its block an alias. */
    boolean hasRecords() {
        return records.used() > 0;
    }

    /** Position of what an engine hash stands for, or {@link HeldRunDescriptor#NO_POSITION}. */
    int position(long name) {
        return positionOf(index.find(name));
    }

    private int positionOf(int entry) {
        return entry >= NO_POSITION ? entry : records.position(entry & ~RECORD);
    }

    /** Copies of an engine hash that the slot holds. */
    int copies(long name) {
        final int record = record(name);
        return record == EngineHashRecords.NO_RECORD ? 1 : records.copies(record);
    }

    private int record(long name) {
        return hasRecords() ? recordOf(index.find(name)) : EngineHashRecords.NO_RECORD;
    }

    private static int recordOf(int entry) {
        return entry >= NO_POSITION ? EngineHashRecords.NO_RECORD : entry & ~RECORD;
    }

    /** Position of an engine hash, looked for first where {@link #expect} said. */
    int findExpected(long name) {
        if (isAt(expected, name)) {
            return expected;
        }
        return isAt(expectedElse, name) ? expectedElse : position(name);
    }

    private boolean isAt(int position, long name) {
        return position != NO_POSITION
                && heldRuns.isHeld(position)
                && heldRuns.name(position) == name;
    }

    /** Keeps where the next engine hash to be removed probably is. */
    void expect(int position) {
        expect(position, NO_POSITION);
    }

    /** Keeps where the next engine hash to be removed probably is: at one of two positions. */
    void expect(int position, int otherwise) {
        expected = position;
        expectedElse = otherwise;
    }

    /**
     * Adds the engine hashes of blocks, which stand beside the run already. All or nothing.
     *
     * @param position position of the first block; the others follow
     */
    EngineHashIndex.Insertion add(long[] names, int from, int count, int position) {
        for (int done = 0; done < count; done += EngineHashIndex.Batch.LENGTH) {
            final int next = Math.min(count - done, EngineHashIndex.Batch.LENGTH);
            final EngineHashIndex.Insertion added =
                    index.insert(names, from + done, next, position + done);
            if (added != EngineHashIndex.Insertion.DONE) {
                remove(names, from, done, position, 1);
                return added;
            }
        }
        return EngineHashIndex.Insertion.DONE;
    }

    /**
     * Takes engine hashes without records away.
     *
     * @param position position of the first block
     * @param step 1 when the others follow, -1 when they are before it
     */
    void remove(long[] names, int from, int count, int position, int step) {
        for (int done = 0; done < count; done += EngineHashIndex.Batch.LENGTH) {
            final int next = Math.min(count - done, EngineHashIndex.Batch.LENGTH);
            index.remove(names, from + done, next, position + done * step, step);
        }
    }

    /**
     * Adds an engine hash that is not known as an alias of a block.
     *
     * @return false when there is no memory; nothing has changed then
     */
    boolean addAlias(long name, int position) {
        final int first = addRecord(heldRuns.name(position), position);
        if (first == EngineHashRecords.NO_RECORD) {
            return false;
        }
        final int alias = records.add(name, position);
        if (alias != EngineHashRecords.NO_RECORD) {
            if (index.insert(name, alias | RECORD) == EngineHashIndex.Insertion.DONE) {
                records.chain(alias, first);
                aliases++;
                return true;
            }
            records.remove(alias);
        }
        dropRecord(first);
        return false;
    }

    /**
     * Sets the copies of a known engine hash, 1 or more.
     *
     * @return false when there is no memory to count them; nothing has changed then
     */
    boolean copies(long name, int copies) {
        final int entry = index.find(name);
        final int record = recordOf(entry);
        if (record != EngineHashRecords.NO_RECORD) {
            records.copies(record, copies);
            dropRecord(record);
            return true;
        }
        if (copies == 1) {
            return true;
        }
        final int added = addRecord(name, entry);
        if (added == EngineHashRecords.NO_RECORD) {
            return false;
        }
        records.copies(added, copies);
        return true;
    }

    /** The record of the first engine hash of a block, made when there is none. */
    private int addRecord(long name, int position) {
        final int entry = index.find(name);
        if (entry < 0) {
            return recordOf(entry);
        }
        final int added = records.add(name, position);
        if (added != EngineHashRecords.NO_RECORD) {
            index.replace(name, entry, added | RECORD);
        }
        return added;
    }

    /** Drops the record of the first engine hash of a block when it says nothing. */
    private void dropRecord(int record) {
        if (records.copies(record) == 1
                && records.previous(record) == EngineHashRecords.NO_RECORD
                && records.next(record) == EngineHashRecords.NO_RECORD) {
            index.replace(records.engineHash(record), record | RECORD, records.position(record));
            records.remove(record);
        }
    }

    /**
     * Takes a known engine hash away with all its copies. The block of an engine hash without
     * another one is to be let go by the caller.
     *
     * @return whether the block has another engine hash, which stands beside the run now
     */
    boolean remove(long name) {
        final int entry = index.find(name);
        final int record = recordOf(entry);
        index.remove(name, entry);
        if (record == EngineHashRecords.NO_RECORD) {
            return false;
        }
        final int previous = records.previous(record);
        final int next = records.next(record);
        final int position = records.position(record);
        records.unchain(record);
        records.remove(record);
        if (previous == EngineHashRecords.NO_RECORD && next == EngineHashRecords.NO_RECORD) {
            return false;
        }
        aliases--;
        if (previous == EngineHashRecords.NO_RECORD) {
            heldRuns.name(position, records.engineHash(next));
            dropRecord(next);
        } else {
            dropRecord(previous);
        }
        return true;
    }

    /** Shows each engine hash of a held block with its copies. */
    void forEachOf(int position, NameVisitor visitor) {
        final long first = heldRuns.name(position);
        int record = record(first);
        if (record == EngineHashRecords.NO_RECORD) {
            visitor.name(first, 1);
        }
        for (; record != EngineHashRecords.NO_RECORD; record = records.next(record)) {
            visitor.name(records.engineHash(record), records.copies(record));
        }
    }

    /** Whether a record is one of an engine hash, and not a free one. */
    boolean isUsed(int record) {
        return index.find(records.engineHash(record)) == (record | RECORD);
    }

    /** Is shown engine hashes. */
    interface NameVisitor {
        void name(long name, int copies);
    }

    /** Forgets all engine hashes; takes time for each segment of memory. */
    void clear() {
        index.clear();
        records.clear();
        aliases = 0;
        expect(NO_POSITION);
    }

    /** The table of engine hashes; for tests. */
    EngineHashIndex index() {
        return index;
    }

    /** What is beyond one copy and one engine hash. */
    EngineHashRecords records() {
        return records;
    }
}
