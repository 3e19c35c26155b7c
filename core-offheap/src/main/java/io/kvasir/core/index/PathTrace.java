package io.kvasir.core.index;

import io.kvasir.core.radix.RadixTree;

/**
 * Where the blocks of a store are in the tree, as far as they are there. Changes nothing; keeps its
 * arrays between calls, as long as the longest store seen. Writer thread only.
 */
final class PathTrace {
    private final RadixTree tree;
    private int[] runs = {};
    private int[] offsets = {};
    private int length;

    PathTrace(RadixTree tree) {
        this.tree = tree;
    }

    /** Follows local hashes from an offset of a run; {@link #length} says how far. */
    void follow(int fromRun, int fromOffset, long[] localHashes, int count) {
        if (runs.length < count) {
            runs = new int[count];
            offsets = new int[count];
        }
        int run = fromRun;
        int offset = fromOffset;
        length = 0;
        while (length < count) {
            if (offset == tree.length(run)) {
                run = tree.child(run, localHashes[length]);
                offset = 0;
                if (run == RadixTree.NO_RUN) {
                    break;
                }
            }
            if (tree.hash(run, offset) != localHashes[length]) {
                break;
            }
            runs[length] = run;
            offsets[length++] = offset++;
        }
    }

    /** Blocks found, the first ones of the store. */
    int length() {
        return length;
    }

    /** Run of block {@code i}, less than {@link #length}. */
    int run(int i) {
        return runs[i];
    }

    /** Offset of block {@code i} in its run. */
    int offset(int i) {
        return offsets[i];
    }
}
