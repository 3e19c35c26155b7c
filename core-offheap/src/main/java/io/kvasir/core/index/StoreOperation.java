package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRunDescriptor.NO_POSITION;
import static io.kvasir.core.index.HeldRuns.NO_HELD_RUN;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.radix.RadixTree;

import java.util.Arrays;
import java.util.BitSet;

/**
 * Stores a list of blocks for a worker slot, all or none: goes down the tree from the parent, adds
 * what is not there, and records the slot and its engine hashes; takes everything back when one
 * step fails. Owner: the writer thread; allocates only to make its scratch as long as the longest
 * store seen.
 */
final class StoreOperation extends SlotOperation {
    /** Blocks of memory as large as its hashes that a new run should find: names and index too. */
    private static final int ARRAYS_PER_RUN = 3;

    private static final int NO_SLOT = -1;

    /**
     * Blocks that a store evicts at most, beside some for each of its own: one that several slots
     * hold is given up by each of them before there is room.
     */
    private static final int MOST_EVICTED = 64;

    private static final int MOST_EVICTED_PER_BLOCK = 16;

    /** What a store has done about one block. */
    private static final byte STORED = 1;

    private static final byte COPIED = 2;
    private static final byte KEPT = 3;
    private static final byte CONFLICTING = 4;

    final WriterCounter unknownParents = new WriterCounter();
    final WriterCounter missingParents = new WriterCounter();
    final WriterCounter capacityRefusals = new WriterCounter();
    final WriterCounter invalidStores = new WriterCounter();
    final WriterCounter conflictingStores = new WriterCounter();

    private final BuddyArena arena;
    private final DuplicateDetector duplicates = new DuplicateDetector();
    private final PathTrace trace;

    private boolean root;
    private long parentEngineHash;
    private long[] engineHashes;
    private long[] localHashes;
    private int count;
    private boolean refresh;

    /** The further engine hash of a block. */
    private final long[] single = new long[1];

    /** What was done about each block so far. */
    private byte[] outcomes = new byte[64];

    /** Where the store stands: a run, an offset in it, and what the slot holds of its array. */
    private int run;

    private int offset;
    private int heldRun;

    /** Held run of the array before, which a new one continues from. */
    private int above;

    /** Whether an engine hash stands for another block: why {@link #tryStore} has failed. */
    private boolean conflict;

    /** Of the store's engine hashes and blocks those that are new, see {@link #countNew}. */
    private int newHashes;

    private int newBlocks;

    /** Held runs whose bits are not needed when the store succeeds. */
    private int[] unsettled = new int[8];

    private int unsettledCount;

    /** Held runs of a slot that are not evicted, see {@link #keptRuns}. */
    private final BitSet keptRuns = new BitSet();

    private final KeptRuns kept = this::keptRuns;

    /** The slot whose they are; {@link #NO_SLOT} where they are to be found anew. */
    private int keptOf = NO_SLOT;

    /** Whether those are among them that have blocks of the store. */
    private boolean keepsPath;

    StoreOperation(IndexTables tables, IndexCapacity capacity) {
        super(tables, capacity);
        this.arena = tables.arena;
        this.trace = new PathTrace(tables.tree);
    }

    /** The same as {@link PrefixIndex#store}. */
    StoreResult store(
            int workerSlot,
            boolean fromRoot,
            long parent,
            long[] hashes,
            long[] locals,
            int blockCount,
            boolean keepHeld) {
        begin(workerSlot);
        root = fromRoot;
        parentEngineHash = parent;
        engineHashes = hashes;
        localHashes = locals;
        count = blockCount;
        refresh = keepHeld;
        final StoreResult result = blockCount == 0 ? StoreResult.STORED : apply();
        end();
        record(result);
        return result;
    }

    /** The same as {@link PrefixIndex#addName}. */
    StoreResult addName(int workerSlot, long held, long further) {
        begin(workerSlot);
        single[0] = further;
        root = false;
        parentEngineHash = held;
        engineHashes = single;
        count = 1;
        refresh = true; // a name is no copy
        final StoreResult result = name(held, further);
        end();
        record(result);
        return result;
    }

