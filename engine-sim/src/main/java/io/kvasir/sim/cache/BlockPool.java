package io.kvasir.sim.cache;

import java.util.Arrays;
import java.util.function.LongConsumer;

/**
 * The blocks of one rank: their users, which hash they carry, and which is evicted next.
 *
 * <p>A block is free when no request uses it; a free block keeps its hash and can be hit until it
 * is taken for something else. Free blocks form a queue: blocks are taken from its head, cached
 * blocks that become free go to its tail, uncached ones to its head. One hash may be carried by
 * several blocks (copies); the oldest copy is the one that is hit. Owned by the thread of the step
 * loop.
 */
public final class BlockPool {
    private static final int NONE = -1;

    private final int blocks;
    private final LongConsumer evicted;

    // free queue: circular, entry `blocks` is the sentinel; next = NONE marks a block in use
    private final int[] next;
    private final int[] previous;
    private int freeBlocks;

    private final int[] references;
    private final boolean[] cached;
    private final long[] hashes;
    private int cachedBlocks;

    // blocks of one hash: circular in order of caching; the map holds the oldest
    private final LongIntMap oldestCopy;
    private final int[] nextCopy;
    private final int[] previousCopy;

    /**
     * Makes a pool in which all blocks are free and none is cached.
     *
     * @param evicted called with the hash of each cached block at the moment it is taken for
     *     something else
     */
    public BlockPool(int blocks, LongConsumer evicted) {
        this.blocks = blocks;
        this.evicted = evicted;
        this.next = new int[blocks + 1];
        this.previous = new int[blocks + 1];
        for (int i = 0; i <= blocks; i++) {
            next[i] = i == blocks ? 0 : i + 1;
            previous[i] = i == 0 ? blocks : i - 1;
        }
        this.freeBlocks = blocks;
        this.references = new int[blocks];
        this.cached = new boolean[blocks];
        this.hashes = new long[blocks];
        this.oldestCopy = new LongIntMap(blocks);
        this.nextCopy = new int[blocks];
        this.previousCopy = new int[blocks];
    }

    /** Size of the pool. */
    public int blocks() {
        return blocks;
    }

    /** Blocks that no request uses, cached or not. */
    public int freeBlocks() {
        return freeBlocks;
    }

    /** Blocks that carry a hash, copies included. */
    public int cachedBlocks() {
        return cachedBlocks;
    }

    /** Different hashes among the cached blocks. */
    public int distinctHashes() {
        return oldestCopy.size();
    }

    /**
     * Finds the leading blocks of a chain that are cached; changes nothing.
     *
     * @param chain hashes in order
     * @param most look at this many at most
     * @param out receives the blocks found
     * @return how many were found
     */
    public int lookup(long[] chain, int most, int[] out) {
        int found = 0;
        while (found < most) {
            final int block = oldestCopy.get(chain[found]);
            if (block == LongIntMap.ABSENT) {
                break;
            }
            out[found++] = block;
        }
        return found;
    }

    /** Counts the blocks that are free now and would cease to be when used. */
    public int countFree(int[] candidates, int count) {
        int free = 0;
        for (int i = 0; i < count; i++) {
            if (references[candidates[i]] == 0) {
                free++;
            }
        }
        return free;
    }

    /** Uses cached blocks once more each. */
    public void use(int[] hit, int count) {
        for (int i = 0; i < count; i++) {
            if (references[hit[i]]++ == 0) {
                unlink(hit[i]);
            }
        }
    }

    /**
     * Takes blocks from the head of the free queue, evicting what they cached.
     *
     * @throws IllegalStateException when fewer than {@code count} are free; the caller checks first
     */
    public void take(int count, int[] out, int at) {
        if (count > freeBlocks) {
            throw new IllegalStateException("blocks wanted=" + count + ", free=" + freeBlocks);
        }
        for (int i = 0; i < count; i++) {
            final int block = next[blocks];
            unlink(block);
            if (cached[block]) {
                uncache(block);
                evicted.accept(hashes[block]);
            }
            assert references[block] == 0 : "free block in use: " + block;
            references[block] = 1;
            out[at + i] = block;
        }
    }

    /** Gives a used block a hash, so that it can be hit. */
    public void cache(int block, long hash) {
        assert references[block] > 0 && !cached[block] : "block is free or cached: " + block;
        cached[block] = true;
        hashes[block] = hash;
        cachedBlocks++;
        final int oldest = oldestCopy.get(hash);
        if (oldest == LongIntMap.ABSENT) {
            nextCopy[block] = block;
            previousCopy[block] = block;
            oldestCopy.put(hash, block);
        } else {
            final int newest = previousCopy[oldest];
            nextCopy[newest] = block;
            previousCopy[block] = newest;
            nextCopy[block] = oldest;
            previousCopy[oldest] = block;
        }
    }

    /** Gives back a request's blocks, the deepest first, so that it is evicted first. */
    public void release(int[] used, int count) {
        int lastUncached = blocks;
        for (int i = count - 1; i >= 0; i--) {
            final int block = used[i];
            assert references[block] > 0 : "block is free: " + block;
            if (--references[block] > 0) {
                continue;
            }
            if (cached[block]) {
                linkAfter(previous[blocks], block);
            } else {
                linkAfter(lastUncached, block);
                lastUncached = block;
            }
        }
    }

    /**
     * Forgets all hashes; the free queue keeps its order.
     *
     * @return false when a request uses a block: then nothing changes
     */
    public boolean reset() {
        if (freeBlocks != blocks) {
            return false;
        }
        Arrays.fill(cached, false);
        cachedBlocks = 0;
        oldestCopy.clear();
        return true;
    }

    /** Visits every cached block; a hash comes once per copy. */
    public void forEachCached(LongConsumer visitor) {
        for (int i = 0; i < blocks; i++) {
            if (cached[i]) {
                visitor.accept(hashes[i]);
            }
        }
    }

    /** Visits the hashes that taking some blocks would evict, in that order; changes nothing. */
    public void forEachNextEvicted(int count, LongConsumer visitor) {
        int block = next[blocks];
        for (int i = 0; i < count && block != blocks; i++) {
            if (cached[block]) {
                visitor.accept(hashes[block]);
            }
            block = next[block];
        }
    }

    private void uncache(int block) {
        cached[block] = false;
        cachedBlocks--;
        final long hash = hashes[block];
        final int following = nextCopy[block];
        if (following == block) {
            oldestCopy.remove(hash);
            return;
        }
        nextCopy[previousCopy[block]] = following;
        previousCopy[following] = previousCopy[block];
        if (oldestCopy.get(hash) == block) {
            oldestCopy.put(hash, following);
        }
    }

    private void unlink(int block) {
        assert next[block] != NONE : "block is not in the free queue: " + block;
        next[previous[block]] = next[block];
        previous[next[block]] = previous[block];
        next[block] = NONE;
        freeBlocks--;
    }

    private void linkAfter(int entry, int block) {
        next[block] = next[entry];
        previous[block] = entry;
        previous[next[entry]] = block;
        next[entry] = block;
        freeBlocks++;
    }
}
