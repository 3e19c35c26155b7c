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

    /**
     * Makes empty tables.
     *
     * @param gate owns the memory from the first step on; to be closed if one fails
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    IndexTables(PrefixIndexConfig config, MemoryGate gate) {
        final int slots = config.maxWorkerSlots();
        arena = gate.own(new BuddyArena(config.budgetBytes()));
        tree = new RadixTree(arena, slots);
        heldRuns = new HeldRuns[slots];
        Arrays.setAll(heldRuns, s -> new HeldRuns(arena));
        lookups = new EngineHashLookup[slots];
        final EngineHashIndex.Key key = newKey();
        final EngineHashIndex.Batch batch = new EngineHashIndex.Batch();
        Arrays.setAll(lookups, s -> new EngineHashLookup(arena, heldRuns[s], key, batch));
        holders = new HolderConsistency(arena, tree, heldRuns);
        slotCells = new SharedCells(SlotCellDescriptor.length(slots));
        shares = new SlotShares(slots, slotCells);
        missing = new MissingBlocks(slots);
    }

    private static EngineHashIndex.Key newKey() {
        final SecureRandom random = new SecureRandom();
        return new EngineHashIndex.Key(random.nextLong(), random.nextLong());
    }
}
