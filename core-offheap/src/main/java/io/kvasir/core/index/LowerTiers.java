package io.kvasir.core.index;

import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.radix.OverlapScores;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Set;
import java.util.function.LongPredicate;

/**
 * What workers hold beside their devices, or can load: one index for each tier that is wanted.
 *
 * <p>The index of a tier has what a worker holds there <em>and in the tiers above it</em>, so that
 * its match says how far a prompt goes if blocks may lie in any of them, also where tiers alternate
 * along the prompt. An engine hash stands in it once for each tier that has its block, as another
 * name ({@link #name}): so a block stays until the last tier gives it up, and a removal from a tier
 * that has not got it changes nothing. A store looks for its parent in its own tier first, then in
 * all that the index has. A tier's index follows a slot from the first block of that tier on: then
 * what it holds in the tiers above is copied, once; a tier that a worker does not announce costs
 * nothing. A copy has holes held until its end, since blocks behind them are stored after them: a
 * match that meets it finds nothing of that slot below the device (undercount; see {@link
 * DeviceCopies}).
 *
 * <p>Shared storage is one slot of an index of its own ({@link SharedStorage}).
 *
 * <pre>
 *                         device   host   disk   shared
 *   the index itself        x
 *   of the host             x       x                  of slots that have announced a block there
 *   of the disk             x       x      x           of slots that have announced a block there
 *   of shared storage                              x      one slot for all workers
 * </pre>
 *
 * <p>Owner: the writer thread of the device's index, which calls the methods marked as writer's.
 * {@link #match} and the gauges are for any thread. The device's index is written by its owner
 * before it says so here.
 */
public final class LowerTiers {
    /** What makes an engine hash another name in each tier; the device's stays as it is. */
    private static final long[] NAME_OF_TIER = {0, 0x9f3c51d6a04b7e25L, 0x63e8b92d17f4ca81L, 0};

    private static final int DEVICE = StorageTier.DEVICE.number();
    private static final int HOST = StorageTier.HOST.number();
    private static final int DISK = StorageTier.DISK.number();
    private static final int RETAINED_NAMES = 1 << 16;

    private final PrefixIndex device;
    private final Set<StorageTier> tiers;
    private final PrefixIndex[] upTo = new PrefixIndex[DISK + 1]; // by tier; null where it is off
    private final SharedStorage sharedOrNull;
    private final BitSet[] followed = new BitSet[DISK + 1]; // slots, by tier; null where it is off
    private final DeviceCopies copies = new DeviceCopies();

    private final LeftOut[] leftOut = new LeftOut[DISK + 1]; // by tier; null where it is off
    private final WriterCounter unnamed = new WriterCounter();
    private long[] names = new long[256];
    private int collected; // names that are to be dropped

    /**
     * Allocates empty indexes.
     *
     * @param device the index of the devices' blocks, whose slots and writer thread these have too
     * @param gate that index's gate; closed if the memory is refused
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public LowerTiers(PrefixIndex device, LowerTiersConfig config, MemoryGate gate) {
        this.device = device;
        this.tiers = config.tiers();
        for (int t = HOST; t <= DISK; t++) {
            if (config.tiers().contains(StorageTier.of(t))) {
                upTo[t] = new PrefixIndex(config.sizes(), gate, device.writer());
                leftOut[t] = new LeftOut(upTo[t]);
                followed[t] = new BitSet();
            }
        }
        leftOut[DEVICE] = new LeftOut(device);
        sharedOrNull =
                config.tiers().contains(StorageTier.SHARED)
                        ? new SharedStorage(
                                new PrefixIndex(config.sizes().withSlots(1), gate, device.writer()),
                                device.config().maxWorkerSlots())
                        : null;
    }

    /** The tiers below the device that are kept. */
    public Set<StorageTier> tiers() {
        return tiers;
    }

    /** Whether blocks of a tier are kept. */
    public boolean isIndexed(StorageTier tier) {
        return indexOrNull(tier) != null;
    }

    /**
     * The index of a tier, with the tiers above it; for gauges and matches. Of shared storage it
     * has one slot.
     *
     * @return null where the tier is not kept, and for the device
     */
    public PrefixIndex indexOrNull(StorageTier tier) {
        return switch (tier) {
            case DEVICE -> null;
            case HOST, DISK -> upTo[tier.number()];
            case SHARED -> sharedOrNull == null ? null : sharedOrNull.index();
        };
    }

    // -- writer: what has been done in the device's index -------------------------------------

