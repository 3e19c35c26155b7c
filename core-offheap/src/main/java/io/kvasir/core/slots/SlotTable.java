package io.kvasir.core.slots;

import static io.kvasir.core.memory.EntryChains.NONE;

import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.memory.WriterCounter;

import java.util.Objects;

/**
 * Running requests and the blocks that they use, per worker slot: what the router itself has
 * booked. Corrects the {@link LoadBoard} from what callers guessed to what is.
 *
 * <p>A prompt block is counted once per worker slot however many of its requests share it; output
 * blocks and prompt blocks behind {@link SlotTableConfig#maxBlocksPerRequest} are a request's own.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. All other methods are for any
 * thread, wait for nobody and allocate nothing. Memory is taken once, off-heap; a booking that does
 * not fit is refused as a whole.
 */
public final class SlotTable implements AutoCloseable {
    /** Answer of {@link #add}: a request of that id is running. */
    public static final int DUPLICATE = -1;

    /** Answer of {@link #add}: no room; raise {@code maxRequests} or {@code maxActiveBlocks}. */
    public static final int FULL = -2;

    private final SlotTableConfig config;
    private final LoadBoard board;
    private final RequestTable requests;
    private final ActiveBlocks active;
    private final WriterCounter duplicates = new WriterCounter();
    private final WriterCounter refusals = new WriterCounter();

