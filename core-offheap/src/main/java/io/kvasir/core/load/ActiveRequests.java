package io.kvasir.core.load;

import static io.kvasir.core.memory.SlotLists.NO_ENTRY;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.memory.WriterLane;
import io.kvasir.core.radix.OverlapScores;

import java.util.Objects;
import java.util.function.LongConsumer;

/**
 * Running requests and the blocks that they use, per worker slot: what the router itself has
 * booked. Corrects the {@link LoadBoard} from what callers guessed to what is.
 *
 * <p>A prompt block is counted once per worker slot however many of its requests share it; output
 * blocks and prompt blocks after {@link ActiveRequestsConfig#maxBlocksPerRequest} are a request's
 * own. A booking costs by the runs of blocks that its prompt shares with others and by its new
 * blocks. A prompt that does not fit beside the running ones is booked without a path: all its
 * blocks count as the request's own until it ends, so that load is never lost.
 *
 * <p>A request is named by the caller's number {@code [generation:32 | index:32]}. The index is
 * that of the request's entry, so one request at a time runs under an index, and none is searched
 * for; the generation tells it from the others that have had the entry, so a late or repeated step
 * of one of them does nothing. A request may have a deadline, at which {@link #expire} ends it.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. All other methods are for any
 * thread, never wait and allocate nothing. Memory is taken once, off-heap; a booking is refused
 * only while another request runs under its index. Time comes from the caller, from one clock.
 *
 * <p>After {@link #close}, {@link #matchActive} and the writer's methods throw {@link
 * io.kvasir.core.memory.ClosedException}; counters keep their last values.
 */
public final class ActiveRequests implements AutoCloseable {
    /** Answer of {@link #book}: another request, or this one, runs under the index. */
    public static final int TAKEN = -1;

    /** Deadline of a request that has none. */
    public static final long NO_DEADLINE = 0;

    /** Number of no request. */
    public static final long NO_REQUEST = 0;

    /** Most blocks that a request has by its output: with its prompt's they fit into an int. */
    private static final int MAX_OWN_BLOCKS = 1 << 30;

    private final ActiveRequestsConfig config;
    private final LoadBoard board;
    private final MemoryGate gate;
    private final WriterLane writer;
    private final LoadLedger booked;
    private final RequestTable requests;
    private final RefCountedPrefixes active;
    private final WriterCounter refusals = new WriterCounter();
    private final WriterCounter pathless = new WriterCounter();
    private final WriterCounter expired = new WriterCounter();
    private int nextReconciled;

    /**
     * Allocates an empty table with a gate of its own.
     *
     * @param board load to correct; not closed by this table
     * @throws IllegalArgumentException if the board has fewer slots than the table
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public ActiveRequests(ActiveRequestsConfig config, LoadBoard board) {
        this(config, board, new MemoryGate("the table of active requests"));
    }

    /**
     * Allocates an empty table.
     *
     * @param board load to correct; not closed by this table
     * @param gate keeps the memory while callers are inside; closed if the memory is refused
     * @throws IllegalArgumentException if the board has fewer slots than the table
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public ActiveRequests(ActiveRequestsConfig config, LoadBoard board, MemoryGate gate) {
        if (board.slots() < config.maxWorkerSlots()) {
            throw new IllegalArgumentException(
                    "load board is too small: slots="
                            + board.slots()
                            + ", maxWorkerSlots="
                            + config.maxWorkerSlots());
        }
        this.config = config;
        this.board = board;
        this.gate = gate;
        this.writer = new WriterLane(gate);
        try {
            this.requests =
                    gate.own(new RequestTable(config.maxWorkerSlots(), config.maxRequests()));
            this.active =
                    gate.own(
                            new RefCountedPrefixes(
                                    config.maxWorkerSlots(),
                                    config.maxActiveBlocks(),
                                    config.budgetBytes()));
            this.booked = gate.own(new LoadLedger(board, config.maxWorkerSlots()));
        } catch (Throwable t) {
            gate.close();
            throw t;
        }
    }

    /**
     * Books a request. Writer thread. All or nothing; but a prompt whose blocks do not fit beside
     * the running ones is booked without a path, and counts all of them as its own.
     *
     * <p>The caller has already added {@code prefillTokens}, {@code provisionalBlocks} and one
     * request to the slot's cell, with {@link LoadBoard#addProvisional} where {@link #reconcile} is
     * used. A booking corrects the blocks by the difference; a refusal takes all three back.
     *
     * @param number the request's number, not {@link #NO_REQUEST}
     * @param slot worker slot
     * @param localHashes local hash of prompt block {@code i} at index {@code i}; [count], not kept
     * @param count leading blocks of the prompt with a known hash
     * @param unknownBlocks blocks of the prompt after them, which count as the request's own
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that the caller has added to the cell
     * @param deadlineNs when {@link #expire} ends the request; {@link #NO_DEADLINE} = never
     * @return blocks that the slot uses in addition, 0 or more; or {@link #TAKEN}
     * @throws IndexOutOfBoundsException if the slot, {@code count} or the index in the number is
     *     out of range
     * @throws IllegalArgumentException if the number is {@link #NO_REQUEST}
     */
    public int book(
            long number,
            int slot,
            long[] localHashes,
            int count,
            int unknownBlocks,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs) {
        return book(
                number,
                slot,
                localHashes,
                count,
                unknownBlocks,
                0,
                prefillTokens,
                provisionalBlocks,
                deadlineNs);
    }

