package io.kvasir.core.index;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.radix.RadixTree;

import java.util.ArrayDeque;
import java.util.Deque;

/** Goes through the whole tree and shows every held block. Writer thread only; allocates. */
final class BlockWalk {
    private final RadixTree tree;
    private final HeldRuns[] heldRuns;
    private final EngineHashLookup[] lookups;
    private final BlockVisitor visitor;

    /** A run still to be shown, with the sequence hash of the block before it. */
    private record Step(int run, long sequenceHash) {}

    BlockWalk(IndexTables tables, BlockVisitor visitor) {
        this.tree = tables.tree;
        this.heldRuns = tables.heldRuns;
        this.lookups = tables.lookups;
        this.visitor = visitor;
    }

    void walk() {
        final Deque<Step> open = new ArrayDeque<>();
        open.push(new Step(tree.root(), 0));
        while (!open.isEmpty()) {
            final Step step = open.pop();
            long sequenceHash = step.sequenceHash;
            for (int b = 0; b < tree.length(step.run); b++) {
                final long localHash = tree.hash(step.run, b);
                sequenceHash =
                        tree.depth(step.run) + b == 0
                                ? localHash
                                : BlockHasher.nextSequenceHash(sequenceHash, localHash);
                showHolders(step.run, b, sequenceHash);
            }
            for (int child : tree.children(step.run)) {
                open.push(new Step(child, sequenceHash));
            }
        }
    }

    private void showHolders(int run, int block, long sequenceHash) {
        final int arrayOffset = tree.first(run) + block;
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int slot = tree.holderSlot(run, holder);
            final int heldRun = tree.holderTag(run, holder);
            if (heldRuns[slot].holds(heldRun, arrayOffset)) {
                final int position = HeldRunDescriptor.position(heldRun, arrayOffset);
                lookups[slot].forEachOf(
                        position,
                        (engineHash, copies) ->
                                visitor.block(slot, engineHash, sequenceHash, copies));
            }
        }
    }
}