    /**
     * The same store was given to the device's index. Writer thread.
     *
     * @param result what became of it there
     */
    public void deviceStored(
            int slot,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count,
            boolean refresh,
            StoreResult result) {
        if (isFollowed(slot)
                && store(DEVICE, slot, root, parent, engineHashes, localHashes, count, refresh)
                && result != StoreResult.STORED) {
            leftOut[DEVICE].add(slot);
        }
    }

    /** The same removal was given to the device's index. Writer thread. */
    public void deviceRemoved(int slot, long[] engineHashes, int count, CopyRule rule) {
        if (isFollowed(slot)) {
            remove(DEVICE, slot, engineHashes, count, rule);
        }
    }

    /** The same number of copies was given to the device's index. Writer thread. */
    public void deviceRemovedTo(int slot, long engineHash, int remainingCopies) {
        for (int t = HOST; t <= DISK; t++) {
            if (isFollowed(t, slot)) {
                upTo[t].removeTo(slot, engineHash, remainingCopies);
            }
        }
    }

    /**
     * A slot was cleared: nothing is known of any tier any more, nor of what it has announced of
     * shared storage. Writer thread.
     */
    public void cleared(int slot) {
        forget(slot);
        if (sharedOrNull != null) {
            sharedOrNull.forget(slot);
        }
    }

    /**
     * The device of a slot is about to be cleared, and no other tier. Writer thread,
     * <em>before</em> the device's index is: what it holds says which names are the device's. Takes
     * time for each block that the slot holds.
     */
    public void deviceCleared(int slot) {
        if (!isFollowed(slot)) {
            return;
        }
        if (leftOut[DEVICE].something(slot)) {
            forget(slot);
            return;
        }
        collect(slot, device, _ -> true);
        drop(slot, HOST);
    }

    /**
     * One tier of a slot was cleared, and no other. Writer thread. Of shared storage, what the slot
     * has announced last. Takes time for each block that the slot holds.
     *
     * <p>Where an index has left something out since it follows the slot, for lack of room or of a
     * parent, it cannot be said any more which names are the tier's: then the slot's lower tiers
     * are forgotten, which undercounts.
     *
     * @param tier where; not the device. Of one that is not kept nothing is recorded
     */
    public void tierCleared(int slot, StorageTier tier) {
        if (tier == StorageTier.SHARED) {
            if (sharedOrNull != null) {
                sharedOrNull.forget(slot);
            }
            return;
        }
        if (!isFollowed(tier.number(), slot)) {
            return;
        }
        final PrefixIndex own = upTo[tier.number()];
        final PrefixIndex hostOrNull =
                tier == StorageTier.DISK && isFollowed(HOST, slot) ? upTo[HOST] : null;
        if (leftOut[DEVICE].something(slot)
                || leftOut[tier.number()].something(slot)
                || (hostOrNull != null && leftOut[HOST].something(slot))) {
            forget(slot);
            return;
        }
        collect(
                slot,
                own,
                name ->
                        !device.holds(slot, name)
                                && (hostOrNull == null || !hostOrNull.holds(slot, name)));
        drop(slot, tier.number());
    }

    /** The lower tiers of a slot are as before its first event of any. */
    private void forget(int slot) {
        for (int t = HOST; t <= DISK; t++) {
            if (isFollowed(t, slot)) {
                upTo[t].clear(slot);
                followed[t].clear(slot);
            }
        }
    }

    /** Collects names that a slot holds in an index. */
    private void collect(int slot, PrefixIndex index, LongPredicate wanted) {
        collected = 0;
        index.forEachRun(
                slot,
                0,
                Integer.MAX_VALUE,
                (_, _, shown, _, count) -> {
                    for (int i = 0; i < count; i++) {
                        if (wanted.test(shown[i])) {
                            if (collected == names.length) {
                                names = Arrays.copyOf(names, 2 * collected);
                            }
                            names[collected++] = shown[i];
                        }
                    }
                });
    }

    /** Drops the names that were collected from the indexes of a tier and of those below. */
    private void drop(int slot, int tier) {
        for (int t = tier; t <= DISK; t++) {
            if (isFollowed(t, slot)) {
                upTo[t].remove(slot, names, collected, CopyRule.LAST_COPY);
            }
        }
        trim();
    }

    // -- writer: events of the tiers ----------------------------------------------------------

