package io.kvasir.opstreams.alternatives.flat;

import static io.kvasir.opstreams.alternatives.flat.ChainedHashEntries.NONE;

import io.kvasir.core.hash.BlockHasher;

/**
 * The index as a flat hash table: sequence hash to one bit per worker slot, and (slot, name) to
 * block. Exact and simple, with a chain hash and a random access per block; what the run arena is
 * measured against.
 */
public final class FlatIndex implements AutoCloseable {
    private final boolean countCopies;
    private final FlatBlocks blocks;
    private final FlatNames members;
    private final PairTable furtherNames;
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
     * Makes an empty index.
     *
     * @param workers workers
     * @param countCopies whether copies of a block count
     * @param maxBlocks distinct blocks
     * @param maxHeldBlocks (worker, name) pairs
     */
    public FlatIndex(int workers, boolean countCopies, long maxBlocks, long maxHeldBlocks) {
        this.countCopies = countCopies;
        this.blocks = new FlatBlocks("maxBlocks", workers, maxBlocks);
        this.members = new FlatNames(workers, maxHeldBlocks);
        // a pair is entered for its second name, so half of the names always suffices
        this.furtherNames = new PairTable("maxHeldBlocks / 2", Math.max(1, maxHeldBlocks / 2));
    }

    /**
     * Records that a worker holds a run of blocks.
     *
     * @param worker number of the worker
     * @param root whether the run starts a prompt; {@code parent} means nothing then
     * @param parent the worker's name of the block before the run
     * @param names the worker's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     * @param count blocks
     * @return whether it was stored; false when the parent is unknown or there is no room
     */
    public boolean store(
            int worker, boolean root, long parent, long[] names, long[] localHashes, int count) {
        if (!plan(worker, root, parent, names, localHashes, count)) {
            return false;
        }
        apply(worker, names, count);
        return true;
    }

    private boolean plan(
            int slot, boolean root, long parent, long[] engineHashes, long[] locals, int count) {
        final int parentMember = root ? NONE : members.find(slot, parent);
        if (!root && parentMember == NONE) {
            return false;
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
        return newMembers <= members.free() && newBlocks <= blocks.free();
    }

    private void apply(int slot, long[] engineHashes, int count) {
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
            } else if (members.block(member) == NONE) {
                hold(slot, block);
                members.block(member, block);
                members.copies(member, 1);
            } else if (countCopies) {
                members.copies(member, members.copies(member) + 1);
            }
        }
    }

    /** Releases what the names stood for so far, possibly with what the plan names. */
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
    }

    /** Removes blocks; unknown names change nothing. */
    public void remove(int worker, long[] names, int count) {
        for (int i = 0; i < count; i++) {
            final int member = members.find(worker, names[i]);
            if (member != NONE && countCopies && members.copies(member) > 1) {
                members.copies(member, members.copies(member) - 1);
            } else if (member != NONE) {
                drop(worker, member);
            }
        }
    }

    /** Forgets everything that a worker holds. */
    public void clear(int worker) {
        for (int m = members.firstOf(worker); m != NONE; m = members.firstOf(worker)) {
            drop(worker, m);
        }
    }

    /** A lookup with memory for its answer; one thread at a time, any thread. */
    public final class Reader {
        private final FlatBlocks.Match match = blocks.new Match();

        /**
         * Finds how many leading blocks of a prompt each worker holds.
         *
         * @param localHashes local hashes of the prompt's blocks, [count]
         * @param count blocks
         * @return deepest match in blocks
         */
        public int match(long[] localHashes, int count) {
            return match.match(localHashes, count);
        }

        /** Leading blocks that a worker holds, by the last match. */
        public int depth(int worker) {
            return match.depth(worker);
        }
    }

    /** A new reader. */
    public Reader reader() {
        return new Reader();
    }

    /** (Worker, name) pairs held. */
    public long heldBlocks() {
        return members.used();
    }

    /** Off-heap bytes allocated. */
    public long bytes() {
        return blocks.bytes() + members.bytes() + furtherNames.bytes();
    }

    @Override
    public void close() {
        blocks.close();
        members.close();
        furtherNames.close();
    }

    private void drop(int slot, int member) {
        final int block = members.block(member);
        members.remove(member);
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
}
