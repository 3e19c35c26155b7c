package io.kvasir.core.index;

import static io.kvasir.core.memory.EntryChains.NONE;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;

import java.util.Objects;

/**
 * Which worker slot holds which block of which prefix, learned from engine events.
 *
 * <p>A block is known by its sequence hash, which workers share; an engine hash is only a worker's
 * own name for it, needed for parents and removals. A worker may have several names for one block
 * and several physical copies under one name: it holds the block until the last of them goes. Holes
 * are natural: a removed middle block ends a match there, and stored again it restores the match of
 * everything behind it.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. All other methods are for any
 * thread, wait for nobody and allocate nothing. Memory is taken once, off-heap; a store that does
 * not fit is refused as a whole.
 */
public final class FlatIndex implements AutoCloseable {
    /** Applied sequence of a slot before its first event. */
    public static final long NO_EVENT = -1;

    private final PrefixIndexConfig config;
    private final BlockTable blocks;
    private final MembershipTable members;
    private final PairTable furtherNames;
    private final OffHeap slotCells;

    private final WriterCounter unknownParents = new WriterCounter();
    private final WriterCounter capacityRefusals = new WriterCounter();
    private final WriterCounter invalidStores = new WriterCounter();
    private final WriterCounter conflictingStores = new WriterCounter();
    private final WriterCounter unknownRemovals = new WriterCounter();

    private final RepeatCheck repeatCheck = new RepeatCheck();
    private StorePlan plan = new StorePlan(64);

    /** What a store will touch, found before anything is written; grows to the longest store. */
    private static final class StorePlan {
        final long[] sequenceHashes;
        final int[] members;
        final int[] blocks;
        int conflicts;

        StorePlan(int length) {
            sequenceHashes = new long[length];
            members = new int[length];
            blocks = new int[length];
        }
    }