    /**
     * Blocks were stored in a lower tier. Writer thread. A block is there once, however often it is
     * stored; one whose parent is in no tier that the index has is refused, and counted there.
     *
     * @param slot worker slot that announces it
     * @param tier where; of one that is not kept nothing is recorded
     * @param root whether the first block starts a prompt; {@code parent} is not used then
     * @param parent the worker's name of the block before the first one, in whatever tier
     * @param engineHashes the worker's names of the blocks, [count]
     * @param localHashes local hashes of the blocks, [count]
     */
    public void stored(
            int slot,
            StorageTier tier,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count) {
        if (!isIndexed(tier)) {
            return;
        }
        if (tier == StorageTier.SHARED) {
            sharedOrNull.stored(slot, root, parent, engineHashes, localHashes, count);
            return;
        }
        follow(tier.number(), slot);
        var _ = store(tier.number(), slot, root, parent, engineHashes, localHashes, count, true);
    }

    /**
     * Blocks were stored in a lower tier by an engine that says their names only. Writer thread.
     * They are those that it has announced before under these names and that some tier above, or
     * this one, still holds; others are counted in {@link #unnamedBlocks}.
     *
     * @param slot worker slot that announces it
     * @param tier where; of one that is not kept nothing is recorded
     * @param engineHashes the worker's names of the blocks, [count]
     */
    public void storedByName(int slot, StorageTier tier, long[] engineHashes, int count) {
        if (!isIndexed(tier)) {
            return;
        }
        if (tier != StorageTier.SHARED) {
            follow(tier.number(), slot);
        }
        for (int i = 0; i < count; i++) {
            final boolean known =
                    tier == StorageTier.SHARED
                            ? share(slot, engineHashes[i])
                            : addName(tier.number(), slot, engineHashes[i]);
            if (!known) {
                unnamed.add(1);
            }
        }
    }

    private boolean share(int slot, long engineHash) {
        return device.show(
                slot,
                engineHash,
                (depth, parent, shown, locals, count) -> {
                    if (depth != HeldRunVisitor.BEHIND_HOLE) {
                        names[0] = engineHash; // the block may be shown with another one
                        sharedOrNull.stored(slot, depth == 0, parent, names, locals, count);
                    }
                });
    }

    /** Whether an index of the tier, or of one below, has the block by whatever name. */
    private boolean addName(int tier, int slot, long engineHash) {
        boolean known = false;
        boolean stored = false;
        for (int t = DISK; t >= tier; t--) {
            if (isFollowed(t, slot)) {
                final long held = heldName(upTo[t], slot, tier, engineHash);
                if (upTo[t].holds(slot, held)) {
                    known = true;
                    stored =
                            leftOut[t].after(
                                    stored,
                                    slot,
                                    upTo[t].addName(slot, held, name(tier, engineHash)));
                } else if (stored) {
                    leftOut[t].add(slot);
                }
            }
        }
        return known;
    }

    /**
     * Blocks are in a lower tier no more. Writer thread.
     *
     * @param slot worker slot that announces it
     * @param tier where; of one that is not kept nothing is recorded
     * @param engineHashes the worker's names of the blocks, [count]; unknown ones are counted
     */
    public void removed(int slot, StorageTier tier, long[] engineHashes, int count) {
        if (tier == StorageTier.SHARED && sharedOrNull != null) {
            sharedOrNull.removed(engineHashes, count);
        } else if (isFollowed(slot) && tier != StorageTier.SHARED) {
            remove(tier.number(), slot, engineHashes, count, CopyRule.LAST_COPY);
        }
    }

    private boolean isFollowed(int slot) {
        return isFollowed(HOST, slot) || isFollowed(DISK, slot);
    }

    /** Whether the index of a tier has a slot's blocks of that tier and of those above. */
    private boolean isFollowed(int tier, int slot) {
        return followed[tier] != null && followed[tier].get(slot);
    }

    /** Gives the index of a tier what the slot holds in those above it, once. */
    private void follow(int tier, int slot) {
        if (isFollowed(tier, slot)) {
            return;
        }
        if (!isFollowed(slot)) {
            leftOut[DEVICE].begin(slot);
        }
        followed[tier].set(slot);
        leftOut[tier].begin(slot);
        final PrefixIndex above = tier == DISK && isFollowed(HOST, slot) ? upTo[HOST] : device;
        copies.begin(slot); // readers that see a block of the copy leave out the slot
        try {
            above.copySlot(slot, upTo[tier]);
        } finally {
            copies.end(); // readers that begin after it see no hole held
        }
    }

