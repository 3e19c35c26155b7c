package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * What a store and a removal have in common: the worker slot that an event is applied to, and the
 * release of an engine hash. The fields that change are those of the event under way: set by {@link
 * #begin}, without meaning after {@link #end}. Writer thread only.
 */
abstract class SlotOperation {
    final RadixTree tree;
    final HolderConsistency holders;
    final MissingBlocks missing;
    final IndexCapacity capacity;
    private final IndexTables tables;
    private final SlotShares shares;
    private final HeldRuns[] allHeldRuns;
    private final EngineHashLookup[] allLookups;

    int slot;

    /** What the slot holds. */
    HeldRuns heldRuns;

    /** The slot's engine hashes. */
    EngineHashLookup lookup;

    /** Engine hashes that the slot holds more than before the event. */
    int heldChange;

    SlotOperation(IndexTables tables, IndexCapacity capacity) {
        this.tables = tables;
        this.tree = tables.tree;
        this.holders = tables.holders;
        this.missing = tables.missing;
        this.capacity = capacity;
        this.shares = tables.shares;
        this.allHeldRuns = tables.heldRuns;
        this.allLookups = tables.lookups;
    }

    /**
     * Begins an event of a slot.
     *
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    final void begin(int workerSlot) {
        heldRuns = allHeldRuns[workerSlot];
        lookup = allLookups[workerSlot];
        slot = workerSlot;
        heldChange = 0;
        tables.touch(workerSlot);
    }

    /** Publishes how many engine hashes the slot holds. */
    final void end() {
        shares.add(slot, heldChange);
    }

    /** Engine hashes that the slot holds, without {@link #heldChange} before {@link #end}. */
    final long heldBlocks() {
        return shares.held(slot);
    }

    /** Releases an engine hash with all its copies; its block too unless it has another one. */
    final void release(long engineHash, int position) {
        heldChange--;
        if (!lookup.remove(engineHash)) {
            letGo(HeldRunDescriptor.heldRun(position), HeldRunDescriptor.arrayOffset(position));
        }
    }

    /** Releases a block; without memory to record the hole, all blocks of the held run after it. */
    final void letGo(int heldRun, int arrayOffset) {
        if (holders.letGoOne(slot, heldRun, arrayOffset)) {
            return;
        }
        for (int p = heldRuns.high(heldRun) - 1; p > arrayOffset; p--) {
            while (heldRuns.holds(heldRun, p)) {
                final long engineHash = heldRuns.name(heldRun, p);
                final int copies = lookup.copies(engineHash);
                release(engineHash, HeldRunDescriptor.position(heldRun, p));
                capacity.forgot(slot, engineHash, copies);
            }
        }
        holders.letGoLast(slot, heldRun, 1);
    }
}
