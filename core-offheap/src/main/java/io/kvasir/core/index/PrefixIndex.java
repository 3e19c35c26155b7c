package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.WriterLane;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.core.radix.RadixTree;

import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * Which worker slot holds which block of which prefix, learned from engine events.
 *
 * <p>Prompts are paths in a {@link RadixTree} of local hashes, which workers share; an engine hash
 * is only a worker's own name for a block, needed for parents and removals. A worker may have
 * several names for one block and several physical copies under one name: it holds the block until
 * the last of them is removed. A removed middle block leaves a hole that ends a match there; the
 * blocks after it are kept, and the block stored again restores the match of all of them.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. All other methods are for any
 * thread, never wait and allocate nothing. Memory is taken once, off-heap; what is freed can be
 * used again at once. A store that does not fit follows the {@link CapacityRule}; it is stored or
 * refused as a whole.
 *
 * <p>This class is the entrance: it keeps the memory while a caller is inside and hands each event
 * to {@link StoreOperation} or {@link RemoveOperation}, and each lookup to the tree. Limits and
 * eviction are {@link IndexCapacity}'s.
 *
 * <p>After {@link #close}, {@link #match} and the writer's methods throw {@link
 * io.kvasir.core.memory.ClosedException}; gauges and counters keep their last values.
 */
public final class PrefixIndex implements AutoCloseable {
    /** Applied sequence of a slot before its first event. */
    public static final long NO_EVENT = -1;

    /** Answer of {@link #forEachRun}: everything has been shown. */
    public static final int NO_MORE_RUNS = SlotWalk.END;

    private final PrefixIndexConfig config;
    private final MemoryGate gate;
    private final WriterLane writer;
    private final IndexTables tables;
    private final RadixTree tree;
    private final IndexCapacity capacity;
    private final StoreOperation store;
    private final RemoveOperation remove;
    private final SlotWalk slotWalk;
    private final IndexCheckpoint checkpointOrNull; // null where nothing outlives the process

    /**
     * Allocates an empty index with a gate of its own.
     *
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PrefixIndex(PrefixIndexConfig config) {
        this(config, new MemoryGate("the prefix index"));
    }

    /**
     * Allocates an empty index.
     *
     * @param gate keeps the memory while callers are inside; closed if the memory is refused
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PrefixIndex(PrefixIndexConfig config, MemoryGate gate) {
        this(config, gate, new WriterLane(gate));
    }

    /**
     * Makes an index in memory that outlives the process: as an earlier process had committed it,
     * or empty.
     *
     * @param gate keeps the memory while callers are inside; closed if a step fails
     * @param memoryOrNull the index's from here on, closed with the gate; made for {@code config}.
     *     Null for memory of this process
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PrefixIndex(PrefixIndexConfig config, MemoryGate gate, IndexMemory memoryOrNull) {
        this(config, gate, new WriterLane(gate), memoryOrNull);
    }

    /**
     * Makes an index in memory of the process that has its writer thread in common with others.
     *
     * @param gate keeps the memory while callers are inside; closed if the memory is refused
     * @param writer how that thread keeps the memory
     */
    PrefixIndex(PrefixIndexConfig config, MemoryGate gate, WriterLane writer) {
        this(config, gate, writer, null);
    }

    private PrefixIndex(
            PrefixIndexConfig config,
            MemoryGate gate,
            WriterLane writer,
            IndexMemory memoryOrNull) {
        this.config = config;
        this.gate = gate;
        this.writer = writer;
        try {
            this.tables = new IndexTables(config, gate, memoryOrNull);
            this.checkpointOrNull = tables.checkpointOrNull;
            this.tree = tables.tree;
            this.capacity = new IndexCapacity(config, tables);
            this.store = new StoreOperation(tables, capacity);
            this.remove = new RemoveOperation(tables, capacity);
            this.slotWalk = new SlotWalk(tables);
            for (int s = 0; s < config.maxWorkerSlots(); s++) {
                eventApplied(s, NO_EVENT);
            }
            if (checkpointOrNull != null) {
                beginKeeping(memoryOrNull.isReopened());
            }
        } catch (Throwable t) {
            gate.close();
            throw t;
        }
    }

