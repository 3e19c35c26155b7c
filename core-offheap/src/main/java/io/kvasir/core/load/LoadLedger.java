package io.kvasir.core.load;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;

/**
 * The load that the table of active requests itself has booked, exact for every worker slot, and
 * how the {@link LoadBoard} is kept to it. Writer thread only, but for the counter.
 *
 * <p>At any moment the board has, for each slot, what is booked here, plus the provisional loads
 * that are under way (added by a caller, neither booked nor taken back yet), plus what is wrong. A
 * caller counts in the board before it adds ({@link LoadBoard#addProvisional}) and after it takes
 * back; so when the count says before and after a reading of the three values that none is under
 * way, and is the same, the rest is what is wrong, and is taken off by an atomic addition, which a
 * caller that comes at that moment adds to. Loads under way are not read, and need not be.
 *
 * <p>A caller that dies between its addition and its booking would stop that for ever. So when the
 * number under way was seen again and again and never 0 for {@link #LOST_AFTER_NS}, the smallest
 * one seen is taken as lost. This alone rests on time. Taken wrongly, because callers followed each
 * other without a gap for so long, a later count falls below 0, which says so: the number is put
 * right, and what the slot showed too little meanwhile comes back with the next comparison.
 */
final class LoadLedger implements AutoCloseable {
    /** After how long without any movement a provisional load is taken as lost. */
    static final long LOST_AFTER_NS = 10_000_000_000L;

    private final LoadBoard board;
    private final OffHeap memory;
    private final WriterCounter corrections = new WriterCounter();

    LoadLedger(LoadBoard board, int slots) {
        this.board = board;
        this.memory = OffHeap.allocate(BookedLoadDescriptor.cellOffset(slots));
    }

    /** A booking took the place of a provisional load. */
    void book(int slot, long prefillTokens, int blocks, int provisionalBlocks) {
        add(slot, BookedLoadDescriptor.PREFILL_TOKENS_OFFSET, prefillTokens);
        add(slot, BookedLoadDescriptor.ACTIVE_BLOCKS_OFFSET, blocks);
        add(slot, BookedLoadDescriptor.ACTIVE_REQUESTS_OFFSET, 1);
        add(slot, BookedLoadDescriptor.SETTLED_OFFSET, 1);
        if (blocks != provisionalBlocks) {
            board.addActiveBlocks(slot, blocks - provisionalBlocks);
        }
    }

    /** A booking was refused, and its provisional load goes. */
    void refuse(int slot, long prefillTokens, int provisionalBlocks) {
        add(slot, BookedLoadDescriptor.SETTLED_OFFSET, 1);
        board.add(slot, -prefillTokens, -provisionalBlocks, -1);
    }

    void addPrefillTokens(int slot, long delta) {
        if (delta != 0) {
            add(slot, BookedLoadDescriptor.PREFILL_TOKENS_OFFSET, delta);
            board.addPrefillTokens(slot, delta);
        }
    }

    void addActiveBlocks(int slot, long delta) {
        add(slot, BookedLoadDescriptor.ACTIVE_BLOCKS_OFFSET, delta);
        board.addActiveBlocks(slot, delta);
    }

    void endRequest(int slot, long prefillTokens, long blocks) {
        add(slot, BookedLoadDescriptor.PREFILL_TOKENS_OFFSET, -prefillTokens);
        add(slot, BookedLoadDescriptor.ACTIVE_BLOCKS_OFFSET, -blocks);
        add(slot, BookedLoadDescriptor.ACTIVE_REQUESTS_OFFSET, -1);
        board.add(slot, -prefillTokens, -blocks, -1);
    }

    /**
     * Compares the board with what is booked and corrects it.
     *
     * @return false if it could not be compared: a provisional load is under way, or callers do not
     *     count theirs
     */
    boolean reconcile(int slot, long nowNs) {
        final long word = board.provisions(slot);
        if (word == 0) {
            return false;
        }
        final int underWay =
                LoadBoardDescriptor.begun(word)
                        - LoadBoardDescriptor.takenBack(word)
                        - (int) get(slot, BookedLoadDescriptor.SETTLED_OFFSET)
                        - (int) get(slot, BookedLoadDescriptor.LOST_OFFSET);
        watch(slot, underWay, nowNs);
        if (underWay != 0) {
            return false;
        }
        final long tokens =
                get(slot, BookedLoadDescriptor.PREFILL_TOKENS_OFFSET) - board.prefillTokens(slot);
        final long blocks =
                get(slot, BookedLoadDescriptor.ACTIVE_BLOCKS_OFFSET) - board.activeBlocks(slot);
        final long requests =
                get(slot, BookedLoadDescriptor.ACTIVE_REQUESTS_OFFSET) - board.activeRequests(slot);
        if (board.provisions(slot) != word) {
            return false; // a caller came: the values may have some of its load
        }
        if ((tokens | blocks | requests) != 0) {
            board.add(slot, tokens, blocks, requests);
            corrections.add(1);
        }
        return true;
    }

    /** Keeps the number of lost loads right. */
    private void watch(int slot, int underWay, long nowNs) {
        final long fewest = get(slot, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET);
        if (underWay <= 0) {
            add(slot, BookedLoadDescriptor.LOST_OFFSET, underWay);
            put(slot, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET, 0);
        } else if (fewest == 0) {
            put(slot, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET, underWay);
            put(slot, BookedLoadDescriptor.WATCHED_SINCE_OFFSET, nowNs);
        } else {
            put(slot, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET, Math.min(fewest, underWay));
            if (nowNs - get(slot, BookedLoadDescriptor.WATCHED_SINCE_OFFSET) >= LOST_AFTER_NS) {
                add(slot, BookedLoadDescriptor.LOST_OFFSET, Math.min(fewest, underWay));
                put(slot, BookedLoadDescriptor.FEWEST_UNDER_WAY_OFFSET, 0);
            }
        }
    }

    /** How often a slot's load was wrong and was corrected; any thread. */
    long corrections() {
        return corrections.get();
    }

    long bytes() {
        return memory.length();
    }

    @Override
    public void close() {
        memory.close();
    }

    private void add(int slot, int fieldOffset, long delta) {
        put(slot, fieldOffset, get(slot, fieldOffset) + delta);
    }

    private long get(int slot, int fieldOffset) {
        return memory.getLong(BookedLoadDescriptor.cellOffset(slot) + fieldOffset);
    }

    private void put(int slot, int fieldOffset, long value) {
        memory.putLong(BookedLoadDescriptor.cellOffset(slot) + fieldOffset, value);
    }
}