    /**
     * Allocates an empty table.
     *
     * @param board load to correct; not closed by this table
     * @throws IllegalArgumentException if the board has fewer slots than the table
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public SlotTable(SlotTableConfig config, LoadBoard board) {
        if (board.slots() < config.maxWorkerSlots()) {
            throw new IllegalArgumentException(
                    "load board is too small: slots="
                            + board.slots()
                            + ", maxWorkerSlots="
                            + config.maxWorkerSlots());
        }
        this.config = config;
        this.board = board;
        this.requests = new RequestTable(config.maxWorkerSlots(), config.maxRequests());
        this.active = new ActiveBlocks(config.maxWorkerSlots(), config.maxActiveBlocks());
    }

    /**
     * Books a request. Writer thread. All or nothing.
     *
     * <p>The caller has already added {@code prefillTokens}, {@code provisionalBlocks} and one
     * request to the slot's cell. A booking corrects the blocks by the difference; a refusal takes
     * all three back.
     *
     * @param requestId the caller's number of the request, unique while it runs
     * @param slot worker slot
     * @param localHashes local hash of prompt block {@code i} at index {@code i}; [count], not kept
     * @param count full blocks of the prompt
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that the caller has added to the cell
     * @return blocks that the slot uses in addition, 0 or more; or {@link #DUPLICATE}, {@link
     *     #FULL}
     * @throws IndexOutOfBoundsException if the slot or {@code count} is out of range
     */
    public int add(
            long requestId,
            int slot,
            long[] localHashes,
            int count,
            long prefillTokens,
            int provisionalBlocks) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        Objects.checkFromIndexSize(0, count, localHashes.length);
        if (requests.find(requestId) != NONE) {
            duplicates.add(1);
            takeBack(slot, prefillTokens, provisionalBlocks);
            return DUPLICATE;
        }
        final int followed = Math.min(count, config.maxBlocksPerRequest());
        final int shared = active.follow(slot, localHashes, followed);
        if (requests.free() == 0 || active.free() < followed - shared) {
            refusals.add(1);
            takeBack(slot, prefillTokens, provisionalBlocks);
            return FULL;
        }
        final int used = active.use(slot, localHashes, followed);
        requests.insert(requestId, slot, prefillTokens, active.tail(), count - used);
        final int added = count - shared;
        board.addActiveBlocks(slot, added - provisionalBlocks);
        return added;
    }

    private void takeBack(int slot, long prefillTokens, int provisionalBlocks) {
        board.addPrefillTokens(slot, -prefillTokens);
        board.addActiveBlocks(slot, -provisionalBlocks);
        board.addActiveRequests(slot, -1);
    }

    /**
     * Notes that a request generates: its prefill tokens leave the load. Writer thread.
     *
     * @return whether it was being prefilled; false too when it is not running
     */
    public boolean prefillComplete(long requestId) {
        final int request = requests.find(requestId);
        if (request == NONE) {
            return false;
        }
        final long tokens = requests.prefillTokens(request);
        final boolean completed = requests.startDecode(request);
        if (completed) {
            board.addPrefillTokens(requests.slot(request), -tokens);
        }
        return completed;
    }

    /**
     * Notes that a request's generated tokens fill one more block. Writer thread.
     *
     * @return whether the request is running
     */
    public boolean outputBlock(long requestId) {
        final int request = requests.find(requestId);
        if (request == NONE) {
            return false;
        }
        requests.addOwnBlock(request);
        board.addActiveBlocks(requests.slot(request), 1);
        return true;
    }

    /**
     * Ends a request: all its load goes. Writer thread.
     *
     * @return whether it was running
     */
    public boolean free(long requestId) {
        final int request = requests.find(requestId);
        if (request == NONE) {
            return false;
        }
        end(request);
        return true;
    }

    /**
     * Ends all requests of a slot. Writer thread.
     *
     * @return how many there were
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int workerGone(int slot) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        int ended = 0;
        for (int r = requests.firstOf(slot); r != NONE; r = requests.firstOf(slot)) {
            end(r);
            ended++;
        }
        return ended;
    }

    private void end(int request) {
        final int slot = requests.slot(request);
        final long blocks =
                active.leave(slot, requests.tail(request)) + requests.ownBlocks(request);
        board.addPrefillTokens(slot, -requests.prefillTokens(request));
        board.addActiveBlocks(slot, -blocks);
        board.addActiveRequests(slot, -1);
        requests.remove(request);
    }

    /**
     * Finds how many leading blocks of a prompt running requests of each slot use. Any thread; as
     * exact as {@link io.kvasir.core.index.PrefixIndex#match}.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [count], not copied
     * @param count blocks to match
     * @param out cleared, then filled with the depth in blocks of each slot
     * @return deepest match in blocks, 0 when nothing matched
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond the array
     */
    public int matchActive(long[] localHashes, int count, OverlapScores out) {
        return active.match(localHashes, count, out);
    }

    /**
     * Computes for every slot how many blocks it would have in use if it got a prompt: those in use
     * plus the prompt's, less the leading ones that are in use there already. Any thread; load and
     * match are read one after the other, so a booking between them may count once too often.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [count], not copied
     * @param count blocks of the prompt
     * @param extraBlocks blocks added for every slot: a partial tail block, expected output
     * @param scratch overwritten with the active match
     * @param out receives one number per slot of this table
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond the array
     * @throws IllegalArgumentException if {@code scratch} or {@code out} has too few slots
     */
    public void potentialLoads(
            long[] localHashes,
            int count,
            int extraBlocks,
            OverlapScores scratch,
            PotentialLoads out) {
        matchActive(localHashes, count, scratch);
        out.begin(config.maxWorkerSlots());
        for (int slot = 0; slot < config.maxWorkerSlots(); slot++) {
            out.set(slot, board.activeBlocks(slot) + count - scratch.depth(slot) + extraBlocks);
        }
    }

    /** Running requests; any thread. */
    public int activeRequests() {
        return requests.used();
    }

    /** Prompt blocks followed one by one, counted once per worker slot; any thread. */
    public int activeBlocks() {
        return active.used();
    }

    /** Bookings refused because their id was running; any thread. */
    public long duplicates() {
        return duplicates.get();
    }

    /** Bookings refused because they did not fit; any thread. */
    public long refusals() {
        return refusals.get();
    }

    /** Off-heap bytes without the board; constant from construction to close. */
    public long bytes() {
        return requests.bytes() + active.bytes();
    }

    /** Sizes that the table was made with. */
    public SlotTableConfig config() {
        return config;
    }

    /** Gives the memory back; a second call does nothing. No other call may follow or run. */
    @Override
    public void close() {
        requests.close();
        active.close();
    }
}
