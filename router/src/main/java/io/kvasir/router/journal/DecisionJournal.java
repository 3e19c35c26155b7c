package io.kvasir.router.journal;

import static io.kvasir.router.journal.JournalDescriptor.HEADER_LENGTH;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.OffHeap;

import org.agrona.CloseHelper;

import java.io.Closeable;
import java.lang.invoke.VarHandle;

/**
 * The last decisions of a router: a ring of records of one size, oldest overwritten. Any thread
 * appends and reads, without a lock or an allocation; any process reads the ring of another one
 * that is in a file ({@link JournalFile}).
 *
 * <p>A record is taken by a compare-and-set of its state, which says the decision that is written,
 * and given free by a release of it; a reader that finds another state after it has copied a record
 * than before reads nothing. So a decision has no place where the one of a whole round before is
 * still being written: it is left out and counted, and no thread waits. Only an addition to a
 * decision waits: for the end of another one to the same decision, which is a few stores.
 *
 * <p>{@link #close} may be called with callers inside; what is read or appended later is nothing.
 */
public final class DecisionJournal implements AutoCloseable {
    /** Answer of {@link #append} where the decision is not kept. */
    public static final long NONE = -1;

    /** Most records of a journal. */
    public static final int MAX_RECORDS = 1 << 24;

    private final MemoryGate gate = new MemoryGate("the decision journal");
    private final OffHeap memory;
    private final int records;
    private final int candidates;
    private final int blockSize;

    /**
     * Takes memory that has a header.
     *
     * @param lockOrNull given back after the memory
     */
    DecisionJournal(OffHeap memory, Closeable lockOrNull) {
        gate.own(() -> CloseHelper.close(lockOrNull));
        this.memory = gate.own(memory);
        records = (int) memory.getLong(JournalDescriptor.RECORDS_OFFSET);
        candidates = (int) memory.getLong(JournalDescriptor.CANDIDATES_OFFSET);
        blockSize = (int) memory.getLong(JournalDescriptor.BLOCK_SIZE_OFFSET);
    }

    /**
     * Makes a journal that ends with the process.
     *
     * @param records decisions to keep, 1..{@value #MAX_RECORDS}; each takes 320 bytes, and 128 per
     *     candidate
     * @param candidates to list of each, 1..{@value JournalRecord#MAX_CANDIDATES}
     * @param blockSize tokens per block
     * @throws IllegalArgumentException if a number is none of these
     */
    public static DecisionJournal inMemory(int records, int candidates, int blockSize) {
        check(records, candidates);
        final OffHeap memory = OffHeap.allocate(JournalDescriptor.length(records, candidates));
        writeHeader(memory, records, candidates, blockSize, 0);
        return new DecisionJournal(memory, null);
    }

    static void check(int records, int candidates) {
        if (records < 1 || records > MAX_RECORDS) {
            throw new IllegalArgumentException(
                    "records=" + records + " must be 1 to " + MAX_RECORDS);
        }
        if (candidates < 1 || candidates > JournalRecord.MAX_CANDIDATES) {
            throw new IllegalArgumentException(
                    "candidates=" + candidates + " must be 1 to " + JournalRecord.MAX_CANDIDATES);
        }
    }

    static void writeHeader(
            OffHeap memory, int records, int candidates, int blockSize, long nowMs) {
        memory.putLong(JournalDescriptor.VERSION_OFFSET, JournalDescriptor.VERSION);
        memory.putLong(JournalDescriptor.RECORDS_OFFSET, records);
        memory.putLong(JournalDescriptor.CANDIDATES_OFFSET, candidates);
        memory.putLong(JournalDescriptor.BLOCK_SIZE_OFFSET, blockSize);
        memory.putLong(JournalDescriptor.PROCESS_OFFSET, ProcessHandle.current().pid());
        memory.putLong(JournalDescriptor.STARTED_OFFSET, nowMs);
        // the magic (release) after the header: JournalFile.open acquires it before the lengths
        memory.putLongRelease(JournalDescriptor.MAGIC_OFFSET, JournalDescriptor.MAGIC);
    }

    /** Decisions that are kept at most. */
    public int records() {
        return records;
    }

    /** Candidates that are listed of each at most. */
    public int candidates() {
        return candidates;
    }

    /** Tokens per block. */
    public int blockSize() {
        return blockSize;
    }

    /** A record with room for what is kept of a decision. */
    public JournalRecord newRecord() {
        return new JournalRecord(candidates);
    }

    /**
     * Number of the next decision: all before, down to {@link #records} of them, may be there.
     *
     * @return 0 before the first one and once closed
     */
    public long end() {
        final int lane = gate.enter();
        if (lane == MemoryGate.CLOSED) {
            return 0;
        }
        try {
            return memory.getLongAcquire(JournalDescriptor.NEXT_OFFSET);
        } finally {
            gate.exit(lane);
        }
    }

    /** Decisions that found no place, because one of a whole round before was still written. */
    public long dropped() {
        final int lane = gate.enter();
        if (lane == MemoryGate.CLOSED) {
            return 0;
        }
        try {
            return memory.getLongAcquire(JournalDescriptor.DROPPED_OFFSET);
        } finally {
            gate.exit(lane);
        }
    }

