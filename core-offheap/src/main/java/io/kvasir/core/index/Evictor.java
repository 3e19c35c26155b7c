package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NO_HELD_RUN;

import io.kvasir.core.radix.RadixTree;

import java.util.Arrays;
import java.util.BitSet;

/**
 * Gives up the blocks that a worker slot has stored longest ago, the deepest blocks of a prompt
 * first. Writer thread only. Needs no memory.
 *
 * <p>A hand of each slot goes round its held runs and passes over those that were stored into since
 * it came by last (second chance), and those that others go on from. Where it has emptied one, it
 * continues with the one above: so a prompt goes from its end to its beginning. After a hole in a
 * prompt, which only its engine can make, the two parts are prompts of their own.
 */
final class Evictor {
    /** Most engine hashes of one call. */
    static final int MOST = EngineHashIndex.Batch.LENGTH;

    /** HeldRuns that the hand passes over, beside one for each block wanted, because of age. */
    private static final int CHANCES = 16;

    /** HeldRuns that the hand passes over at most. */
    private static final int SEARCH = 1024;

    private final RadixTree tree;
    private final HolderConsistency holders;
    private final HeldRuns[] slots;
    private final EngineHashLookup[] slotNames;
    private final int[] hands;

    /** Held run to go on with, of each slot. */
    private final int[] found;

    private final long[] evicted = new long[MOST];
    private int copies;
    private long steps;

    Evictor(
            RadixTree tree,
            HolderConsistency holders,
            HeldRuns[] slots,
            EngineHashLookup[] slotNames) {
        this.tree = tree;
        this.holders = holders;
        this.slots = slots;
        this.slotNames = slotNames;
        this.hands = new int[slots.length];
        this.found = new int[slots.length];
        Arrays.fill(found, NO_HELD_RUN);
    }

    /** HeldRuns looked at and engine hashes given up so far; for tests of what an event costs. */
    long steps() {
        return steps;
    }

    /** The engine hashes that the last call has given up. */
    long[] evicted() {
        return evicted;
    }

    /** The copies that these engine hashes had, all together. */
    int copies() {
        return copies;
    }

    /**
     * Gives up blocks of one held run.
     *
     * @param slot slot to choose from
     * @param kept its held runs that stay
     * @param most engine hashes wanted
     * @return how many were given up, at most {@link #MOST}; 0 when none was found
     */
    int evict(int slot, BitSet kept, int most) {
        final int heldRun = choose(slot, kept, most);
        if (heldRun == NO_HELD_RUN) {
            return 0;
        }
        final HeldRuns mine = slots[slot];
        final int above = mine.above(heldRun);
        final int count = evictFrom(slot, heldRun, Math.min(most, MOST));
        found[slot] = mine.isUsed(heldRun) ? heldRun : above;
        steps += count;
        return count;
    }

    private int choose(int slot, BitSet kept, int most) {
        final HeldRuns mine = slots[slot];
        final int going = found[slot];
        if (going != NO_HELD_RUN
                && !kept.get(going)
                && mine.isUsed(going)
                && !mine.isStored(going)
                && keptBelow(slot, going) < mine.high(going)) {
            return going;
        }
        int chances = CHANCES + most;
        for (int left = Math.min(SEARCH, 2 * mine.end()); left > 0; left--) {
            final int heldRun = hands[slot] < mine.end() ? hands[slot] : 0;
            hands[slot] = heldRun + 1;
            steps++;
            if (!mine.isUsed(heldRun) || kept.get(heldRun)) {
                continue;
            }
            final boolean recent = mine.isStored(heldRun);
            mine.look(heldRun);
            if (keptBelow(slot, heldRun) == mine.high(heldRun)) {
                continue;
            }
            if (!recent || chances == 0) {
                return heldRun;
            }
            chances--;
        }
        return NO_HELD_RUN;
    }

    /** Blocks of a held run below this one stay: other held runs go on from there. */
    private int keptBelow(int slot, int heldRun) {
        final HeldRuns mine = slots[slot];
        if (mine.below(heldRun) == 0) {
            return 0;
        }
        final int last = tree.segmentAt(mine.run(heldRun), mine.high(heldRun) - 1);
        return tree.childCount(last) == 0 ? tree.first(last) : mine.high(heldRun);
    }

    private int evictFrom(int slot, int heldRun, int most) {
        final HeldRuns mine = slots[slot];
        final EngineHashLookup names = slotNames[slot];
        final int low = Math.max(mine.low(heldRun), keptBelow(slot, heldRun));
        if (mine.isSolid(heldRun) && !names.hasRecords()) {
            final int last = mine.high(heldRun) - 1;
            final int count = Math.min(most, last + 1 - low);
            for (int i = 0; i < count; i++) {
                evicted[i] = mine.name(heldRun, last - i);
            }
            names.remove(evicted, 0, count, HeldRunDescriptor.position(heldRun, last), -1);
            holders.letGoLast(slot, heldRun, count);
            copies = count;
            return count;
        }
        int count = 0;
        copies = 0;
        while (count < most && mine.isUsed(heldRun) && mine.high(heldRun) > low) {
            final int last = mine.high(heldRun) - 1;
            final long name = mine.name(heldRun, last);
            evicted[count++] = name;
            copies += names.copies(name);
            if (!names.remove(name)) {
                holders.letGoOne(slot, heldRun, last);
            }
        }
        return count;
    }
}
