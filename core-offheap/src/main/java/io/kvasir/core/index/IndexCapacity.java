package io.kvasir.core.index;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.WriterCounter;

/**
 * The limits of an index: says what fits, evicts for a store where that is the {@link
 * CapacityRule}, and counts and reports what was given up. Written by the writer thread; the
 * methods that say so are for any thread.
 */
final class IndexCapacity {
    /**
     * Lines that a store finds free beside one for each of its blocks, where blocks are evicted.
     */
    private static final int FREE_LINES = 64;

    /** The part of the arena that this is at most. */
    private static final int FREE_PART = 16;

    /** Order of the largest contiguous block that a store needs: a chunk of names. */
    private static final int LARGEST_ORDER =
            BuddyArena.orderFor((long) HeldRunDescriptor.NAMES_PER_CHUNK * Long.BYTES);

    /** Part of each limit that is to be left when missing blocks are stored again. */
    private static final int ROOM_LEFT = 10;

    /** Bytes that a missing block may need. */
    private static final int ROOM_PER_BLOCK = 64;

    private static final int NO_SLOT = SlotShares.NO_SLOT;

    /** Slots that are asked for something to evict. */
    private static final int MOST_SLOTS = 16;

    private final PrefixIndexConfig config;
    private final IndexTables tables;
    private final BuddyArena arena;
    private final HolderConsistency holders;
    private final SlotShares shares;
    private final MissingBlocks missing;
    private final Evictor evictor;
    private final WriterCounter evictedBlocks = new WriterCounter();
    private final WriterCounter forgottenBlocks = new WriterCounter();
    private final long[] forgotten = new long[1];
    private int pinned = NO_SLOT;
    private EvictionListener listener = EvictionListener.NONE;

    IndexCapacity(PrefixIndexConfig config, IndexTables tables) {
        this.config = config;
        this.tables = tables;
        this.arena = tables.arena;
        this.holders = tables.holders;
        this.shares = tables.shares;
        this.missing = tables.missing;
        this.evictor = new Evictor(tables.tree, tables.holders, tables.heldRuns, tables.lookups);
    }

    void onEviction(EvictionListener evictionListener) {
        listener = evictionListener;
    }

    /** Whether blocks are evicted for a store that does not fit. */
    boolean evicts() {
        return config.capacityRule() == CapacityRule.EVICT;
    }

    /** Whether a store may ever fit: whether an empty index would have room for it. */
    boolean couldFit(int engineHashes, int blocks) {
        return engineHashes <= config.maxHeldBlocks() && blocks <= config.maxBlocks();
    }

    /**
     * Whether so much more fits into the limits.
     *
     * @param pending engine hashes that the operation under way has added and not yet published
     */
    boolean fits(int engineHashes, int blocks, int pending) {
        return shares.total() + pending + engineHashes <= config.maxHeldBlocks()
                && holders.blocks() + blocks <= config.maxBlocks();
    }

    /**
     * Whether there are lines from which a store of so many blocks takes what it needs, and enough
     * of them contiguous, without which a fragmented arena would refuse it.
     */
    boolean hasFreeLines(int blocks) {
        final int most = arena.capacityLines() / FREE_PART;
        return arena.capacityLines() - arena.usedLines() >= Math.min(FREE_LINES + blocks, most)
                && (most < 1 << LARGEST_ORDER || arena.hasFree(LARGEST_ORDER));
    }

    /** Blocks to evict at a time for the limit that is furthest away. */
    int excess(int engineHashes, int blocks, int pending) {
        final long names = shares.total() + pending + engineHashes - config.maxHeldBlocks();
        final long more = holders.blocks() + blocks - config.maxBlocks();
        return (int) Math.max(1, Math.min(Evictor.MOST, Math.max(names, more)));
    }

    /**
     * Evicts blocks of one held run of the slot that holds most, or, where that one has nothing to
     * give up, of one of those that hold most after it. Nothing of a slot that is pinned.
     *
     * @param slot slot that stores: chosen if it holds about as much
     * @param kept what stays
     * @param most engine hashes wanted
     * @return how many were evicted; 0 when none was found
     */
    int evict(int slot, KeptRuns kept, int most) {
        final int first = shares.largest(slot);
        int evicted = evictFrom(first, kept, most);
        int other = shares.first();
        for (int left = MOST_SLOTS; evicted == 0 && other != NO_SLOT && left > 0; left--) {
            if (other != first) {
                evicted = evictFrom(other, kept, most);
            }
            other = shares.after(other);
        }
        return evicted;
    }

    private int evictFrom(int victim, KeptRuns kept, int most) {
        if (victim == pinned) {
            return 0;
        }
        tables.touch(victim);
        final int evicted = evictor.evict(victim, kept.of(victim), most);
        if (evicted > 0) {
            shares.add(victim, -evicted);
            givenUp(victim, evictor.evicted(), evicted, evictor.copies());
        }
        return evicted;
    }

    /** Keeps a slot as it is until {@link #unpin}: nothing is evicted from it. */
    void pin(int slot) {
        if (pinned != NO_SLOT) {
            throw new IllegalStateException(
                    "slot " + pinned + " is being exported; close that export before another");
        }
        pinned = slot;
    }

    void unpin() {
        pinned = NO_SLOT;
    }

    /**
     * Counts and reports an engine hash released because there was no memory for a hole.
     *
     * @param copies that it had
     */
    void forgot(int slot, long engineHash, int copies) {
        forgotten[0] = engineHash;
        forgottenBlocks.add(1);
        givenUp(slot, forgotten, 1, copies);
    }

    private void givenUp(int slot, long[] engineHashes, int count, int copies) {
        missing.evicted(slot, count, copies, shares.held(slot));
        evictedBlocks.add(count);
        listener.evicted(slot, engineHashes, count);
    }

    /**
     * Engine hashes that fit for each slot when all that hold something want as much; any thread.
     */
    long share() {
        return config.maxHeldBlocks() / Math.max(1, shares.holders());
    }

    /** Whether so many missing blocks would fit, with a part of each limit left; any thread. */
    boolean hasRoom(long blocks) {
        return shares.total() + blocks <= part(config.maxHeldBlocks())
                && holders.blocks() + blocks <= part(config.maxBlocks())
                && usedBytes() + blocks * ROOM_PER_BLOCK <= part(config.budgetBytes());
    }

    private static long part(long limit) {
        return limit - limit / ROOM_LEFT;
    }

    /** Bytes of the arena in use; any thread. */
    long usedBytes() {
        return arena.usedLines() * BuddyArena.LINE_LENGTH;
    }

    /** Engine hashes given up for others; any thread. */
    long evictedBlocks() {
        return evictedBlocks.get();
    }

    /** Engine hashes given up because there was no memory for a hole; any thread. */
    long forgottenBlocks() {
        return forgottenBlocks.get();
    }

    /** What is given up for others; for tests. */
    Evictor evictor() {
        return evictor;
    }
}