    /**
     * Keeps a decision.
     *
     * @param record of {@link #newRecord}; gets the decision's number
     * @return the number, or {@link #NONE} where it is not kept
     */
    public long append(JournalRecord record) {
        check(record);
        final int lane = gate.enter();
        if (lane == MemoryGate.CLOSED) {
            return NONE;
        }
        try {
            return appendInside(record);
        } finally {
            gate.exit(lane);
        }
    }

    private long appendInside(JournalRecord record) {
        final long number = memory.getAndAddLong(JournalDescriptor.NEXT_OFFSET, 1);
        final long at = offset(number);
        final long state = memory.getLongAcquire(at);
        if (JournalDescriptor.isWriting(state)
                || state > JournalDescriptor.written(number)
                || !memory.compareAndSetLong(at, state, JournalDescriptor.writing(number))) {
            memory.getAndAddLong(JournalDescriptor.DROPPED_OFFSET, 1);
            return NONE;
        }
        // the state before the words: a reader that copies any of these finds that state after them
        memory.storeStoreFence();
        final long[] words = record.words();
        words[JournalDescriptor.NUMBER] = number;
        final int count = JournalDescriptor.recordWords(record.listed());
        memory.putLongs(at + Long.BYTES, words, 1, count - 1);
        // the words before the state (release): readInside acquires it before it copies them
        memory.putLongRelease(at, JournalDescriptor.written(number));
        return number;
    }

    private long offset(long number) {
        return HEADER_LENGTH
                + number % records * JournalDescriptor.recordWords(candidates) * Long.BYTES;
    }

    /**
     * Adds when the first token of a decision's request came. Does nothing where it is not kept any
     * more.
     *
     * @param number as of {@link #append}
     * @param ns nanoseconds after the booking
     */
    public void firstToken(long number, long ns) {
        put(number, JournalDescriptor.FIRST_TOKEN_NS, ns);
    }

    /**
     * Adds what the engine says that it took from its cache. Does nothing where the decision is not
     * kept any more.
     *
     * @param number as of {@link #append}
     * @param tokens of the prompt
     */
    public void engineCachedTokens(long number, int tokens) {
        put(number, JournalDescriptor.ENGINE_TOKENS, tokens);
    }

    @SuppressWarnings("ThreadPriorityCheck") // a yield gives the core to the other addition
    private void put(long number, int word, long value) {
        final int lane = number == NONE ? MemoryGate.CLOSED : gate.enter();
        if (lane == MemoryGate.CLOSED) {
            return;
        }
        try {
            final long at = offset(number);
            final long written = JournalDescriptor.written(number);
            final long writing = JournalDescriptor.writing(number);
            while (!memory.compareAndSetLong(at, written, writing)) {
                final long state = memory.getLongAcquire(at);
                if (state != writing && state != written) {
                    return; // of another decision
                }
                Thread.yield(); // the other addition is three stores
            }
            memory.storeStoreFence(); // as for a whole record
            memory.putLong(at + (long) word * Long.BYTES, value);
            memory.putLongRelease(at, written);
        } finally {
            gate.exit(lane);
        }
    }

    /**
     * Reads a decision.
     *
     * @param number of the decision
     * @param out filled; of {@link #newRecord}
     * @return false, and {@code out} is anything, where it is not kept, or is being written now
     */
    public boolean read(long number, JournalRecord out) {
        check(out);
        final int lane = number < 0 ? MemoryGate.CLOSED : gate.enter();
        if (lane == MemoryGate.CLOSED) {
            return false;
        }
        try {
            return readInside(number, out.words());
        } finally {
            gate.exit(lane);
        }
    }

    private void check(JournalRecord record) {
        if (record.capacity() != candidates) {
            throw new IllegalArgumentException(
                    "the record lists "
                            + record.capacity()
                            + " candidates, the journal "
                            + candidates);
        }
    }

    private boolean readInside(long number, long[] words) {
        final long at = offset(number);
        if (memory.getLongAcquire(at) != JournalDescriptor.written(number)) {
            return false;
        }
        memory.getLongs(at, words, 0, words.length);
        VarHandle.acquireFence(); // the words are read before the state is read again
        return memory.getLongOpaque(at) == JournalDescriptor.written(number)
                && words[JournalDescriptor.NUMBER] == number;
    }

    /**
     * Finds the newest decision for a request's id; reads all that are kept, at the worst.
     *
     * @param id as the router was given it
     * @param before number below which to look; {@link #end} or more for all
     * @param out filled; of {@link #newRecord}
     * @return its number, or {@link #NONE} and {@code out} is anything
     */
    public long find(String id, long before, JournalRecord out) {
        final long end = end();
        final long oldest = Math.max(0, end - records);
        for (long next = Math.min(before, end); next > oldest; next--) {
            if (read(next - 1, out) && out.isOf(id)) {
                return next - 1;
            }
        }
        return NONE;
    }

    /** Gives the memory back once no caller is inside any more. */
    @Override
    public void close() {
        gate.close();
    }
}