    /**
     * Books a request; as above.
     *
     * @param unsharedBlocks further blocks that are the request's own, as its engine shares none;
     *     not counted in {@link #pathlessBookings}
     */
    public int book(
            long number,
            int slot,
            long[] localHashes,
            int count,
            int unknownBlocks,
            int unsharedBlocks,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs) {
        final int lane = writer.enter();
        try {
            return bookInside(
                    number,
                    slot,
                    localHashes,
                    count,
                    unknownBlocks,
                    unsharedBlocks,
                    prefillTokens,
                    provisionalBlocks,
                    deadlineNs);
        } finally {
            writer.exit(lane);
        }
    }

    private int bookInside(
            long number,
            int slot,
            long[] localHashes,
            int count,
            int unknownBlocks,
            int unsharedBlocks,
            long prefillTokens,
            int provisionalBlocks,
            long deadlineNs) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        Objects.checkFromIndexSize(0, count, localHashes.length);
        Objects.checkIndex((int) number, config.maxRequests());
        if (number == NO_REQUEST) {
            throw new IllegalArgumentException("number=0 names no request");
        }
        if (!requests.isFree(number)) {
            refusals.add(1);
            booked.refuse(slot, prefillTokens, provisionalBlocks);
            return TAKEN;
        }
        int followed = Math.min(count, config.maxBlocksPerRequest());
        int used = active.enter(slot, localHashes, followed);
        if (used == RefCountedPrefixes.FULL || unknownBlocks > 0) {
            pathless.add(1);
        }
        if (used == RefCountedPrefixes.FULL) {
            followed = 0;
            used = active.enter(slot, localHashes, followed);
        }
        final int ownBlocks = count - followed + unknownBlocks + unsharedBlocks;
        final int request = requests.insert(number, slot, prefillTokens, deadlineNs);
        requests.path(request, active.endArray(), active.endOffset(), ownBlocks);
        final int added = used + ownBlocks;
        booked.book(slot, prefillTokens, added, provisionalBlocks);
        return added;
    }

    /**
     * Adds what a caller expects of a request that it is about to hand to the writer, which books
     * it or refuses it. Any thread; see {@link LoadBoard#addProvisional}.
     *
     * @param slot worker slot
     * @param prefillTokens tokens that the worker has to prefill
     * @param provisionalBlocks blocks that it will have in use in addition
     */
    public void announce(int slot, long prefillTokens, int provisionalBlocks) {
        board.addProvisional(slot, prefillTokens, provisionalBlocks);
    }

    /**
     * Takes back what {@link #announce} has added, when the writer will not see the request. Any
     * thread.
     *
     * @param slot worker slot
     * @param prefillTokens the same as there
     * @param provisionalBlocks the same as there
     */
    public void withdraw(int slot, long prefillTokens, int provisionalBlocks) {
        board.takeBackProvisional(slot, prefillTokens, provisionalBlocks);
    }

    /**
     * Takes back what a caller has added for a request that is not to be booked any more. Writer
     * thread; instead of {@link #book}.
     *
     * @param slot worker slot
     * @param prefillTokens tokens that the caller has added to the cell
     * @param provisionalBlocks blocks that the caller has added to the cell
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void refuse(int slot, long prefillTokens, int provisionalBlocks) {
        final int lane = writer.enter();
        try {
            booked.refuse(
                    Objects.checkIndex(slot, config.maxWorkerSlots()),
                    prefillTokens,
                    provisionalBlocks);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Records that a request generates: its prefill tokens leave the load. Writer thread.
     *
     * @return whether it was being prefilled; false too when it is not running
     */
    public boolean prefillComplete(long number) {
        final int lane = writer.enter();
        try {
            return startDecode(requests.find(number));
        } finally {
            writer.exit(lane);
        }
    }

    private boolean startDecode(int request) {
        if (request == NO_ENTRY) {
            return false;
        }
        final long tokens = requests.prefillTokens(request);
        final boolean completed = requests.startDecode(request);
        if (completed) {
            booked.addPrefillTokens(requests.slot(request), -tokens);
        }
        return completed;
    }

    /**
     * Records that a request's generated tokens fill more blocks. Writer thread. More than 2^30
     * blocks of its own count as so many.
     *
     * @param blocks further blocks; 0 changes nothing
     * @return whether the request is running
     */
    public boolean outputBlocks(long number, int blocks) {
        final int lane = writer.enter();
        try {
            return addOutputBlocks(requests.find(number), blocks);
        } finally {
            writer.exit(lane);
        }
    }

    private boolean addOutputBlocks(int request, int blocks) {
        if (request == NO_ENTRY) {
            return false;
        }
        final int own = requests.ownBlocks(request);
        final int added = Math.clamp((long) own + blocks, 0, MAX_OWN_BLOCKS) - own;
        if (added != 0) {
            requests.addOwnBlocks(request, added);
            booked.addActiveBlocks(requests.slot(request), added);
        }
        return true;
    }

    /**
     * Blocks that a request has alone: its own, and those at the end of its prompt that no other
     * request of its slot has. Writer thread; costs by the runs of the prompt.
     *
     * @return 0 when it is not running
     */
    public int blocksAlone(long number) {
        final int lane = writer.enter();
        try {
            final int request = requests.find(number);
            return request == NO_ENTRY
                    ? 0
                    : requests.ownBlocks(request)
                            + active.blocksAlone(
                                    requests.slot(request),
                                    requests.array(request),
                                    requests.pathEnd(request));
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Ends a request: all its load goes. Writer thread.
     *
     * @return whether it was running
     */
    public boolean free(long number) {
        final int lane = writer.enter();
        try {
            return endIfRunning(requests.find(number));
        } finally {
            writer.exit(lane);
        }
    }

    private boolean endIfRunning(int request) {
        if (request == NO_ENTRY) {
            return false;
        }
        end(request);
        return true;
    }

    /**
     * Names the running requests of a slot, the latest booked first. Writer thread; costs by their
     * number.
     *
     * @param out takes the number of each; must not change this table
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void forEachRunning(int slot, LongConsumer out) {
        final int lane = writer.enter();
        try {
            Objects.checkIndex(slot, config.maxWorkerSlots());
            for (int r = requests.firstOf(slot); r != NO_ENTRY; r = requests.after(r)) {
                out.accept(requests.number(r));
            }
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Reads what a request weighs. Writer thread; costs by the blocks of its path, if that is asked
     * for, else one entry.
     *
     * @param number the request's number
     * @param withPath whether to copy the hashes of its prompt
     * @param out overwritten; as it was when the answer is false
     * @return whether the request is running
     */
    public boolean read(long number, boolean withPath, RunningRequest out) {
        final int lane = writer.enter();
        try {
            final int request = requests.find(number);
            if (request == NO_ENTRY) {
                return false;
            }
            out.slot = requests.slot(request);
            out.prefillTokens = requests.prefillTokens(request);
            out.ownBlocks = requests.ownBlocks(request);
            out.pathBlocks = 0;
            if (withPath) {
                active.readPath(requests.array(request), requests.pathEnd(request), out);
            }
            return true;
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Ends all requests of a slot. Writer thread.
     *
     * @return how many there were
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int workerGone(int slot) {
        return workerGone(slot, number -> {});
    }

    /**
     * Ends all requests of a slot. Writer thread.
     *
     * @param ended takes the number of each request ended
     * @return how many there were
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int workerGone(int slot, LongConsumer ended) {
        final int lane = writer.enter();
        try {
            Objects.checkIndex(slot, config.maxWorkerSlots());
            int count = 0;
            for (int r = requests.firstOf(slot); r != NO_ENTRY; r = requests.firstOf(slot)) {
                final long number = requests.number(r);
                end(r);
                count++;
                ended.accept(number);
            }
            return count;
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Ends the requests whose deadline has come, each at most 1.1 ms after it. Writer thread; costs
     * by the requests ended.
     *
     * @param nowNs time by the clock of the deadlines; an earlier one than before ends nothing
     * @param ended takes the number of each request ended
     * @return how many there were
     */
    public int expire(long nowNs, LongConsumer ended) {
        final int lane = writer.enter();
        try {
            int count = 0;
            for (int r = requests.due(nowNs); r != NO_ENTRY; r = requests.due(nowNs)) {
                final long number = requests.number(r);
                end(r);
                expired.add(1);
                count++;
                ended.accept(number);
            }
            return count;
        } finally {
            writer.exit(lane);
        }
    }

    private void end(int request) {
        final int slot = requests.slot(request);
        final int blocks = active.leave(slot, requests.array(request), requests.pathEnd(request));
        booked.endRequest(
                slot, requests.prefillTokens(request), blocks + requests.ownBlocks(request));
        requests.remove(request);
    }

    /**
     * Compares the load of the next few slots, in turn, with what is booked on them, and corrects
     * what is wrong; callers go on meanwhile. Writer thread. A slot is left out while a booking is
     * on its way to this table, and as long as callers have not used {@link
     * LoadBoard#addProvisional}; all callers of a board must, or none.
     *
     * @param nowNs time; a provisional load that is neither booked nor taken back is taken as lost
     *     when a slot was never without one for ten seconds
     * @param slots slots to look at
     * @return how many could be compared
     */
    public int reconcile(long nowNs, int slots) {
        final int lane = writer.enter();
        try {
            int compared = 0;
            for (int i = 0; i < Math.min(slots, config.maxWorkerSlots()); i++) {
                compared += booked.reconcile(nextReconciled, nowNs) ? 1 : 0;
                nextReconciled =
                        nextReconciled + 1 < config.maxWorkerSlots() ? nextReconciled + 1 : 0;
            }
            return compared;
        } finally {
            writer.exit(lane);
        }
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
     * @throws io.kvasir.core.memory.ClosedException if the table is closed
     */
    public int matchActive(long[] localHashes, int count, OverlapScores out) {
        final int lane = gate.enterOrThrow();
        try {
            return matchActiveInside(localHashes, count, out);
        } finally {
            gate.exit(lane);
        }
    }

    /** The same as {@link #matchActive}, for a caller that has entered {@link #gate()}. */
    public int matchActiveInside(long[] localHashes, int count, OverlapScores out) {
        Objects.checkFromIndexSize(0, count, localHashes.length);
        return active.match(localHashes, count, out);
    }

    /**
     * Computes for every slot how many blocks it would have in use if it got a prompt: those in use
     * plus the prompt's, less the leading ones that are in use there already. Any thread; load and
     * match are read one after the other, so a booking between them may count once too often. One
     * walk for all slots; costs by the runs of the prompt and the slots that use them, and a copy
     * of the loads.
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
        final long[] blocks = out.values();
        board.activeBlocks(blocks, config.maxWorkerSlots(), (long) count + extraBlocks);
        for (int i = 0; i < scratch.matchedSlots(); i++) {
            final int slot = scratch.slotAt(i);
            blocks[slot] -= scratch.depth(slot);
        }
    }

    /** Running requests; any thread. */
    public int activeRequests() {
        return requests.used();
    }

    /** Prompt blocks followed one by one, counted once per worker slot; any thread. */
    public long activeBlocks() {
        return active.used();
    }

    /** Bookings refused because another request ran under their index; any thread. */
    public long refusals() {
        return refusals.get();
    }

    /**
     * Bookings made without a path or with unknown blocks, because there was no room for them: what
     * they share with others is counted for each; any thread.
     */
    public long pathlessBookings() {
        return pathless.get();
    }

    /** Requests ended by their deadline; any thread. */
    public long expiredLeases() {
        return expired.get();
    }

    /** How often the load of a slot was found wrong and was corrected; any thread. */
    public long corrections() {
        return booked.corrections();
    }

    /** Runs that the prompts of running requests are made of; any thread. */
    public long runs() {
        return active.runs();
    }

    /** Bytes of {@link ActiveRequestsConfig#budgetBytes} that are in use now; any thread. */
    public long usedBytes() {
        return active.usedBytes();
    }

    /** Off-heap bytes without the board; constant from construction to close. */
    public long bytes() {
        return requests.bytes() + active.bytes() + booked.bytes();
    }

    /** Sizes that the table was made with. */
    public ActiveRequestsConfig config() {
        return config;
    }

    /** Keeps the memory while callers are inside. */
    public MemoryGate gate() {
        return gate;
    }

    /** How the writer thread keeps the memory; pinned by a pipeline for as long as it runs. */
    public WriterLane writer() {
        return writer;
    }

    /**
     * Closes the gate, and with it all structures that share it: the memory is given back when no
     * caller is inside any more. Any thread, at any time; a second call does nothing.
     */
    @Override
    public void close() {
        gate.close();
    }
}
