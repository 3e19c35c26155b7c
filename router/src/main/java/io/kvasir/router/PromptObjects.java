package io.kvasir.router;

import io.kvasir.core.hash.MultimodalHasher;

import java.util.Arrays;

/**
 * The multimodal objects of one prompt: by which hash each counts and which of the prompt's tokens
 * stand for it. Owned by a request; allocates nothing once its arrays have grown.
 */
final class PromptObjects {
    private final MultimodalHasher hasher = new MultimodalHasher();
    private long[] hashes = new long[4]; // by offset, lowest first
    private int[] offsets = new int[4];
    private int[] ends = new int[4];
    private int count;
    private long[] ofBlock = new long[4];

    void clear() {
        count = 0;
    }

    /** Adds an object; fast where they come by ascending offset. */
    void add(long hash, int offset, int length) {
        if (offset < 0 || length < 1 || offset > Integer.MAX_VALUE - length) {
            throw new IllegalArgumentException(
                    "an object stands for one token or more of the prompt: offset="
                            + offset
                            + ", length="
                            + length);
        }
        if (count == hashes.length) {
            hashes = Arrays.copyOf(hashes, 2 * count);
            offsets = Arrays.copyOf(offsets, 2 * count);
            ends = Arrays.copyOf(ends, 2 * count);
            ofBlock = new long[2 * count];
        }
        int at = count++;
        for (; at > 0 && offsets[at - 1] > offset; at--) {
            hashes[at] = hashes[at - 1];
            offsets[at] = offsets[at - 1];
            ends[at] = ends[at - 1];
        }
        hashes[at] = hash;
        offsets[at] = offset;
        ends[at] = offset + length;
    }

    /**
     * Replaces the local hashes of the blocks that objects reach into, up to the end of what is
     * hashed of each.
     *
     * @param blocks local hashes of the prompt's blocks, [blockCount], as if it had no objects
     * @param window tokens that are hashed of each block, from its first one on
     */
    void mixInto(
            long[] blocks, int blockCount, int[] tokens, int blockSize, int window, long seed) {
        int first = 0; // objects before it end before the block
        for (int block = firstBlock(blockSize, window);
                block < blockCount && first < count;
                block++) {
            final int start = block * blockSize;
            while (first < count && ends[first] <= start) {
                first++;
            }
            final int found = objectsWithin(first, start, start + window);
            if (found > 0) {
                blocks[block] = hasher.localHash(tokens, start, window, seed, ofBlock, 0, found);
            }
        }
    }

    private int firstBlock(int blockSize, int window) {
        return count == 0 ? 0 : Math.max(0, offsets[0] - (window - blockSize)) / blockSize;
    }

    private int objectsWithin(int first, int start, int end) {
        int found = 0;
        for (int i = first; i < count && offsets[i] < end; i++) {
            if (ends[i] > start) {
                ofBlock[found++] = hashes[i];
            }
        }
        return found;
    }
}