    private StoreResult name(long held, long further) {
        int position = lookup.position(held);
        if (position == NO_POSITION) {
            return missing.missing(slot) > 0
                    ? StoreResult.MISSING_PARENT
                    : StoreResult.UNKNOWN_PARENT;
        }
        final int known = lookup.position(further);
        if (known == position) {
            return StoreResult.STORED;
        }
        if (known != NO_POSITION) {
            release(further, known);
            conflictingStores.add(1);
            position = lookup.position(held); // without memory for a hole it may have been released
        }
        keep(false);
        for (int left = MOST_EVICTED; position != NO_POSITION && left > 0; left--) {
            if (capacity.fits(1, 0, heldChange) && lookup.addAlias(further, position)) {
                heldChange++;
                return StoreResult.STORED;
            }
            if (!capacity.evicts() || capacity.evict(slot, kept, 1) == 0) {
                return StoreResult.CAPACITY;
            }
            position = lookup.position(held);
        }
        return StoreResult.CAPACITY;
    }

    private void record(StoreResult result) {
        switch (result) {
            case STORED -> {}
            case UNKNOWN_PARENT -> unknownParents.add(1);
            case MISSING_PARENT -> {
                missingParents.add(1);
                refused(true);
            }
            case CAPACITY -> {
                capacityRefusals.add(1);
                refused(false);
            }
            case INVALID -> invalidStores.add(1);
        }
    }

    /** Counts what of the store is missing now: of blocks that are held, a further copy. */
    private void refused(boolean forParent) {
        final int unknown = countUnknown();
        missing.refused(slot, unknown, refresh ? unknown : count, forParent, heldBlocks());
    }

    /** Engine hashes of the store that the slot does not hold. */
    private int countUnknown() {
        int unknown = 0;
        for (int i = 0; i < count; i++) {
            unknown += lookup.position(engineHashes[i]) == NO_POSITION ? 1 : 0;
        }
        return unknown;
    }

    private StoreResult apply() {
        final int parent = findParent();
        if (!root && parent == NO_POSITION) {
            if (contradictsItself()) {
                return StoreResult.INVALID;
            }
            return missing.missing(slot) > 0
                    ? StoreResult.MISSING_PARENT
                    : StoreResult.UNKNOWN_PARENT;
        }
        if (!fitsWhateverIsNew()) {
            if (contradictsItself()) {
                return StoreResult.INVALID;
            }
            if (!makeRoom()) {
                return StoreResult.CAPACITY;
            }
        }
        if (outcomes.length < count) {
            outcomes = new byte[Math.max(count, 2 * outcomes.length)];
        }
        if (tryStore(parent) || (!conflict && evictAndStore(parent))) {
            return StoreResult.STORED;
        }
        if (!conflict) {
            return StoreResult.CAPACITY;
        }
        if (contradictsItself()) {
            return StoreResult.INVALID;
        }
        releaseConflicting();
        // without memory for a hole, the parent may have been released with a block before it
        final int left = findParent();
        final boolean hasParent = root || left != NO_POSITION;
        final boolean stored = hasParent && (tryStore(left) || (!conflict && evictAndStore(left)));
        return stored ? StoreResult.STORED : StoreResult.CAPACITY;
    }

    /**
     * Position of the parent; {@link HeldRunDescriptor#NO_POSITION} for the root, or if it is not
     * held.
     */
    private int findParent() {
        return root ? NO_POSITION : lookup.position(parentEngineHash);
    }

    /** Whether an engine hash stands for two blocks of the store, or for one and its parent. */
    private boolean contradictsItself() {
        if (duplicates.repeats(engineHashes, count)) {
            return true;
        }
        for (int i = 0; !root && i < count; i++) {
            if (engineHashes[i] == parentEngineHash) {
                return true;
            }
        }
        return false;
    }