    /** Whether an index has the blocks now; those above it that have not remember that. */
    private boolean store(
            int tier,
            int slot,
            boolean root,
            long parent,
            long[] engineHashes,
            long[] localHashes,
            int count,
            boolean refresh) {
        final long[] own = names(tier, engineHashes, count);
        boolean stored = false;
        for (int t = DISK; t >= Math.max(HOST, tier); t--) {
            if (isFollowed(t, slot)) {
                final long before = root ? 0 : heldName(upTo[t], slot, tier, parent);
                stored =
                        leftOut[t].after(
                                stored,
                                slot,
                                upTo[t].store(
                                        slot, root, before, own, localHashes, count, refresh));
            }
        }
        trim();
        return stored;
    }

    private void remove(int tier, int slot, long[] engineHashes, int count, CopyRule rule) {
        final long[] own = names(tier, engineHashes, count);
        for (int t = Math.max(HOST, tier); t <= DISK; t++) {
            if (isFollowed(t, slot)) {
                upTo[t].remove(slot, own, count, rule);
            }
        }
        trim();
    }

    /** The name under which an index holds a block, that of a tier first; that if it does not. */
    private static long heldName(PrefixIndex index, int slot, int tier, long engineHash) {
        final long own = name(tier, engineHash);
        if (index.holds(slot, own)) {
            return own;
        }
        for (int t = DEVICE; t <= DISK; t++) {
            if (index.holds(slot, name(t, engineHash))) {
                return name(t, engineHash);
            }
        }
        return own;
    }

    /** What an engine hash is called as that of a block in a tier. */
    private static long name(int tier, long engineHash) {
        return engineHash ^ NAME_OF_TIER[tier];
    }

    private long[] names(int tier, long[] engineHashes, int count) {
        if (tier == DEVICE) {
            return engineHashes;
        }
        if (names.length < count) {
            names = new long[count];
        }
        for (int i = 0; i < count; i++) {
            names[i] = name(tier, engineHashes[i]);
        }
        return names;
    }

    private void trim() {
        if (names.length > RETAINED_NAMES) {
            names = new long[RETAINED_NAMES];
        }
    }

    // -- any thread ---------------------------------------------------------------------------

    /**
     * Finds how many leading blocks of a prompt each worker slot holds in a tier and those above
     * it, as {@link PrefixIndex#match} does; for shared storage, of how many it has, as slot 0. A
     * slot that has announced no block of that tier is not in it, nor one that holds more on its
     * device while the index of the tier was full, nor one whose first block of a tier is stored
     * meanwhile, which has its blocks of those above copied. A match that meets such copies of
     * several slots finds nothing.
     *
     * @param tier one that is {@link #isIndexed indexed}
     * @return deepest match in blocks, 0 when nothing matched
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     */
    public int match(StorageTier tier, long[] localHashes, int blockCount, OverlapScores out) {
        final long before = copies.before();
        indexOrNull(tier).match(localHashes, blockCount, out);
        return withoutCopies(tier, before, out);
    }

    /** The same as {@link #match}, for a caller that has entered the indexes' gate. */
    public int matchInside(
            StorageTier tier, long[] localHashes, int blockCount, OverlapScores out) {
        final long before = copies.before();
        indexOrNull(tier).matchInside(localHashes, blockCount, out);
        return withoutCopies(tier, before, out);
    }

    /** Leaves out the slot whose blocks were copied meanwhile; the deepest of what is left. */
    private int withoutCopies(StorageTier tier, long before, OverlapScores out) {
        final int copied = copies.met(before);
        if (copied != DeviceCopies.NONE && tier != StorageTier.SHARED) {
            if (copied == DeviceCopies.SEVERAL) {
                out.clear();
            } else {
                out.drop(copied);
            }
        }
        return out.deepest();
    }

    /**
     * Engine hashes that a slot holds in a tier; of shared storage, that there are. A slot that
     * holds as many on its device has none.
     *
     * @return 0 where the tier is not kept
     */
    public long heldBlocks(StorageTier tier, int slot) {
        final PrefixIndex index = indexOrNull(tier);
        if (index == null) {
            return 0;
        }
        if (tier == StorageTier.SHARED) {
            return index.heldBlocks();
        }
        long above = device.heldBlocks(slot);
        if (tier == StorageTier.DISK && upTo[HOST] != null) {
            above = Math.max(above, upTo[HOST].heldBlocks(slot)); // 0 where it announces none
        }
        return Math.max(0, index.heldBlocks(slot) - above);
    }

    /** Blocks that an engine has announced by names that no tier held. */
    public long unnamedBlocks() {
        return unnamed.get();
    }

    /** Blocks of shared storage that were dropped with the worker that had announced them. */
    public long droppedBlocks() {
        return sharedOrNull == null ? 0 : sharedOrNull.dropped.get();
    }
}
