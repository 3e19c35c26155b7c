package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.SharedCells;
import io.kvasir.core.radix.RadixTree;

import java.security.SecureRandom;
import java.util.Arrays;

/**
 * The tables of one {@link PrefixIndex}, which its operations share. Changed by the writer thread;
 * of the tree and the cells other threads read what their classes say.
 */
final class IndexTables {
    final BuddyArena arena;
    final RadixTree tree;

    /** What each worker slot holds. */
    final HeldRuns[] heldRuns;

    /** Engine hashes of each worker slot. */
    final EngineHashLookup[] lookups;

    final HolderConsistency holders;

    /** What is published of each slot, see {@link SlotCellDescriptor}. */
    final SharedCells slotCells;

    final SlotShares shares;
    final MissingBlocks missing;

    /** What is saved for the next process; null where nothing is. */
    final IndexCheckpoint checkpointOrNull;

    /**
     * Makes empty tables. In memory that outlives the process they are as it has them after {@link
     * IndexCheckpoint#restore}.
     *
     * @param gate owns the memory from the first step on; to be closed if one fails
     * @param memoryOrNull null for memory of this process
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    IndexTables(PrefixIndexConfig config, MemoryGate gate, IndexMemory memoryOrNull) {
        final int slots = config.maxWorkerSlots();
        if (memoryOrNull == null) {
            arena = gate.own(new BuddyArena(config.budgetBytes()));
            tree = new RadixTree(arena, slots);
        } else {
            gate.own(memoryOrNull);
            arena = memoryOrNull.arena();
            tree = new RadixTree(arena, slots, memoryOrNull.treeSecret(), memoryOrNull.root());
        }
        heldRuns = new HeldRuns[slots];
        Arrays.setAll(heldRuns, s -> new HeldRuns(arena));
        lookups = new EngineHashLookup[slots];
        final EngineHashIndex.Key key = memoryOrNull == null ? newKey() : memoryOrNull.key();
        final EngineHashIndex.Batch batch = new EngineHashIndex.Batch();
        Arrays.setAll(lookups, s -> new EngineHashLookup(arena, heldRuns[s], key, batch));
        holders = new HolderConsistency(arena, tree, heldRuns);
        slotCells = new SharedCells(SlotCellDescriptor.length(slots));
        shares = new SlotShares(slots, slotCells);
        missing = new MissingBlocks(slots);
        checkpointOrNull =
                memoryOrNull == null ? null : new IndexCheckpoint(memoryOrNull, this, slots);
    }

    /** A slot is about to be changed. Writer thread. */
    void touch(int slot) {
        if (checkpointOrNull != null) {
            checkpointOrNull.touch(slot);
        }
    }

    private static EngineHashIndex.Key newKey() {
        final SecureRandom random = new SecureRandom();
        return new EngineHashIndex.Key(random.nextLong(), random.nextLong());
    }
}
