package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * Shows what one slot holds, one held run after the other, so that a caller can go on where it
 * stopped while events are applied in between. Writer thread only.
 */
final class SlotWalk {
    /** Answer of {@link #walk}: there is nothing more. */
    static final int END = -1;

    private static final int NO_HELD_RUN = HeldRuns.NO_HELD_RUN;

    private final RadixTree tree;
    private final HeldRuns[] heldRuns;
    private final EngineHashLookup[] lookups;
    private final long[] engineHashes = new long[RadixTree.MAX_RUN];
    private final long[] localHashes = new long[RadixTree.MAX_RUN];
    private final long[] alias = new long[1];
    private final long[] aliasHash = new long[1];

    SlotWalk(IndexTables tables) {
        this.tree = tables.tree;
        this.heldRuns = tables.heldRuns;
        this.lookups = tables.lookups;
    }

    /**
     * Shows held runs from a number on, until so many blocks were shown or so many numbers passed.
     *
     * @param from number of a held run
     * @return number to go on with, or {@link #END}
     */
    int walk(int slot, int from, int mostBlocks, HeldRunVisitor visitor) {
        final HeldRuns held = heldRuns[slot];
        int left = mostBlocks;
        for (int heldRun = from; heldRun < held.end(); heldRun++) {
            if (left <= 0) {
                return heldRun;
            }
            left -= held.isUsed(heldRun) ? 1 + show(slot, heldRun, visitor) : 1;
        }
        return END;
    }

    private int show(int slot, int heldRun, HeldRunVisitor visitor) {
        final HeldRuns held = heldRuns[slot];
        final int high = held.high(heldRun);
        int shown = 0;
        for (int at = held.next(heldRun, held.low(heldRun), high, true); at < high; ) {
            final int end = held.next(heldRun, at, high, false);
            showBlocks(slot, heldRun, at, end - at, visitor);
            shown += end - at;
            at = held.next(heldRun, end, high, true);
        }
        return shown;
    }

    /** Shows the block at a position, without further names. */
    void showBlock(int slot, int position, HeldRunVisitor visitor) {
        final HeldRuns held = heldRuns[slot];
        final int heldRun = HeldRunDescriptor.heldRun(position);
        final int arrayOffset = HeldRunDescriptor.arrayOffset(position);
        final int run = tree.segmentAt(held.run(heldRun), arrayOffset);
        engineHashes[0] = held.name(heldRun, arrayOffset);
        localHashes[0] = tree.hash(run, arrayOffset - tree.first(run));
        final int depth = tree.depth(run) + arrayOffset - tree.first(run);
        if (depth == 0) {
            visitor.run(0, 0, engineHashes, localHashes, 1);
        } else if (arrayOffset > 0 && held.holds(heldRun, arrayOffset - 1)) {
            final long parent = held.name(heldRun, arrayOffset - 1);
            visitor.run(depth, parent, engineHashes, localHashes, 1);
        } else {
            final int before = arrayOffset > 0 ? NO_HELD_RUN : holderOfEnd(slot, tree.parent(run));
            final boolean behindHole = before == NO_HELD_RUN;
            visitor.run(
                    behindHole ? HeldRunVisitor.BEHIND_HOLE : depth,
                    behindHole ? 0 : held.name(before, endOffset(tree.parent(run))),
                    engineHashes,
                    localHashes,
                    1);
        }
    }

    /** Shows consecutive blocks that are held; the one before the first of them is not. */
    private void showBlocks(
            int slot, int heldRun, int arrayOffset, int count, HeldRunVisitor visitor) {
        final HeldRuns held = heldRuns[slot];
        int segment = tree.segmentAt(held.run(heldRun), arrayOffset);
        final int first = segment;
        final int inFirst = arrayOffset - tree.first(first);
        for (int i = 0; i < count; i++) {
            final int offset = arrayOffset + i;
            segment = tree.segmentAt(segment, offset);
            localHashes[i] = tree.hash(segment, offset - tree.first(segment));
            engineHashes[i] = held.name(heldRun, offset);
        }
        int depth = tree.depth(first) + inFirst;
        long parent = 0;
        if (depth > 0) {
            final int before = inFirst > 0 ? NO_HELD_RUN : holderOfEnd(slot, tree.parent(first));
            if (before == NO_HELD_RUN) {
                depth = HeldRunVisitor.BEHIND_HOLE;
            } else {
                parent = held.name(before, endOffset(tree.parent(first)));
            }
        }
        if (lookups[slot].hasRecords()) {
            showAliases(slot, heldRun, arrayOffset, count, depth, parent, visitor);
        }
        visitor.run(depth, parent, engineHashes, localHashes, count);
    }

    /** The slot's held run that has the last block of a run; {@link #NO_HELD_RUN} if none has. */
    private int holderOfEnd(int slot, int run) {
        final int holder = tree.findHolder(run, slot);
        if (holder == RadixTree.NO_HOLDER) {
            return NO_HELD_RUN;
        }
        final int heldRun = tree.holderTag(run, holder);
        return heldRuns[slot].holds(heldRun, endOffset(run)) ? heldRun : NO_HELD_RUN;
    }

    /** Array offset of the last block of a run. */
    private int endOffset(int run) {
        return tree.first(run) + tree.length(run) - 1;
    }

    /** Further names of blocks, each as a run of its own after the block's parent. */
    private void showAliases(
            int slot,
            int heldRun,
            int arrayOffset,
            int count,
            int depth,
            long parent,
            HeldRunVisitor visitor) {
        for (int i = 0; i < count; i++) {
            final int block = i;
            final int ofAlias = depth == HeldRunVisitor.BEHIND_HOLE ? depth : depth + block;
            final long before = block == 0 ? parent : engineHashes[block - 1];
            lookups[slot].forEachOf(
                    HeldRunDescriptor.position(heldRun, arrayOffset + block),
                    (name, copies) -> {
                        if (name != engineHashes[block]) {
                            alias[0] = name;
                            aliasHash[0] = localHashes[block];
                            visitor.run(ofAlias, before, alias, aliasHash, 1);
                        }
                    });
        }
    }
}
