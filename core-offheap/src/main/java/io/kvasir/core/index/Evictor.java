package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NONE;

import io.kvasir.core.radix.RadixTree;

import java.util.Arrays;

/**
 * Gives up the blocks that a worker slot has stored longest ago, the deepest blocks of a prompt
 * first. Writer thread only. Needs no memory.
 *
 * <p>A hand of each slot goes round its holdings and passes over those that were stored into since
 * it came by last (second chance), and those that others go on from. Where it has emptied one, it
 * goes on with the one above: so a prompt goes from its end to its beginning. After a hole in a
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
    private final HolderConsistency covers;
    private final HeldRuns[] slots;
    private final EngineHashLookup[] slotNames;
    private final int[] hands;

    /** Holding to go on with, of each slot. */
    private final int[] found;

    private final long[] evicted = new long[MOST];
    private long steps;

    Evictor(
            RadixTree tree,
            HolderConsistency covers,
            HeldRuns[] slots,
            EngineHashLookup[] slotNames) {
        this.tree = tree;
        this.covers = covers;
        this.slots = slots;
        this.slotNames = slotNames;
        this.hands = new int[slots.length];
        this.found = new int[slots.length];
        Arrays.fill(found, NONE);
    }

    /** HeldRuns looked at and engine hashes given up so far; for tests of what an event costs. */
    long steps() {
        return steps;
    }

    /** The engine hashes that the last call has given up. */
    long[] evicted() {
        return evicted;
    }

    /**
     * Gives up blocks of one holding.
     *
     * @param slot slot to choose from
     * @param kept its holding that stays, or {@link HeldRuns#NONE}
     * @param most engine hashes wanted
     * @return how many were given up, at most {@link #MOST}; 0 when none was found
     */
    int evict(int slot, int kept, int most) {
        final int holding = choose(slot, kept, most);
        if (holding == NONE) {
            return 0;
        }
        final HeldRuns mine = slots[slot];
        final int above = mine.above(holding);
        final int count = evictFrom(slot, holding, Math.min(most, MOST));
        found[slot] = mine.isUsed(holding) ? holding : above;
        steps += count;
        return count;
    }

    private int choose(int slot, int kept, int most) {
        final HeldRuns mine = slots[slot];
        final int going = found[slot];
        if (going != NONE
                && going != kept
                && mine.isUsed(going)
                && !mine.isStored(going)
                && keptBelow(slot, going) < mine.high(going)) {
            return going;
        }
        int chances = CHANCES + most;
        for (int left = Math.min(SEARCH, 2 * mine.end()); left > 0; left--) {
            final int holding = hands[slot] < mine.end() ? hands[slot] : 0;
            hands[slot] = holding + 1;
            steps++;
            if (!mine.isUsed(holding) || holding == kept) {
                continue;
            }
            final boolean recent = mine.isStored(holding);
            mine.look(holding);
            if (keptBelow(slot, holding) == mine.high(holding)) {
                continue;
            }
            if (!recent || chances == 0) {
                return holding;
            }
            chances--;
        }
        return NONE;
    }

    /** Places of a holding below this one stay: other holdings go on from there. */
    private int keptBelow(int slot, int holding) {
        final HeldRuns mine = slots[slot];
        if (mine.below(holding) == 0) {
            return 0;
        }
        final int last = tree.pieceAt(mine.run(holding), mine.high(holding) - 1);
        return tree.childCount(last) == 0 ? tree.first(last) : mine.high(holding);
    }

    private int evictFrom(int slot, int holding, int most) {
        final HeldRuns mine = slots[slot];
        final EngineHashLookup names = slotNames[slot];
        final int low = Math.max(mine.low(holding), keptBelow(slot, holding));
        if (mine.isSolid(holding) && !names.hasRecords()) {
            final int last = mine.high(holding) - 1;
            final int count = Math.min(most, last + 1 - low);
            for (int i = 0; i < count; i++) {
                evicted[i] = mine.name(holding, last - i);
            }
            names.remove(evicted, 0, count, HeldRunDescriptor.position(holding, last), -1);
            covers.letGoLast(slot, holding, count);
            return count;
        }
        int count = 0;
        while (count < most && mine.isUsed(holding) && mine.high(holding) > low) {
            final int last = mine.high(holding) - 1;
            final long name = mine.name(holding, last);
            evicted[count++] = name;
            if (!names.remove(name)) {
                covers.letGoOne(slot, holding, last);
            }
        }
        return count;
    }
}
