package io.kvasir.core.slots;

import static io.kvasir.core.memory.EntryChains.NONE;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.BlockTable;
import io.kvasir.core.index.OverlapScores;
import io.kvasir.core.index.PairTable;
import io.kvasir.core.memory.OffHeap;

/**
 * Prompt blocks in use by running requests, counted by (worker slot, block), each with a link to
 * the block before it.
 *
 * <p>A request that uses a block uses everything before it. So a request is named by its last pair,
 * whatever its length; a slot that does not use a block uses none behind it; and a count falls to
 * zero from the end of a path to its start. One writer thread; {@link #match} is for any thread.
 */
final class ActiveBlocks implements AutoCloseable {
    private final BlockTable blocks;
    private final PairTable pairs;
    private final OffHeap pairBefore;

    // answers of the last follow()
    private int tail;
    private int shared;
    private long sequenceHash;

    ActiveBlocks(int workerSlots, long maxActiveBlocks) {
        this.blocks = new BlockTable("maxActiveBlocks", workerSlots, maxActiveBlocks);
        this.pairs = new PairTable("maxActiveBlocks", maxActiveBlocks);
        this.pairBefore = OffHeap.allocate((maxActiveBlocks + 1) * Integer.BYTES);
    }

    /**
     * Finds the part of a prompt that requests of the slot use already.
     *
     * @return how many leading blocks that is; {@link #tail()} is the last one's pair
     */
    int follow(int slot, long[] localHashes, int count) {
        tail = NONE;
        sequenceHash = 0;
        shared = 0;
        while (shared < count) {
            final long next = sequenceHashBehind(localHashes, shared);
            final int block = blocks.find(next);
            final int pair = block == NONE ? NONE : pairs.find(slot, block);
            // another block before it: two prefixes with one hash; the path ends here
            if (pair == NONE || before(pair) != tail) {
                break;
            }
            sequenceHash = next;
            tail = pair;
            shared++;
        }
        return shared;
    }

    /**
     * Adds one use to every block followed by the last {@link #follow} and to those behind them.
     * The caller made sure that {@code count - shared} pairs are free.
     *
     * @return how many leading blocks are followed now: {@code count}, or less where the hash of a
     *     prefix is taken by another one
     */
    int use(int slot, long[] localHashes, int count) {
        for (int pair = tail; pair != NONE; pair = before(pair)) {
            pairs.increment(pair);
        }
        int used = shared;
        while (used < count) {
            sequenceHash = sequenceHashBehind(localHashes, used);
            if (!extend(slot)) {
                break;
            }
            used++;
        }
        return used;
    }

    private boolean extend(int slot) {
        int block = blocks.find(sequenceHash);
        if (block == NONE) {
            block = blocks.insert(sequenceHash);
        } else if (pairs.find(slot, block) != NONE) {
            return false;
        }
        final int pair = pairs.insert(slot, block);
        assert block != NONE && pair != NONE : "no free pair; the booking must check first";
        pairBefore.putInt((long) pair * Integer.BYTES, tail);
        blocks.addHolder(block, slot);
        tail = pair;
        return true;
    }

    /** Pair of the last block followed or used; names the whole path. */
    int tail() {
        return tail;
    }

    /**
     * Takes one use from every block of a path.
     *
     * @param last the path's last pair
     * @return how many blocks the slot does not use any more
     */
    int leave(int slot, int last) {
        int freed = 0;
        int pair = last;
        while (pair != NONE) {
            final int before = before(pair);
            final int block = pairs.block(pair);
            if (pairs.decrement(pair) == 0) {
                blocks.removeHolder(block, slot);
                freed++;
            }
            pair = before;
        }
        return freed;
    }

    int match(long[] localHashes, int count, OverlapScores out) {
        return blocks.match(localHashes, count, out);
    }

    int used() {
        return pairs.used();
    }

    int free() {
        return pairs.free();
    }

    long bytes() {
        return blocks.bytes() + pairs.bytes() + pairBefore.length();
    }

    @Override
    public void close() {
        blocks.close();
        pairs.close();
        pairBefore.close();
    }

    private long sequenceHashBehind(long[] localHashes, int position) {
        return position == 0
                ? localHashes[0]
                : BlockHasher.nextSequenceHash(sequenceHash, localHashes[position]);
    }

    private int before(int pair) {
        return pairBefore.getInt((long) pair * Integer.BYTES);
    }
}