    private void beginKeeping(boolean reopened) {
        if (reopened) {
            checkpointOrNull.restore();
            checkpointOrNull.commit();
        } else {
            checkpointOrNull.made();
        }
    }

    /** Sets what is called when blocks are evicted. Before the writer's first other call. */
    public void onEviction(EvictionListener listener) {
        capacity.onEviction(Objects.requireNonNull(listener));
    }

    /**
     * Records that a slot holds a run of blocks. Writer thread. All or nothing.
     *
     * <p>An engine hash that the slot holds already gets one more physical copy, unless {@code
     * refresh}. If it stood for another block, that held run is released with all its copies and
     * the new one is stored (counted as conflicting store); it stays released if the store is then
     * refused because memory is exhausted.
     *
     * @param workerSlot worker slot
     * @param root whether the run starts a prompt; {@code parentEngineHash} is not used then
     * @param parentEngineHash the slot's name of the block before the run
     * @param engineHashes the slot's names of the blocks, [blockCount]
     * @param localHashes local hashes of the blocks, [blockCount]
     * @param blockCount number of blocks; 0 is {@link StoreResult#STORED} and changes nothing,
     *     whatever the parent is
     * @param refresh whether blocks that the slot holds already stay as they are
     * @return what became of it; {@link StoreResult#CAPACITY} when the blocks that are new do not
     *     fit beside what is held before the call, or what is left of that by the {@link
     *     CapacityRule}
     * @throws IndexOutOfBoundsException if the slot or {@code blockCount} is out of range
     */
    public StoreResult store(
            int workerSlot,
            boolean root,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            int blockCount,
            boolean refresh) {
        final int lane = writer.enter();
        try {
            Objects.checkFromIndexSize(0, blockCount, engineHashes.length);
            Objects.checkFromIndexSize(0, blockCount, localHashes.length);
            return store.store(
                    workerSlot,
                    root,
                    parentEngineHash,
                    engineHashes,
                    localHashes,
                    blockCount,
                    refresh);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Gives a block that a slot holds one more engine hash. Writer thread. If that stood for
     * another block, it is released there with all its copies; if it is one of the block's already,
     * nothing changes.
     *
     * @param workerSlot worker slot
     * @param heldEngineHash an engine hash of the block
     * @param engineHash the further one
     * @return {@link StoreResult#UNKNOWN_PARENT} when the block is not held, or {@link
     *     StoreResult#MISSING_PARENT} when that may be for lack of room
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    StoreResult addName(int workerSlot, long heldEngineHash, long engineHash) {
        final int lane = writer.enter();
        try {
            return store.addName(workerSlot, heldEngineHash, engineHash);
        } finally {
            writer.exit(lane);
        }
    }

    /** Whether an engine hash stands for a block that a slot holds. Writer thread. */
    boolean holds(int workerSlot, long engineHash) {
        return tables.lookups[workerSlot].position(engineHash) != HeldRunDescriptor.NO_POSITION;
    }

    /**
     * Shows one block that a slot holds. Writer thread.
     *
     * @return whether the engine hash stands for one
     */
    boolean show(int workerSlot, long engineHash, HeldRunVisitor visitor) {
        final int lane = writer.enter();
        try {
            final int position = tables.lookups[workerSlot].position(engineHash);
            if (position == HeldRunDescriptor.NO_POSITION) {
                return false;
            }
            slotWalk.showBlock(workerSlot, position, visitor);
            return true;
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Gives an empty slot of another index all that the slot of that number holds here. Writer
     * thread of both; takes time for each block.
     */
    void copySlot(int workerSlot, PrefixIndex other) {
        final int lane = writer.enter();
        try (SlotExport export = SlotExport.atOnce(tables, capacity, workerSlot)) {
            final SlotImport copy = other.importInto(workerSlot);
            final boolean[] whole = {true};
            export.show(
                    Integer.MAX_VALUE,
                    new SlotVisitor() {
                        @Override
                        public void path(SlotPath path) {
                            whole[0] &= copy.path(path);
                        }

                        @Override
                        public void copies(long engineHash, int copies) {
                            copy.copies(engineHash, copies);
                        }
                    });
            copy.end(missingBlocks(workerSlot), turnover(workerSlot), removalRule(workerSlot));
            if (!whole[0]) {
                throw new AssertionError("slot " + workerSlot + " was shown out of order");
            }
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Records that copies of blocks were removed. Writer thread.
     *
     * @param workerSlot worker slot
     * @param engineHashes the slot's names of the blocks, [blockCount]
     * @param blockCount number of blocks
     * @param rule whether each removal takes one copy or all
     * @return how many of the names were unknown, and not of {@link #missingBlocks}; those change
     *     nothing
     * @throws IndexOutOfBoundsException if the slot or {@code blockCount} is out of range
     */
    public int remove(int workerSlot, long[] engineHashes, int blockCount, CopyRule rule) {
        final int lane = writer.enter();
        try {
            Objects.checkFromIndexSize(0, blockCount, engineHashes.length);
            tables.missing.removes(check(workerSlot), rule);
            return remove.remove(workerSlot, engineHashes, blockCount, rule);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Sets the number of copies of a block that are left, for engines that announce it. Writer
     * thread.
     *
     * @param workerSlot worker slot
     * @param engineHash the slot's name of the block
     * @param remainingCopies copies left; 0 or less = the block is removed
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void removeTo(int workerSlot, long engineHash, int remainingCopies) {
        final int lane = writer.enter();
        try {
            tables.missing.removes(check(workerSlot), CopyRule.LAST_COPY); // at 0 copies, once
            remove.removeTo(workerSlot, engineHash, remainingCopies);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * By which rule a slot has removed blocks last, or, before its first removal, was imported;
     * else {@link CopyRule#PHYSICAL}. Writer thread.
     *
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public CopyRule removalRule(int workerSlot) {
        return tables.missing.rule(check(workerSlot));
    }

    /**
     * Says that from here on all {@link #missingBlocks} of a slot are stored again. Writer thread.
     */
    public void beginRefill(int workerSlot) {
        tables.touch(check(workerSlot));
        tables.missing.beginRefill(workerSlot);
    }

    /**
     * Says that all {@link #missingBlocks} of a slot have been stored again: none is missing any
     * more, unless there was no room for one since {@link #beginRefill}. Writer thread.
     */
    public void endRefill(int workerSlot) {
        tables.touch(check(workerSlot));
        tables.missing.endRefill(workerSlot);
    }

    /**
     * Begins to show all that a slot holds. Writer thread. Until the export is closed nothing may
     * be stored, removed or cleared for the slot, and nothing is evicted from it. The writer thread
     * must keep the memory meanwhile, as one that is pinned does.
     *
     * @throws IllegalStateException if another export is open
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public SlotExport export(int workerSlot) {
        final int lane = writer.enter();
        try {
            return new SlotExport(tables, capacity, check(workerSlot));
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Begins to give an empty slot what an export has shown. Writer thread, which must keep the
     * memory meanwhile, as one that is pinned does.
     *
     * @throws IllegalStateException if the slot holds something
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public SlotImport importInto(int workerSlot) {
        if (heldBlocks(workerSlot) > 0 || missingBlocks(workerSlot) > 0) {
            throw new IllegalStateException(
                    "slot " + workerSlot + " holds blocks already; clear it before an import");
        }
        return new SlotImport(tables, store, remove, workerSlot);
    }

    /**
     * Forgets everything that a slot holds; its applied sequence stays. Writer thread. Takes time
     * for each run that the slot holds, not for each block.
     *
     * @return engine hashes dropped
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int clear(int workerSlot) {
        final int lane = writer.enter();
        try {
            return remove.clear(workerSlot);
        } finally {
            writer.exit(lane);
        }
    }

    // -- any thread -------------------------------------------------------------------------

    /**
     * Publishes the number of the last event applied for a slot: a reader that sees it sees what
     * the event changed. Writer thread.
     *
     * @param sequence event number, or {@link #NO_EVENT} when the slot gets a new tenant
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void eventApplied(int workerSlot, long sequence) {
        tables.touch(check(workerSlot));
        // published after all that the event changed: a reader that acquires the number sees that
        tables.slotCells.putLongRelease(
                SlotCellDescriptor.appliedSequenceOffset(workerSlot), sequence);
    }

    // -- for the next process ---------------------------------------------------------------

    /** Whether what is committed is there after the end of the process. */
    public boolean isKept() {
        return checkpointOrNull != null;
    }

    /**
     * Makes all changes so far those that a later process finds; one that ends before this call
     * leaves none of them. Writer thread, once an event is applied as a whole. Does nothing where
     * the index {@link #isKept is not kept}.
     */
    public void commit() {
        if (checkpointOrNull == null) {
            return;
        }
        final int lane = writer.enter();
        try {
            checkpointOrNull.commit();
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Says that the index may be wrong, after an error in the middle of a change: a later process
     * begins with an empty one. Writer thread.
     */
    public void spoil() {
        if (checkpointOrNull != null) {
            final int lane = writer.enter();
            try {
                checkpointOrNull.spoil();
            } finally {
                writer.exit(lane);
            }
        }
    }

    /**
     * Keeps when engines are followed with the index, as part of the change under way: later
     * processes find out by it whether something newer was saved. The latest time stays. Writer
     * thread. Does nothing where the index is not kept.
     *
     * @param atMs time of day, in ms since 1970
     */
    public void followed(long atMs) {
        if (checkpointOrNull == null) {
            return;
        }
        final int lane = writer.enter();
        try {
            checkpointOrNull.followed(atMs);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Keeps a number with the index as a whole, as part of the change under way. Writer thread.
     * Does nothing where the index is not kept.
     *
     * @param word which of {@value IndexCheckpointDescriptor#OWNER_WORDS}
     * @throws IndexOutOfBoundsException if there is no such word
     */
    public void keptIndexWord(int word, long value) {
        if (checkpointOrNull == null) {
            return;
        }
        final int lane = writer.enter();
        try {
            checkpointOrNull.indexWord(word, value);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * A number that is kept with the index as a whole; 0 where none is. Writer thread, or before it
     * runs.
     *
     * @throws IndexOutOfBoundsException if there is no such word
     */
    public long keptIndexWord(int word) {
        if (checkpointOrNull == null) {
            return 0;
        }
        final int lane = writer.enter();
        try {
            return checkpointOrNull.indexWord(word);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Keeps a number with a slot, as part of the change under way. Writer thread. Does nothing
     * where the index is not kept.
     *
     * @param word which of {@value IndexCheckpointDescriptor#OWNER_WORDS}
     * @throws IndexOutOfBoundsException if there is no such slot or word
     */
    public void keptWord(int workerSlot, int word, long value) {
        if (checkpointOrNull == null) {
            return;
        }
        final int lane = writer.enter();
        try {
            checkpointOrNull.word(check(workerSlot), word, value);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * A number that is kept with a slot; 0 where none is. Writer thread, or before it runs.
     *
     * @throws IndexOutOfBoundsException if there is no such slot or word
     */
    public long keptWord(int workerSlot, int word) {
        if (checkpointOrNull == null) {
            return 0;
        }
        final int lane = writer.enter();
        try {
            return checkpointOrNull.word(check(workerSlot), word);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Keeps bytes with a slot by which its tenant is known again, as part of the change under way.
     * Writer thread.
     *
     * @param label empty for none
     * @return false if they are too long to be kept, or nothing is: there are none then
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public boolean keptLabel(int workerSlot, byte[] label) {
        if (checkpointOrNull == null) {
            return false;
        }
        final int lane = writer.enter();
        try {
            return checkpointOrNull.label(check(workerSlot), label);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * The bytes that are kept with a slot; empty where there are none. Writer thread, or before it
     * runs.
     *
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public byte[] keptLabel(int workerSlot) {
        if (checkpointOrNull == null) {
            return new byte[0];
        }
        final int lane = writer.enter();
        try {
            return checkpointOrNull.label(check(workerSlot));
        } finally {
            writer.exit(lane);
        }
    }

    /** What is saved for the next process; for tests. */
    IndexCheckpoint checkpoint() {
        return checkpointOrNull;
    }

    /** Shows every held block, in no particular order. Writer thread; for tests and dumps. */
    public void forEach(BlockVisitor visitor) {
        final int lane = writer.enter();
        try {
            new BlockWalk(tables, visitor).walk();
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Shows a part of what one slot holds: runs of blocks with their engine hashes and their
     * parent's, in no particular order; a further name of a block is a run of one block. Writer
     * thread, for dumps: a caller that continues where it stopped lets events be applied in
     * between. A block that is held all the time is shown by one of the calls; one that is stored
     * or removed meanwhile may be shown or not. Where the slot is cleared between two calls, the
     * rest is that of what it holds then.
     *
     * @param workerSlot worker slot
     * @param from 0, then what the call before returned
     * @param mostBlocks where to stop, at the end of a run: blocks shown, and runs looked at
     * @param visitor takes what is held
     * @return where to go on; {@link #NO_MORE_RUNS} at the end
     * @throws IndexOutOfBoundsException if the slot is out of range, or {@code from} is negative
     */
    public int forEachRun(int workerSlot, int from, int mostBlocks, HeldRunVisitor visitor) {
        final int lane = writer.enter();
        try {
            Objects.checkIndex(from, Integer.MAX_VALUE);
            return slotWalk.walk(check(workerSlot), from, mostBlocks, visitor);
        } finally {
            writer.exit(lane);
        }
    }

    /**
     * Finds how many leading blocks of a prompt each worker slot holds. Any thread.
     *
     * <p>Each block counted was held by that slot at some moment of the call, block by block: not a
     * snapshot of the whole prefix; a store that is being refused for lack of memory may be seen in
     * part until it is taken back. A concurrent write may hide a block from this call (undercount)
     * but never invents one; while the writer is quiet the result is exact.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [blockCount], not copied
     * @param blockCount blocks to match, 0..{@code localHashes.length}
     * @param out cleared, then filled with the depth in blocks of each slot; caller-owned, reused
     * @return deepest match in blocks, 0 when nothing matched
     * @throws IndexOutOfBoundsException if {@code blockCount} is negative or beyond the array
     * @throws IllegalArgumentException if {@code out} has fewer slots than the index
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     */
    public int match(long[] localHashes, int blockCount, OverlapScores out) {
        final int lane = gate.enterOrThrow();
        try {
            return matchInside(localHashes, blockCount, out);
        } finally {
            gate.exit(lane);
        }
    }

    /** The same as {@link #match}, for a caller that has entered {@link #gate()}. */
    public int matchInside(long[] localHashes, int blockCount, OverlapScores out) {
        Objects.checkFromIndexSize(0, blockCount, localHashes.length);
        return tree.match(localHashes, blockCount, out);
    }

    /** Number of the last event applied for a slot, {@link #NO_EVENT} before the first. */
    public long appliedSequence(int workerSlot) {
        return tables.slotCells.getLongAcquire(
                SlotCellDescriptor.appliedSequenceOffset(check(workerSlot)));
    }

    /**
     * Copies the numbers of the last events applied for the first slots; each by itself is whole.
     * What the caller reads of the index afterwards is not older. Any thread.
     *
     * @param out number for slot {@code i} at index {@code i}; {@link #NO_EVENT} before the first
     * @param count slots, at most {@code maxWorkerSlots} and {@code out.length}
     * @throws IndexOutOfBoundsException if {@code count} is beyond either
     */
    public void appliedSequences(long[] out, int count) {
        Objects.checkFromIndexSize(0, count, Math.min(out.length, config.maxWorkerSlots()));
        tables.slotCells.getLongs(SlotCellDescriptor.appliedSequenceOffset(0), out, 0, count);
        VarHandle.acquireFence(); // the numbers are read before whatever the caller reads next
    }

    private int check(int workerSlot) {
        return Objects.checkIndex(workerSlot, config.maxWorkerSlots());
    }

    /** Distinct blocks that any slot holds. */
    public long blocks() {
        return tables.holders.blocks();
    }

    /** (Worker slot, engine hash) pairs. */
    public long heldBlocks() {
        return tables.shares.total();
    }

    /** Engine hashes that a slot holds. */
    public long heldBlocks(int workerSlot) {
        return tables.shares.held(check(workerSlot));
    }

    /** Engine hashes that each slot has room for when all that hold something want as much. */
    public long share() {
        return capacity.share();
    }

    /**
     * Blocks that a slot has announced and that are not held for lack of room: refused, stored
     * after such a block, or evicted, less those that it has removed since. Of an evicted one each
     * copy counts whose removal the engine will announce. An engine hash that is removed and not
     * held is taken for one of them as long as there are some. There are none any more after {@link
     * #clear}, or when the slot has removed as many blocks, held or not, as it had announced when
     * it last got a missing one.
     */
    public long missingBlocks(int workerSlot) {
        return tables.missing.missing(check(workerSlot));
    }

    /** Blocks that a slot has still to remove until none is missing any more; 0 where none is. */
    public long turnover(int workerSlot) {
        return tables.missing.turnover(check(workerSlot));
    }

    /**
     * Whether the {@link #missingBlocks} of a slot would fit, and a tenth of each limit would be
     * left; of what memory they need, the most usual runs need less. Any thread.
     */
    public boolean hasRoom(int workerSlot) {
        return capacity.hasRoom(missingBlocks(workerSlot));
    }

    /** Blocks of a slot that were not stored for lack of room. */
    public long refusedBlocks(int workerSlot) {
        return tables.missing.refused(check(workerSlot));
    }

    /** Blocks of a slot that were given up for others. */
    public long evictedBlocks(int workerSlot) {
        return tables.missing.evicted(check(workerSlot));
    }

    /** Removals of {@link #missingBlocks} of a slot. */
    public long missingRemovals(int workerSlot) {
        return tables.missing.removed(check(workerSlot));
    }

    /** Off-heap bytes allocated; constant from construction to close. */
    public long bytes() {
        return tables.arena.bytes();
    }

    /** Bytes of the budget that are in use now. */
    public long usedBytes() {
        return capacity.usedBytes();
    }

    /** Sizes that the index was made with. */
    public PrefixIndexConfig config() {
        return config;
    }

    /** Stores refused because the parent was not held, and not for lack of room. */
    public long unknownParents() {
        return store.unknownParents.get();
    }

    /** Stores refused because the parent was not held for lack of room. */
    public long missingParents() {
        return store.missingParents.get();
    }

    /** Blocks given up for others. */
    public long evictedBlocks() {
        return capacity.evictedBlocks();
    }

    /** Engine hashes to be removed that were not held for lack of room. */
    public long missingRemovals() {
        return remove.missingRemovals.get();
    }

    /** Stores refused because they did not fit. */
    public long capacityRefusals() {
        return store.capacityRefusals.get();
    }

    /** Stores refused as contradicting themselves. */
    public long invalidStores() {
        return store.invalidStores.get();
    }

    /** Engine hashes that were stored again for another block. */
    public long conflictingStores() {
        return store.conflictingStores.get();
    }

    /** Engine hashes to be removed that were not held, and not for lack of room. */
    public long unknownRemovals() {
        return remove.unknownRemovals.get();
    }

    /** Held blocks given up because there was no memory to record a hole before them. */
    public long forgottenBlocks() {
        return capacity.forgottenBlocks();
    }

    /** The memory of all tables; for tests. */
    BuddyArena arena() {
        return tables.arena;
    }

    /** The runs; for tests. */
    RadixTree tree() {
        return tree;
    }

    /** What keeps runs, holders and held runs in agreement; for tests. */
    HolderConsistency holders() {
        return tables.holders;
    }

    /** What a slot holds; for tests. */
    HeldRuns heldRuns(int workerSlot) {
        return tables.heldRuns[workerSlot];
    }

    /** What is given up for others; for tests. */
    Evictor evictor() {
        return capacity.evictor();
    }

    /** Engine hashes of a slot; for tests. */
    EngineHashLookup names(int workerSlot) {
        return tables.lookups[workerSlot];
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
     * Closes the gate, and with it all structures that share it: the memory is given back when the
     * last thread inside has left. Any thread, at any time; a second call does nothing.
     */
    @Override
    public void close() {
        gate.close();
    }
}
