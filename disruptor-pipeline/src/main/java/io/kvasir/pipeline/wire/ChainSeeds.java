package io.kvasir.pipeline.wire;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.StorageTier;

/**
 * Remembers under which seed the blocks of a salted chain are hashed: engine hash → seed, for every
 * block that the engine holds and for those that it has removed last.
 *
 * <p>The engine holds a block until each copy that it has stored is removed, in every tier, by the
 * batches that are {@link #follow followed}. The index counts in the same way, so it has no block
 * of a salted chain whose seed is forgotten, unless there was no room here ({@link #put}). Removed
 * ones are in two generations: when the young one is full it becomes the old one and the old one is
 * forgotten; what is asked for stays. They are for a slot that is restored: its message is before
 * some removals, and the copies of its blocks are not counted here.
 *
 * <p>Unsalted chains are never entered. Engine hashes are content hashes of the chain, salt
 * included, so an entry that outlives its block is harmless. One thread.
 */
final class ChainSeeds {
    private static final int COPY = 1 << 4; // holders: copies on the device, a bit for other tiers
    private static final int LOWER_TIERS = COPY - 1;
    private static final int MOST_COPIES = 1 << 20;

    private final int mostHeld;
    private final int mostRemovedPerGeneration;
    private SeedTable held = new SeedTable();
    private SeedTable young = new SeedTable(); // removed
    private SeedTable old = new SeedTable();
    private long[] names = new long[64];

    /**
     * @param mostHeld most blocks remembered that the engine holds
     * @param mostRemoved most removed blocks remembered; half of them are surely kept
     */
    ChainSeeds(int mostHeld, int mostRemoved) {
        if (mostHeld < 1 || mostRemoved < 2) {
            throw new IllegalArgumentException(
                    "too few blocks: mostHeld="
                            + mostHeld
                            + " must be 1 or more, mostRemoved="
                            + mostRemoved
                            + " 2 or more");
        }
        this.mostHeld = mostHeld;
        this.mostRemovedPerGeneration = mostRemoved / 2;
    }

    /** Seed of the chain of a block, {@code absent} if it is not a known salted one. */
    long get(long engineHash, long absent) {
        final int at = held.find(engineHash);
        if (at >= 0) {
            return held.seed(at);
        }
        final int removed = young.find(engineHash);
        if (removed >= 0) {
            return young.seed(removed);
        }
        final int longAgo = old.find(engineHash);
        if (longAgo < 0) {
            return absent;
        }
        final long seed = old.seed(longAgo);
        putRemoved(engineHash, seed);
        return seed;
    }

    /**
     * Remembers the seed of a block that is stored.
     *
     * @return false if there is no room for it
     */
    boolean put(long engineHash, long seed) {
        if (held.size() >= mostHeld && held.find(engineHash) < 0) {
            return false;
        }
        held.put(engineHash, seed);
        return true;
    }

    private void putRemoved(long engineHash, long seed) {
        if (young.size() >= mostRemovedPerGeneration) {
            old = young;
            young = new SeedTable();
        }
        young.put(engineHash, seed);
    }

    /** Whether there is room for none more that the engine holds. */
    boolean isFull() {
        return held.size() >= mostHeld;
    }

    /** Whether nothing is remembered. */
    boolean isEmpty() {
        return held.size() == 0 && young.size() == 0 && old.size() == 0;
    }

    /** Follows what a batch, which the index gets, says of blocks that are remembered. */
    void follow(KvBatch batch) {
        for (int at = batch.first(); at >= 0 && held.size() > 0; at = batch.next(at)) {
            switch (batch.kind(at)) {
                case STORED, NAMED, REMOVED -> followNames(batch, at);
                case REMOVED_TO -> followCopies(batch.engineHash(at), batch.count(at));
                case CLEARED, TIER_CLEARED, REFILL -> {} // clear() came before
            }
        }
    }

    private void followNames(KvBatch batch, int at) {
        final int count = batch.count(at);
        if (names.length < count) {
            names = new long[count];
        }
        batch.engineHashes(at, names);
        for (int i = 0; i < count; i++) {
            final int block = held.find(names[i]);
            if (block >= 0) {
                final int before = held.holders(block);
                hold(
                        names[i],
                        block,
                        batch.kind(at) == KvBatch.Kind.REMOVED
                                ? removed(before, batch.tier(at), batch.copyRule())
                                : stored(before, batch, at));
            }
        }
    }

    private void followCopies(long engineHash, int copies) {
        final int block = held.find(engineHash);
        if (block >= 0) {
            final int lower = held.holders(block) & LOWER_TIERS;
            hold(engineHash, block, lower + COPY * Math.min(copies, MOST_COPIES));
        }
    }

    private static int stored(int holders, KvBatch batch, int at) {
        if (batch.tier(at) != StorageTier.DEVICE) {
            return holders | 1 << batch.tier(at).number();
        }
        return batch.isReport(at) && holders >= COPY ? holders : holders + COPY;
    }

    private static int removed(int holders, StorageTier tier, CopyRule rule) {
        if (tier != StorageTier.DEVICE) {
            return holders & ~(1 << tier.number());
        }
        return rule == CopyRule.LAST_COPY || holders < COPY
                ? holders & LOWER_TIERS
                : holders - COPY;
    }

    private void hold(long engineHash, int block, int holders) {
        if (holders == 0) {
            putRemoved(engineHash, held.seed(block));
            held.remove(block);
        } else {
            held.holders(block, holders);
        }
    }

    /** All that is remembered, for {@link #recall}: removed blocks first, each of them twice. */
    long[] toArray() {
        final long[] pairs = new long[2 * (2 * old.size() + 2 * young.size() + held.size())];
        held.collect(pairs, young.collect(pairs, old.collect(pairs, 0, 2), 2), 1);
        return pairs;
    }

    /**
     * Remembers what another one has remembered.
     *
     * @param pairs engine hash and seed in turn; that of a removed block twice
     */
    void recall(long[] pairs) {
        for (int i = 0; i < pairs.length; i += 2) {
            final int block = held.find(pairs[i]);
            if (block < 0) {
                put(pairs[i], pairs[i + 1]);
            } else {
                hold(pairs[i], block, 0);
            }
        }
    }

    void clear() {
        held = new SeedTable();
        young = new SeedTable();
        old = new SeedTable();
    }
}