    /**
     * Allocates an empty index.
     *
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public FlatIndex(PrefixIndexConfig config) {
        this.config = config;
        this.blocks = new BlockTable("maxBlocks", config.maxWorkerSlots(), config.maxBlocks());
        this.members = new MembershipTable(config.maxWorkerSlots(), config.maxHeldBlocks());
        // a pair is entered for its second name, so half of the names always suffices
        this.furtherNames =
                new PairTable("maxHeldBlocks / 2", Math.max(1, config.maxHeldBlocks() / 2));
        this.slotCells =
                OffHeap.allocate((long) config.maxWorkerSlots() * SlotCellDescriptor.CELL_LENGTH);
        for (int slot = 0; slot < config.maxWorkerSlots(); slot++) {
            slotCells.putLongRelease(
                    SlotCellDescriptor.cellOffset(slot)
                            + SlotCellDescriptor.APPLIED_SEQUENCE_OFFSET,
                    NO_EVENT);
        }
    }

    /**
     * Notes that a slot holds a run of blocks. Writer thread. All or nothing.
     *
     * <p>An engine hash that the slot holds already gets one more physical copy, unless {@code
     * refreshHeld}. If it stood for another block, that holding is released with all its copies and
     * the new one is stored (counted as conflicting store).
     *
     * @param slot worker slot
     * @param root whether the run starts a prompt; {@code parentEngineHash} is not looked at then
     * @param parentEngineHash the slot's name of the block before the run
     * @param engineHashes the slot's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     * @param count number of blocks; 0 changes nothing
     * @param refreshHeld whether blocks that the slot holds already stay as they are
     * @return what became of it; {@link StoreResult#CAPACITY} when the blocks that are new do not
     *     fit beside what is held before the call
     * @throws IndexOutOfBoundsException if the slot or {@code count} is out of range
     */
    public StoreResult store(
            int slot,
            boolean root,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            int count,
            boolean refreshHeld) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        Objects.checkFromIndexSize(0, count, engineHashes.length);
        Objects.checkFromIndexSize(0, count, localHashes.length);
        final StoreResult result =
                plan(slot, root, parentEngineHash, engineHashes, localHashes, count);
        switch (result) {
            case STORED -> apply(slot, engineHashes, count, refreshHeld);
            case UNKNOWN_PARENT -> unknownParents.add(1);
            case CAPACITY -> capacityRefusals.add(1);
            case INVALID -> invalidStores.add(1);
        }
        return result;
    }

    private StoreResult plan(
            int slot, boolean root, long parent, long[] engineHashes, long[] locals, int count) {
        if (repeatCheck.repeats(engineHashes, count)
                || (!root && contains(engineHashes, count, parent))) {
            return StoreResult.INVALID;
        }
        final int parentMember = root ? NONE : members.find(slot, parent);
        if (!root && parentMember == NONE) {
            return StoreResult.UNKNOWN_PARENT;
        }
        if (plan.blocks.length < count) {
            plan = new StorePlan(Math.max(count, 2 * plan.blocks.length));
        }
        long sequence = root ? 0 : blocks.sequenceHash(members.block(parentMember));
        plan.conflicts = 0;
        int newMembers = 0;
        int newBlocks = 0;
        for (int i = 0; i < count; i++) {
            sequence =
                    root && i == 0 ? locals[0] : BlockHasher.nextSequenceHash(sequence, locals[i]);
            plan.sequenceHashes[i] = sequence;
            plan.members[i] = members.find(slot, engineHashes[i]);
            plan.blocks[i] = blocks.find(sequence);
            newBlocks += plan.blocks[i] == NONE ? 1 : 0;
            if (plan.members[i] == NONE) {
                newMembers++;
            } else if (members.block(plan.members[i]) != plan.blocks[i]) {
                plan.conflicts++;
            }
        }
        return newMembers <= members.free() && newBlocks <= blocks.free()
                ? StoreResult.STORED
                : StoreResult.CAPACITY;
    }

    private void apply(int slot, long[] engineHashes, int count, boolean refreshHeld) {
        if (plan.conflicts > 0) {
            releaseConflicting(slot, count);
        }
        for (int i = 0; i < count; i++) {
            if (plan.blocks[i] == NONE) {
                plan.blocks[i] = blocks.insert(plan.sequenceHashes[i]);
            }
            final int block = plan.blocks[i];
            final int member = plan.members[i];
            if (member == NONE) {
                hold(slot, block);
                members.insert(slot, engineHashes[i], block);
                addHeldBlocks(slot, 1);
            } else if (members.block(member) == NONE) {
                hold(slot, block);
                members.block(member, block);
                members.copies(member, 1);
            } else if (!refreshHeld) {
                members.copies(member, members.copies(member) + 1);
            }
        }
    }

    /** Lets go of what the names stood for so far; what the plan names may have gone with it. */
    private void releaseConflicting(int slot, int count) {
        for (int i = 0; i < count; i++) {
            final int member = plan.members[i];
            if (member != NONE && members.block(member) != plan.blocks[i]) {
                letGo(slot, members.block(member));
                members.block(member, NONE);
            }
        }
        for (int i = 0; i < count; i++) {
            plan.blocks[i] = blocks.find(plan.sequenceHashes[i]);
        }
        conflictingStores.add(plan.conflicts);
    }

    /**
     * Notes that copies of blocks are gone. Writer thread.
     *
     * @param slot worker slot
     * @param engineHashes the slot's names of the blocks, [count]
     * @param rule whether each removal takes one copy or all
     * @return how many of the names were unknown; those change nothing
     * @throws IndexOutOfBoundsException if the slot or {@code count} is out of range
     */
    public int remove(int slot, long[] engineHashes, int count, CopyRule rule) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        Objects.checkFromIndexSize(0, count, engineHashes.length);
        int unknown = 0;
        for (int i = 0; i < count; i++) {
            final int member = members.find(slot, engineHashes[i]);
            if (member == NONE) {
                unknown++;
            } else if (rule == CopyRule.PHYSICAL && members.copies(member) > 1) {
                members.copies(member, members.copies(member) - 1);
            } else {
                drop(slot, member);
            }
        }
        unknownRemovals.add(unknown);
        return unknown;
    }

    /**
     * Sets the number of copies of a block that are left, for engines that announce it. Writer
     * thread.
     *
     * @param slot worker slot
     * @param engineHash the slot's name of the block; an unknown one is counted as unknown removal
     * @param remainingCopies copies left; 0 or less = the block is gone
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void removeTo(int slot, long engineHash, int remainingCopies) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        final int member = members.find(slot, engineHash);
        if (member == NONE) {
            unknownRemovals.add(1);
        } else if (remainingCopies <= 0) {
            drop(slot, member);
        } else {
            members.copies(member, remainingCopies);
        }
    }

    /**
     * Forgets everything that a slot holds; its applied sequence stays. Writer thread.
     *
     * @return engine hashes dropped
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int clear(int slot) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        int dropped = 0;
        for (int member = members.firstOf(slot); member != NONE; member = members.firstOf(slot)) {
            drop(slot, member);
            dropped++;
        }
        return dropped;
    }

    /**
     * Publishes the number of the last event applied for a slot: a reader that sees it sees what
     * the event changed. Writer thread.
     *
     * @param sequence event number, or {@link #NO_EVENT} when the slot gets a new tenant
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void eventApplied(int slot, long sequence) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        slotCells.putLongRelease(
                SlotCellDescriptor.cellOffset(slot) + SlotCellDescriptor.APPLIED_SEQUENCE_OFFSET,
                sequence);
    }

    /**
     * Shows every held block, slot by slot, in no particular order inside a slot. Writer thread;
     * for tests and dumps.
     */
    public void forEach(BlockVisitor visitor) {
        for (int slot = 0; slot < config.maxWorkerSlots(); slot++) {
            for (int m = members.firstOf(slot); m != NONE; m = members.nextOfSlot(m)) {
                visitor.block(
                        slot,
                        members.engineHash(m),
                        blocks.sequenceHash(members.block(m)),
                        members.copies(m));
            }
        }
    }

    /**
     * Finds how many leading blocks of a prompt each worker slot holds. Any thread.
     *
     * <p>Each block counted was held by that slot at some moment of the call, block by block: not a
     * snapshot of the whole prefix. A concurrent write may hide a block from this call (undercount)
     * but never invents one; while the writer is quiet the result is exact.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [count], not copied
     * @param count blocks to match, 0..{@code localHashes.length}
     * @param out cleared, then filled with the depth in blocks of each slot; caller-owned, reused
     * @return deepest match in blocks, 0 when nothing matched
     * @throws IndexOutOfBoundsException if {@code count} is negative or beyond the array
     * @throws IllegalArgumentException if {@code out} has fewer slots than the index
     */
    public int match(long[] localHashes, int count, OverlapScores out) {
        return blocks.match(localHashes, count, out);
    }

    /** Number of the last event applied for a slot, {@link #NO_EVENT} before the first. */
    public long appliedSequence(int slot) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        return slotCells.getLongAcquire(
                SlotCellDescriptor.cellOffset(slot) + SlotCellDescriptor.APPLIED_SEQUENCE_OFFSET);
    }

    /** Distinct blocks that any slot holds. */
    public long blocks() {
        return blocks.used();
    }

    /** (Worker slot, engine hash) pairs. */
    public long heldBlocks() {
        return members.used();
    }

    /** Engine hashes that a slot holds. */
    public long heldBlocks(int slot) {
        Objects.checkIndex(slot, config.maxWorkerSlots());
        return slotCells.getLongAcquire(
                SlotCellDescriptor.cellOffset(slot) + SlotCellDescriptor.HELD_BLOCKS_OFFSET);
    }

    /** Off-heap bytes allocated; constant from construction to close. */
    public long bytes() {
        return blocks.bytes() + members.bytes() + furtherNames.bytes() + slotCells.length();
    }

    /** Sizes that the index was made with. */
    public PrefixIndexConfig config() {
        return config;
    }

    /** Stores refused because the parent was not held. */
    public long unknownParents() {
        return unknownParents.get();
    }

    /** Stores refused because they did not fit. */
    public long capacityRefusals() {
        return capacityRefusals.get();
    }

    /** Stores refused as contradicting themselves. */
    public long invalidStores() {
        return invalidStores.get();
    }

    /** Engine hashes that were stored again for another block. */
    public long conflictingStores() {
        return conflictingStores.get();
    }

    /** Engine hashes to be removed that were not held. */
    public long unknownRemovals() {
        return unknownRemovals.get();
    }

    /** Gives the memory back; a second call does nothing. No other call may follow or run. */
    @Override
    public void close() {
        blocks.close();
        members.close();
        furtherNames.close();
        slotCells.close();
    }

    private void drop(int slot, int member) {
        final int block = members.block(member);
        members.remove(member);
        addHeldBlocks(slot, -1);
        letGo(slot, block);
    }

    /** One more name of the slot stands for the block. */
    private void hold(int slot, int block) {
        if (!blocks.isHolder(block, slot)) {
            blocks.addHolder(block, slot);
            return;
        }
        final int pair = furtherNames.find(slot, block);
        if (pair == NONE) {
            final int added = furtherNames.insert(slot, block);
            assert added != NONE : "more further names than half of all names";
        } else {
            furtherNames.increment(pair);
        }
    }

    /** One name of the slot less stands for the block; the last one ends the holding. */
    private void letGo(int slot, int block) {
        final int pair = furtherNames.used() == 0 ? NONE : furtherNames.find(slot, block);
        if (pair == NONE) {
            blocks.removeHolder(block, slot);
        } else {
            furtherNames.decrement(pair);
        }
    }

    private void addHeldBlocks(int slot, long delta) {
        final long offset =
                SlotCellDescriptor.cellOffset(slot) + SlotCellDescriptor.HELD_BLOCKS_OFFSET;
        slotCells.putLongRelease(offset, slotCells.getLong(offset) + delta);
    }

    private static boolean contains(long[] hashes, int count, long wanted) {
        for (int i = 0; i < count; i++) {
            if (hashes[i] == wanted) {
                return true;
            }
        }
        return false;
    }
}