    // -- room for the store -----------------------------------------------------------------

    private boolean fitsWhateverIsNew() {
        return capacity.fits(count, count, heldChange)
                && (!capacity.evicts() || capacity.hasFreeLines(count));
    }

    private boolean newFits() {
        return capacity.fits(newHashes, newBlocks, heldChange);
    }

    /** Evicts until the hashes and blocks that are new fit into the limits, if that is the rule. */
    private boolean makeRoom() {
        countNew();
        if (!capacity.evicts() || !capacity.couldFit(newHashes, newBlocks)) {
            return newFits();
        }
        keep(true);
        int left = MOST_EVICTED + MOST_EVICTED_PER_BLOCK * count;
        for (int least = 1; left > 0 && !hasRoom(); least = Math.min(2 * least, Evictor.MOST)) {
            while (left > 0 && !hasRoom()) {
                final int excess = capacity.excess(newHashes, newBlocks, heldChange);
                final int evicted = evict(Math.min(left, Math.max(least, excess)));
                left = evicted == 0 ? 0 : left - evicted;
            }
            countNew(); // where nothing else was left, some of the store's own are evicted
        }
        return newFits();
    }

    private boolean hasRoom() {
        return newFits() && capacity.hasFreeLines(count);
    }

    /** Evicts blocks, of the store's own path only where there are no others. */
    private int evict(int most) {
        final int evicted = capacity.evict(slot, kept, most);
        if (evicted > 0 || !keepsPath) {
            return evicted;
        }
        keep(false);
        return capacity.evict(slot, kept, most);
    }

    private void keep(boolean path) {
        keepsPath = path;
        keptOf = NO_SLOT;
    }

    /**
     * The held runs of a slot that are not evicted for the store: its own one that has the parent,
     * and those that have blocks of the store, which were new then and would need room themselves.
     */
    private BitSet keptRuns(int victim) {
        if (victim == keptOf) {
            return keptRuns;
        }
        keptOf = victim;
        keptRuns.clear();
        if (!root && victim == slot) {
            keptRuns.set(HeldRunDescriptor.heldRun(findParent()));
        }
        if (keepsPath) {
            followPath();
            int before = RadixTree.NO_RUN;
            for (int i = 0; i < trace.length(); i++) {
                if (trace.run(i) != before) {
                    before = trace.run(i);
                    final int found = holders.findHeldRun(before, victim);
                    if (found != NO_HELD_RUN) {
                        keptRuns.set(found);
                    }
                }
            }
        }
        return keptRuns;
    }

    /**
     * Evicts and tries again, where the limits alone did not ask for it: memory was short. Ends
     * early on a {@link #conflict}, which no eviction resolves.
     */
    private boolean evictAndStore(int parent) {
        if (!capacity.evicts()) {
            return false;
        }
        int left = MOST_EVICTED + MOST_EVICTED_PER_BLOCK * count;
        while (left > 0) {
            keep(true);
            int round = MOST_EVICTED / 2 + count;
            while (round > 0) {
                final int evicted = evict(Math.min(round, Evictor.MOST));
                if (evicted == 0) {
                    return false;
                }
                round -= evicted;
                left -= evicted;
            }
            countNew();
            if (newFits() && tryStore(parent)) {
                return true;
            }
            if (conflict) {
                return false;
            }
        }
        return false;
    }

    /** Counts the engine hashes and blocks of the store that are new. */
    private void countNew() {
        followPath();
        newHashes = 0;
        newBlocks = 0;
        for (int i = 0; i < count; i++) {
            newHashes += isKnown(i) ? 0 : 1;
            newBlocks +=
                    i < trace.length() && holders.isHeld(trace.run(i), trace.offset(i)) ? 0 : 1;
        }
    }

    /** Finds the blocks being stored in the tree, as far as they are there. */
    private void followPath() {
        startAt(findParent());
        trace.follow(run, offset, localHashes, count);
    }

