package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRunDescriptor.NO_POSITION;

import java.security.SecureRandom;

/**
 * Gives an empty worker slot what {@link SlotExport} has shown of another one, of the same index or
 * of another with the same local hashes. Writer thread; other slots may be written between any two
 * calls, this one must not.
 *
 * <p>Stores as events do, with the same rule for what does not fit: that is counted as missing. A
 * hole is stored as a block under a name that no engine can have known, and removed at the end; so
 * there must be room for the holes, too.
 */
public final class SlotImport {
    private static final long SPREAD = 0x9e3779b97f4a7c15L; // odd: no two holes have one name

    private final StoreOperation store;
    private final RemoveOperation remove;
    private final IndexTables tables;
    private final MissingBlocks missing;
    private final SlotShares shares;
    private final EngineHashLookup lookup;
    private final int slot;
    private final long firstName = new SecureRandom().nextLong();
    private final long[] names = new long[SlotPath.MAX_BLOCKS];
    private final long[] hole = new long[1];
    private final long givenUpBefore;
    private long holes;
    private long removedHoles;
    private long evictedHoles;
    private long uncounted; // copies

    SlotImport(IndexTables tables, StoreOperation store, RemoveOperation remove, int slot) {
        this.store = store;
        this.remove = remove;
        this.tables = tables;
        this.missing = tables.missing;
        this.shares = tables.shares;
        this.lookup = tables.lookups[slot];
        this.slot = slot;
        this.givenUpBefore = givenUp();
    }

    /** Blocks of the slot that have ever found no room; removals do not change it. */
    private long givenUp() {
        return missing.refused(slot) + missing.evicted(slot);
    }

    /**
     * Stores the blocks of a path; those that do not fit are counted as missing.
     *
     * @return false if it continues from a block or hole that was not given before, or names a
     *     block twice: then the slot is to be cleared
     */
    public boolean path(SlotPath path) {
        final boolean afterHole = path.parentKind() == SlotPath.Parent.HOLE;
        if (afterHole && (path.parent() < 0 || path.parent() >= holes)) {
            return false;
        }
        for (int i = 0; i < path.count(); i++) {
            names[i] = path.isHeld(i) ? path.engineHash(i) : holeName(holes++);
        }
        final StoreResult result =
                store.store(
                        slot,
                        path.parentKind() == SlotPath.Parent.ROOT,
                        afterHole ? holeName(path.parent()) : path.parent(),
                        names,
                        path.localHashes(),
                        path.count(),
                        true);
        return result != StoreResult.UNKNOWN_PARENT && result != StoreResult.INVALID;
    }

    /**
     * Sets the copies of an engine hash; of one that found no room, nothing is changed. Those that
     * there is no memory to count are missing.
     */
    public void copies(long engineHash, int copies) {
        uncounted += remove.removeTo(slot, engineHash, copies);
    }

    /**
     * Removes the next of the holes; to be called until there are none.
     *
     * @param blocks so many at most
     * @return whether there are more
     */
    public boolean removeHoles(int blocks) {
        for (int left = blocks; left > 0 && removedHoles < holes; left--) {
            hole[0] = holeName(removedHoles++);
            if (lookup.position(hole[0]) == NO_POSITION) {
                evictedHoles++; // or refused; it was counted as a missing block, which it is not
            } else {
                remove.remove(slot, hole, 1, CopyRule.LAST_COPY);
            }
        }
        return removedHoles < holes;
    }

    /**
     * Ends the import: sets what the slot misses, beside what found no room here.
     *
     * @param missingBlocks as {@link PrefixIndex#missingBlocks} was where the slot was exported
     * @param turnover as {@link PrefixIndex#turnover} was there
     * @param rule as {@link PrefixIndex#removalRule} was there: until the slot's first removal here
     *     it says what is missing of a block of several copies that finds no room any more
     */
    public void end(long missingBlocks, long turnover, CopyRule rule) {
        while (removeHoles(Integer.MAX_VALUE)) {}
        tables.touch(slot);
        missing.removes(slot, rule);
        missing.restore(
                slot,
                missingBlocks,
                turnover,
                givenUp()
                        - givenUpBefore
                        - evictedHoles
                        + (rule == CopyRule.PHYSICAL ? uncounted : 0), // else removed at once
                shares.held(slot));
    }

    private long holeName(long number) {
        return firstName + number * SPREAD;
    }
}