    /** Whether the slot holds an engine hash, of the block itself or of another one. */
    private boolean isKnown(int i) {
        final int position = i < trace.length() ? tracedPosition(i) : NO_POSITION;
        if (position != NO_POSITION
                && heldRuns.isHeld(position)
                && heldRuns.name(position) == engineHashes[i]) {
            return true;
        }
        return lookup.position(engineHashes[i]) != NO_POSITION;
    }

    private int tracedPosition(int i) {
        final int found = holders.findHeldRun(trace.run(i), slot);
        return found == NO_HELD_RUN
                ? NO_POSITION
                : HeldRunDescriptor.position(found, tree.first(trace.run(i)) + trace.offset(i));
    }

    /** Releases the engine hashes that stand for other blocks than those being stored. */
    private void releaseConflicting() {
        followPath();
        for (int i = 0; i < count; i++) {
            final int position = lookup.position(engineHashes[i]);
            final boolean inPlace = i < trace.length() && position == tracedPosition(i);
            outcomes[i] = position == NO_POSITION || inPlace ? KEPT : CONFLICTING;
        }
        for (int i = 0; i < count; i++) {
            // without memory for a hole a release takes the blocks after it too: ask again
            final int position =
                    outcomes[i] == CONFLICTING ? lookup.position(engineHashes[i]) : NO_POSITION;
            if (position != NO_POSITION) {
                release(engineHashes[i], position);
                conflictingStores.add(1);
            }
        }
    }

    // -- the store itself -------------------------------------------------------------------

    /** Stores all or, with {@link #conflict} as the reason, nothing. */
    private boolean tryStore(int parent) {
        conflict = false;
        unsettledCount = 0;
        startAt(parent);
        int done = 0;
        while (done < count) {
            final int here = tree.length(run) - offset;
            if (here == 0) {
                if (!stepDown(done)) {
                    break;
                }
                continue;
            }
            final int same = tree.matching(run, offset, localHashes, done, count - done);
            if (same == 0) {
                if (!holders.split(run, offset)) {
                    break;
                }
                continue;
            }
            final int held = hold(done, same);
            done += held;
            offset += held;
            if (held < same) {
                break;
            }
        }
        if (done < count) {
            holders.trim(run);
            undo(done);
            return false;
        }
        for (int i = 0; i < unsettledCount; i++) {
            heldRuns.settle(unsettled[i]);
        }
        return true;
    }

    /** Goes to where the store begins: after the parent, or to the root. */
    private void startAt(int parent) {
        if (root) {
            run = tree.root();
            offset = 0;
            heldRun = NO_HELD_RUN;
            above = NO_HELD_RUN;
            return;
        }
        heldRun = HeldRunDescriptor.heldRun(parent);
        final int arrayOffset = HeldRunDescriptor.arrayOffset(parent);
        run = tree.segmentAt(heldRuns.run(heldRun), arrayOffset);
        offset = arrayOffset - tree.first(run) + 1;
    }

    /** Goes on after the end of a run: to a child, to what is appended, or to a new child. */
    private boolean stepDown(int done) {
        final int child = tree.child(run, localHashes[done]);
        if (child != RadixTree.NO_RUN) {
            enter(child);
            return true;
        }
        final int appended = tree.append(run, localHashes, done, count - done, ARRAYS_PER_RUN);
        if (appended > 0) {
            holders.appended(run, appended);
            return true;
        }
        final int most = RadixTree.longestRun(arena, ARRAYS_PER_RUN);
        final int added =
                most == 0
                        ? RadixTree.NO_RUN
                        : tree.addChild(run, localHashes, done, Math.min(most, count - done));
        if (added == RadixTree.NO_RUN) {
            return false;
        }
        holders.appended(added, tree.length(added));
        enter(added);
        return true;
    }

    private void enter(int child) {
        if (heldRun == NO_HELD_RUN || tree.previousSegment(child) != run) {
            above = heldRun;
            heldRun = holders.findHeldRun(child, slot);
        }
        run = child;
        offset = 0;
    }

    /**
     * Makes the next blocks of the run held, the block at {@link #offset} first.
     *
     * @return how many are; fewer than asked for without memory or on a {@link #conflict}
     */
    private int hold(int done, int blocks) {
        int held = 0;
        while (held < blocks) {
            final int arrayOffset = tree.first(run) + offset + held;
            final int end = arrayOffset + blocks - held;
            if (heldRun != NO_HELD_RUN && heldRuns.holds(heldRun, arrayOffset)) {
                if (!storeAgain(done + held, HeldRunDescriptor.position(heldRun, arrayOffset))) {
                    break;
                }
                held++;
            } else {
                final int next =
                        heldRun == NO_HELD_RUN
                                ? end
                                : heldRuns.next(heldRun, arrayOffset, end, true);
                final int fresh =
                        holdNew(done + held, offset + held, arrayOffset, next - arrayOffset);
                held += fresh;
                if (fresh < next - arrayOffset) {
                    break;
                }
            }
        }
        if (held > 0) {
            heldRuns.stored(heldRun);
        }
        return held;
    }

    /** Holds blocks that the slot does not hold: all of them, or none. */
    private int holdNew(int done, int blockOffset, int arrayOffset, int blocks) {
        if (heldRun == NO_HELD_RUN) {
            heldRun = heldRuns.allocate(run, above);
            if (heldRun == NO_HELD_RUN) {
                return 0;
            }
            if (above != NO_HELD_RUN) {
                heldRuns.stored(above);
            }
        }
        if (holders.prepare(run, slot, heldRun, arrayOffset)
                && heldRuns.putNames(heldRun, arrayOffset, engineHashes, done, blocks)) {
            final int position = HeldRunDescriptor.position(heldRun, arrayOffset);
            final EngineHashIndex.Insertion added =
                    lookup.add(engineHashes, done, blocks, position);
            if (added == EngineHashIndex.Insertion.DONE) {
                heldRuns.hold(heldRun, arrayOffset, blocks);
                rememberUnsettled();
                holders.held(run, blockOffset, blocks, slot, heldRun);
                Arrays.fill(outcomes, done, done + blocks, STORED);
                heldChange += blocks;
                return blocks;
            }
            conflict = added == EngineHashIndex.Insertion.KNOWN;
        }
        if (holders.abandon(run, slot, heldRun)) {
            heldRun = NO_HELD_RUN;
        }
        return 0;
    }

    /** Keeps bits that are not needed any more until the store can not be taken back. */
    private void rememberUnsettled() {
        if (heldRuns.isUnsettled(heldRun)) {
            if (unsettledCount == unsettled.length) {
                unsettled = Arrays.copyOf(unsettled, 2 * unsettledCount);
            }
            unsettled[unsettledCount++] = heldRun;
        }
    }

    /** Stores a block that the slot holds: one more copy, or one more engine hash. */
    private boolean storeAgain(int done, int position) {
        final long engineHash = engineHashes[done];
        final int known =
                heldRuns.name(position) == engineHash ? position : lookup.position(engineHash);
        if (known == NO_POSITION) {
            if (!lookup.addAlias(engineHash, position)) {
                return false;
            }
            outcomes[done] = STORED;
            heldChange++;
            return true;
        }
        if (known != position) {
            conflict = true;
            return false;
        }
        outcomes[done] = refresh ? KEPT : COPIED;
        final int copies = lookup.copies(engineHash); // as many as can be said, of a hostile engine
        return refresh || copies == Integer.MAX_VALUE || lookup.copies(engineHash, copies + 1);
    }

    /** Takes back the blocks stored so far, last first. */
    private void undo(int done) {
        for (int i = done - 1; i >= 0; i--) {
            final long engineHash = engineHashes[i];
            if (outcomes[i] == STORED) {
                release(engineHash, lookup.position(engineHash));
            } else if (outcomes[i] == COPIED) {
                lookup.copies(engineHash, lookup.copies(engineHash) - 1);
            }
        }
    }
}
