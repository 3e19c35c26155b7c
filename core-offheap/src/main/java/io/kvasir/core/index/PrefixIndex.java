package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NONE;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.SharedCells;
import io.kvasir.core.memory.WriterCounter;
import io.kvasir.core.memory.WriterLane;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.core.radix.RadixTree;

import java.lang.invoke.VarHandle;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Objects;

/**
 * Which worker slot holds which block of which prefix, learned from engine events.
 *
 * <p>Prompts are paths in a {@link RadixTree} of local hashes, which workers share; an engine hash
 * is only a worker's own name for a block, needed for parents and removals. A worker may have
 * several names for one block and several physical copies under one name: it holds the block until
 * the last of them goes. A removed middle block leaves a hole that ends a match there; what is
 * behind it is remembered, and stored again the block restores the match of everything behind it.
 *
 * <p>Owner: the one thread that calls the methods marked as writer's. All other methods are for any
 * thread, wait for nobody and allocate nothing. Memory is taken once, off-heap; what is freed can
 * be used again at once. What becomes of a store that does not fit says the {@link CapacityRule};
 * it is stored or refused as a whole.
 *
 * <p>After {@link #close}, {@link #match} and the writer's methods throw {@link
 * io.kvasir.core.memory.ClosedException}; gauges and counters keep their last values.
 */
public final class PrefixIndex implements AutoCloseable {
    /** Applied sequence of a slot before its first event. */
    public static final long NO_EVENT = -1;

    /** Blocks of memory as large as its hashes that a new run should find: names and index too. */
    private static final int ARRAYS_PER_RUN = 3;

    /**
     * Lines that a store finds free beside one for each of its blocks, where blocks are evicted.
     */
    private static final int FREE_LINES = 64;

    /** The part of the arena that this is at most. */
    private static final int FREE_PART = 16;

    /** Blocks that a store evicts at most, beside four for each of its own. */
    private static final int MOST_EVICTED = 64;

    private static final int MOST_EVICTED_PER_BLOCK = 4;

    /** Part of each limit that is to be left when missing blocks are stored again. */
    private static final int ROOM_LEFT = 10;

    /** Bytes that a missing block may need. */
    private static final int ROOM_PER_BLOCK = 64;

    /** What a store has done about one block. */
    private static final byte STORED = 1;

    private static final byte COPIED = 2;
    private static final byte KEPT = 3;
    private static final byte CONFLICTING = 4;

    private final PrefixIndexConfig config;
    private final BuddyArena arena;
    private final RadixTree tree;
    private final HeldRuns[] slots;
    private final EngineHashLookup[] slotNames;
    private final HolderConsistency holders;
    private final SharedCells slotCells;
    private final SlotShares shares;
    private final MissingBlocks missing;
    private final Evictor evictor;
    private final MemoryGate gate;
    private final WriterLane writer;

    private final WriterCounter unknownParents = new WriterCounter();
    private final WriterCounter missingParents = new WriterCounter();
    private final WriterCounter evictedBlocks = new WriterCounter();
    private final WriterCounter missingRemovals = new WriterCounter();
    private final WriterCounter capacityRefusals = new WriterCounter();
    private final WriterCounter invalidStores = new WriterCounter();
    private final WriterCounter conflictingStores = new WriterCounter();
    private final WriterCounter unknownRemovals = new WriterCounter();
    private final WriterCounter forgottenBlocks = new WriterCounter();
    private final DuplicateDetector repeatCheck = new DuplicateDetector();

    private EvictionListener evictionListener = EvictionListener.NONE;

    /** The event being applied, and where it stands. */
    private int slot;

    private HeldRuns mine;
    private EngineHashLookup myNames;
    private long[] names;
    private long[] locals;
    private int count;
    private boolean refreshHeld;
    private byte[] outcomes = new byte[64];
    private int run;
    private int offset;
    private int heldRun;

    /** Held run of the array before, which a new one goes on from. */
    private int above;

    private boolean conflict;
    private int newNames;
    private int newBlocks;

    /** Engine hashes of a removal before this one do not go on to the last of a held run. */
    private int notLastBefore;

    private int heldChange;

    /** HeldRuns of the store being applied whose bits are not needed when it succeeds. */
    private int[] unsettled = new int[8];

    private int unsettledCount;

    private final long[] forgotten = new long[1];
    private int[] tracedRuns = {};
    private int[] tracedOffsets = {};

    /**
     * Allocates an empty index with a gate of its own.
     *
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PrefixIndex(PrefixIndexConfig config) {
        this(config, new MemoryGate("the prefix index"));
    }

    /**
     * Allocates an empty index.
     *
     * @param gate keeps the memory while callers are inside; closed if the memory is refused
     * @throws OutOfMemoryError if the operating system refuses the memory
     */
    public PrefixIndex(PrefixIndexConfig config, MemoryGate gate) {
        this.config = config;
        this.gate = gate;
        this.writer = new WriterLane(gate);
        try {
            this.arena = gate.own(new BuddyArena(config.budgetBytes()));
            this.tree = new RadixTree(arena, config.maxWorkerSlots());
        } catch (Throwable t) {
            gate.close();
            throw t;
        }
        this.slots = new HeldRuns[config.maxWorkerSlots()];
        this.slotNames = new EngineHashLookup[config.maxWorkerSlots()];
        Arrays.setAll(slots, s -> new HeldRuns(arena));
        final EngineHashIndex.Key key = newKey();
        final EngineHashIndex.Batch batch = new EngineHashIndex.Batch();
        Arrays.setAll(slotNames, s -> new EngineHashLookup(arena, slots[s], key, batch));
        this.holders = new HolderConsistency(arena, tree, slots);
        this.slotCells = new SharedCells(SlotCellDescriptor.length(config.maxWorkerSlots()));
        this.shares = new SlotShares(config.maxWorkerSlots(), slotCells);
        this.missing = new MissingBlocks(config.maxWorkerSlots());
        this.evictor = new Evictor(tree, holders, slots, slotNames);
        for (int s = 0; s < config.maxWorkerSlots(); s++) {
            eventApplied(s, NO_EVENT);
        }
    }

    /** Says who is called when blocks are evicted. Before the writer's first other call. */
    public void onEviction(EvictionListener listener) {
        evictionListener = Objects.requireNonNull(listener);
    }

    private static EngineHashIndex.Key newKey() {
        final SecureRandom random = new SecureRandom();
        return new EngineHashIndex.Key(random.nextLong(), random.nextLong());
    }

    /**
     * Notes that a slot holds a run of blocks. Writer thread. All or nothing.
     *
     * <p>An engine hash that the slot holds already gets one more physical copy, unless {@code
     * refreshHeld}. If it stood for another block, that held run is released with all its copies
     * and the new one is stored (counted as conflicting store); it stays released if the store is
     * then refused for want of memory.
     *
     * @param workerSlot worker slot
     * @param root whether the run starts a prompt; {@code parentEngineHash} is not looked at then
     * @param parentEngineHash the slot's name of the block before the run
     * @param engineHashes the slot's names of the blocks, [blockCount]
     * @param localHashes local hashes of the blocks, [blockCount]
     * @param blockCount number of blocks; 0 changes nothing
     * @param refresh whether blocks that the slot holds already stay as they are
     * @return what became of it; {@link StoreResult#CAPACITY} when the blocks that are new do not
     *     fit beside what is held before the call, or what is left of that by the {@link
     *     CapacityRule}
     * @throws IndexOutOfBoundsException if the slot or {@code blockCount} is out of range
     */
    public StoreResult store(
            int workerSlot,
            boolean root,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            int blockCount,
            boolean refresh) {
        final int lane = writer.enter();
        try {
            return storeInside(
                    workerSlot,
                    root,
                    parentEngineHash,
                    engineHashes,
                    localHashes,
                    blockCount,
                    refresh);
        } finally {
            writer.exit(lane);
        }
    }

    private StoreResult storeInside(
            int workerSlot,
            boolean root,
            long parentEngineHash,
            long[] engineHashes,
            long[] localHashes,
            int blockCount,
            boolean refresh) {
        Objects.checkFromIndexSize(0, blockCount, engineHashes.length);
        Objects.checkFromIndexSize(0, blockCount, localHashes.length);
        begin(workerSlot, engineHashes, blockCount);
        locals = localHashes;
        refreshHeld = refresh;
        final StoreResult result = store(root, parentEngineHash);
        end();
        switch (result) {
            case STORED -> {}
            case UNKNOWN_PARENT -> unknownParents.add(1);
            case MISSING_PARENT -> {
                missingParents.add(1);
                missing.refused(slot, namesNotHeld(), true, heldBlocks(slot));
            }
            case CAPACITY -> {
                capacityRefusals.add(1);
                missing.refused(slot, namesNotHeld(), false, heldBlocks(slot));
            }
            case INVALID -> invalidStores.add(1);
        }
        return result;
    }

    private int namesNotHeld() {
        int unheld = 0;
        for (int i = 0; i < count; i++) {
            unheld += myNames.position(names[i]) == NONE ? 1 : 0;
        }
        return unheld;
    }

    private StoreResult store(boolean root, long parent) {
        final int parentPosition = root ? NONE : myNames.position(parent);
        if (!root && parentPosition == NONE) {
            if (contradictsItself(root, parent)) {
                return StoreResult.INVALID;
            }
            return missing.missing(slot) > 0
                    ? StoreResult.MISSING_PARENT
                    : StoreResult.UNKNOWN_PARENT;
        }
        if (!fitsWhateverIsNew()) {
            if (contradictsItself(root, parent)) {
                return StoreResult.INVALID;
            }
            if (!makeRoom(root, parent)) {
                return StoreResult.CAPACITY;
            }
        }
        if (outcomes.length < count) {
            outcomes = new byte[Math.max(count, 2 * outcomes.length)];
        }
        if (tryStore(root, parentPosition)) {
            return StoreResult.STORED;
        }
        if (!conflict) {
            return storeForOthers(root, parent, parentPosition)
                    ? StoreResult.STORED
                    : StoreResult.CAPACITY;
        }
        if (contradictsItself(root, parent)) {
            return StoreResult.INVALID;
        }
        releaseConflicting(root, parent);
        return tryStore(root, root ? NONE : myNames.position(parent))
                ? StoreResult.STORED
                : StoreResult.CAPACITY;
    }

    // -- room for a store -------------------------------------------------------------------

    private boolean evicts() {
        return config.capacityRule() == CapacityRule.EVICT;
    }

    private boolean fitsWhateverIsNew() {
        return fits(count, count) && (!evicts() || hasFreeLines());
    }

    private boolean fits(int moreNames, int moreBlocks) {
        return shares.total() + heldChange + moreNames <= config.maxHeldBlocks()
                && holders.blocks() + moreBlocks <= config.maxBlocks();
    }

    /** Whether there are lines of which a store can take what it needs, most probably. */
    private boolean hasFreeLines() {
        final int wanted = Math.min(FREE_LINES + count, arena.capacityLines() / FREE_PART);
        return arena.capacityLines() - arena.usedLines() >= wanted;
    }

    /** Evicts until the names and blocks that are new fit into the limits, if that is the rule. */
    private boolean makeRoom(boolean root, long parent) {
        countNew(root, parent);
        if (!evicts() || newNames > config.maxHeldBlocks() || newBlocks > config.maxBlocks()) {
            return fits(newNames, newBlocks);
        }
        final int parentHeldRun = root ? NONE : HeldRunDescriptor.heldRun(myNames.position(parent));
        int left = MOST_EVICTED + MOST_EVICTED_PER_BLOCK * count;
        while (left > 0 && !(fits(newNames, newBlocks) && hasFreeLines())) {
            final int evicted = evict(parentHeldRun, Math.min(left, wanted()));
            left = evicted == 0 ? 0 : left - evicted;
        }
        countNew(root, parent); // some of the store's own blocks may be among the evicted
        return fits(newNames, newBlocks);
    }

    /** Blocks to evict for the limit that is furthest away. */
    private int wanted() {
        final long names = shares.total() + heldChange + newNames - config.maxHeldBlocks();
        final long blocks = holders.blocks() + newBlocks - config.maxBlocks();
        return (int) Math.max(1, Math.min(Evictor.MOST, Math.max(names, blocks)));
    }

    private int evict(int kept, int most) {
        final int victim = shares.largest(slot);
        final int evicted = evictor.evict(victim, victim == slot ? kept : NONE, most);
        if (evicted > 0) {
            shares.add(victim, -evicted);
            gaveUp(victim, evictor.evicted(), evicted);
        }
        return evicted;
    }

    private void gaveUp(int from, long[] gone, int blocks) {
        missing.evicted(from, blocks, heldBlocks(from));
        evictedBlocks.add(blocks);
        evictionListener.evicted(from, gone, blocks);
    }

    /** Tries again with more memory free, where the limits alone did not ask for it. */
    private boolean storeForOthers(boolean root, long parent, int parentPosition) {
        if (!evicts()) {
            return false;
        }
        int left = MOST_EVICTED + MOST_EVICTED_PER_BLOCK * count;
        while (left > 0) {
            int round = MOST_EVICTED / 2 + count;
            while (round > 0) {
                final int kept = root ? NONE : HeldRunDescriptor.heldRun(parentPosition);
                final int evicted = evict(kept, Math.min(round, Evictor.MOST));
                if (evicted == 0) {
                    return false;
                }
                round -= evicted;
                left -= evicted;
            }
            countNew(root, parent);
            if (fits(newNames, newBlocks) && tryStore(root, parentPosition)) {
                return true;
            }
            if (conflict) {
                return false;
            }
        }
        return false;
    }

    /** Stores all or, with {@link #conflict} as the reason, nothing. */
    private boolean tryStore(boolean root, int parent) {
        conflict = false;
        unsettledCount = 0;
        startAt(root, parent);
        int done = 0;
        while (done < count) {
            final int here = tree.length(run) - offset;
            if (here == 0) {
                if (!stepDown(done)) {
                    break;
                }
                continue;
            }
            final int same = tree.matching(run, offset, locals, done, count - done);
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
            mine.settle(unsettled[i]);
        }
        return true;
    }

    /** Keeps bits that are not needed any more until the store can not be taken back. */
    private void noteUnsettled() {
        if (mine.isUnsettled(heldRun)) {
            if (unsettledCount == unsettled.length) {
                unsettled = Arrays.copyOf(unsettled, 2 * unsettledCount);
            }
            unsettled[unsettledCount++] = heldRun;
        }
    }

    /** Goes to where a store begins: behind the parent, or to the root. */
    private void startAt(boolean root, int parent) {
        if (root) {
            run = tree.root();
            offset = 0;
            heldRun = NONE;
            above = NONE;
            return;
        }
        heldRun = HeldRunDescriptor.heldRun(parent);
        final int place = HeldRunDescriptor.place(parent);
        run = tree.segmentAt(mine.run(heldRun), place);
        offset = place - tree.first(run) + 1;
    }

    /** Goes on behind the end of a run: to a child, to what is appended, or to a new child. */
    private boolean stepDown(int done) {
        final int child = tree.child(run, locals[done]);
        if (child != RadixTree.NONE) {
            enter(child);
            return true;
        }
        final int appended = tree.append(run, locals, done, count - done, ARRAYS_PER_RUN);
        if (appended > 0) {
            holders.appended(run, appended);
            return true;
        }
        final int most = RadixTree.longestRun(arena, ARRAYS_PER_RUN);
        final int added =
                most == 0
                        ? RadixTree.NONE
                        : tree.addChild(run, locals, done, Math.min(most, count - done));
        if (added == RadixTree.NONE) {
            return false;
        }
        holders.appended(added, tree.length(added));
        enter(added);
        return true;
    }

    private void enter(int child) {
        if (heldRun == NONE || tree.previousSegment(child) != run) {
            above = heldRun;
            heldRun = holders.findHeldRun(child, slot);
        }
        run = child;
        offset = 0;
    }

    /**
     * Makes the next blocks of the run held, the block at {@link #offset} first.
     *
     * @return how many are; fewer than asked for want of memory or on a {@link #conflict}
     */
    private int hold(int done, int blocks) {
        int held = 0;
        while (held < blocks) {
            final int place = tree.first(run) + offset + held;
            final int end = place + blocks - held;
            if (heldRun != NONE && mine.holds(heldRun, place)) {
                if (!storeAgain(done + held, HeldRunDescriptor.position(heldRun, place))) {
                    break;
                }
                held++;
            } else {
                final int next = heldRun == NONE ? end : mine.next(heldRun, place, end, true);
                final int fresh = holdNew(done + held, offset + held, place, next - place);
                held += fresh;
                if (fresh < next - place) {
                    break;
                }
            }
        }
        if (held > 0) {
            mine.stored(heldRun);
        }
        return held;
    }

    /** Holds blocks that the slot does not hold: all of them, or none. */
    private int holdNew(int done, int blockOffset, int place, int blocks) {
        if (heldRun == NONE) {
            heldRun = mine.allocate(run, above);
            if (heldRun == NONE) {
                return 0;
            }
            if (above != NONE) {
                mine.stored(above);
            }
        }
        if (holders.prepare(run, slot, heldRun, place)
                && mine.putNames(heldRun, place, names, done, blocks)) {
            final int position = HeldRunDescriptor.position(heldRun, place);
            final EngineHashIndex.Insertion added = myNames.add(names, done, blocks, position);
            if (added == EngineHashIndex.Insertion.DONE) {
                mine.hold(heldRun, place, blocks);
                noteUnsettled();
                holders.held(run, blockOffset, blocks, slot, heldRun);
                Arrays.fill(outcomes, done, done + blocks, STORED);
                heldChange += blocks;
                return blocks;
            }
            conflict = added == EngineHashIndex.Insertion.KNOWN;
        }
        if (holders.abandon(run, slot, heldRun)) {
            heldRun = NONE;
        }
        return 0;
    }

    /** Stores a block that the slot holds: one more copy, or one more name. */
    private boolean storeAgain(int done, int position) {
        final long name = names[done];
        final int known = mine.name(position) == name ? position : myNames.position(name);
        if (known == NONE) {
            if (!myNames.addAlias(name, position)) {
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
        outcomes[done] = refreshHeld ? KEPT : COPIED;
        return refreshHeld || myNames.copies(name, myNames.copies(name) + 1);
    }

    /** Takes back the blocks stored so far, last first. */
    private void undo(int done) {
        for (int i = done - 1; i >= 0; i--) {
            if (outcomes[i] == STORED) {
                release(names[i], myNames.position(names[i]));
            } else if (outcomes[i] == COPIED) {
                myNames.copies(names[i], myNames.copies(names[i]) - 1);
            }
        }
    }

    private boolean contradictsItself(boolean root, long parent) {
        if (repeatCheck.repeats(names, count)) {
            return true;
        }
        for (int i = 0; !root && i < count; i++) {
            if (names[i] == parent) {
                return true;
            }
        }
        return false;
    }

    /** Lets go of the names that stand for other blocks than those being stored. */
    private void releaseConflicting(boolean root, long parent) {
        final int traced = trace(root, parent);
        for (int i = 0; i < count; i++) {
            final int position = myNames.position(names[i]);
            final boolean inPlace = i < traced && position == tracedPosition(i);
            outcomes[i] = position == NONE || inPlace ? KEPT : CONFLICTING;
        }
        for (int i = 0; i < count; i++) {
            // letting one go without memory for the hole lets others behind it go too
            final int position = outcomes[i] == CONFLICTING ? myNames.position(names[i]) : NONE;
            if (position != NONE) {
                release(names[i], position);
                conflictingStores.add(1);
            }
        }
    }

    private int tracedPosition(int i) {
        final int found = holders.findHeldRun(tracedRuns[i], slot);
        return found == NONE
                ? NONE
                : HeldRunDescriptor.position(found, tree.first(tracedRuns[i]) + tracedOffsets[i]);
    }

    /** Counts the names and blocks of the store that are new. */
    private void countNew(boolean root, long parent) {
        final int traced = trace(root, parent);
        newNames = 0;
        newBlocks = 0;
        for (int i = 0; i < count; i++) {
            newNames += isKnown(i, traced) ? 0 : 1;
            newBlocks += i < traced && holders.isHeld(tracedRuns[i], tracedOffsets[i]) ? 0 : 1;
        }
    }

    /** Whether the slot has a name: at the block's own place, or, where that matters, anywhere. */
    private boolean isKnown(int i, int traced) {
        final int position = i < traced ? tracedPosition(i) : NONE;
        if (position != NONE && mine.isHeld(position) && mine.name(position) == names[i]) {
            return true;
        }
        return myNames.position(names[i]) != NONE;
    }

    /** Finds the blocks being stored in the tree, as far as they are there; returns how many. */
    private int trace(boolean root, long parent) {
        if (tracedRuns.length < count) {
            tracedRuns = new int[count];
            tracedOffsets = new int[count];
        }
        startAt(root, root ? NONE : myNames.position(parent));
        int traced = 0;
        while (traced < count) {
            if (offset == tree.length(run)) {
                run = tree.child(run, locals[traced]);
                offset = 0;
                if (run == RadixTree.NONE) {
                    break;
                }
            }
            if (tree.hash(run, offset) != locals[traced]) {
                break;
            }
            tracedRuns[traced] = run;
            tracedOffsets[traced++] = offset++;
        }
        return traced;
    }

    /**
     * Notes that copies of blocks are gone. Writer thread.
     *
     * @param workerSlot worker slot
     * @param engineHashes the slot's names of the blocks, [blockCount]
     * @param blockCount number of blocks
     * @param rule whether each removal takes one copy or all
     * @return how many of the names were unknown, and not of {@link #missingBlocks}; those change
     *     nothing
     * @throws IndexOutOfBoundsException if the slot or {@code blockCount} is out of range
     */
    public int remove(int workerSlot, long[] engineHashes, int blockCount, CopyRule rule) {
        final int lane = writer.enter();
        try {
            return removeInside(workerSlot, engineHashes, blockCount, rule);
        } finally {
            writer.exit(lane);
        }
    }

    private int removeInside(int workerSlot, long[] engineHashes, int blockCount, CopyRule rule) {
        Objects.checkFromIndexSize(0, blockCount, engineHashes.length);
        begin(workerSlot, engineHashes, blockCount);
        int unknown = 0;
        int i = 0;
        while (i < count) {
            final int position = myNames.findExpected(names[i]);
            if (position == NONE) {
                unknown++;
                i++;
            } else if (!myNames.hasRecords()) {
                i += removeFrom(i, position);
            } else {
                removeOne(names[i], position, rule);
                myNames.expect(position - 1);
                i++;
            }
        }
        end();
        return removed(count, unknown);
    }

    /** Counts those that are not held as removals of missing blocks, or of unknown ones. */
    private int removed(int removed, int notHeld) {
        final int unknown = missing.removed(slot, removed, notHeld);
        missingRemovals.add(notHeld - unknown);
        unknownRemovals.add(unknown);
        return unknown;
    }

    /** Removes a name and those after it that go on from it either way; returns how many. */
    private int removeFrom(int first, int position) {
        final int from = HeldRunDescriptor.heldRun(position);
        final int place = HeldRunDescriptor.place(position);
        int removed = mine.isSolid(from) ? lastNames(first, from, place) : 0;
        if (removed > 0) {
            final boolean all = removed == mine.held(from);
            final int high = mine.high(from);
            final int last = HeldRunDescriptor.position(from, high - 1);
            final int next = all ? holders.lastBefore(slot, from) : last - removed;
            myNames.remove(names, first, removed, position, place == high - 1 ? -1 : 1);
            holders.letGoLast(slot, from, removed);
            myNames.expect(next);
        } else {
            removed = 1;
            myNames.remove(names, first, 1, position, 1);
            letGo(from, place);
            myNames.expect(position - 1, position + 1);
        }
        heldChange -= removed;
        return removed;
    }

    /**
     * How many of the next names are the last of a solid held run, in the order of its blocks or
     * against it; 0 = none or not all up to the last.
     */
    private int lastNames(int first, int from, int place) {
        final int low = mine.low(from);
        final int high = mine.high(from);
        int same = 1;
        if (place == high - 1) {
            final int most = Math.min(count - first, high - low);
            while (same < most && mine.name(from, place - same) == names[first + same]) {
                same++;
            }
            return same;
        }
        final int most = high - place;
        if (most > count - first || first < notLastBefore) {
            return 0;
        }
        while (same < most && mine.name(from, place + same) == names[first + same]) {
            same++;
        }
        if (same < most) {
            notLastBefore = first + same;
            return 0;
        }
        return same;
    }

    private void removeOne(long name, int position, CopyRule rule) {
        final int copies = myNames.copies(name);
        if (rule == CopyRule.PHYSICAL && copies > 1) {
            myNames.copies(name, copies - 1);
        } else {
            release(name, position);
        }
    }

    /** Lets the slot go of a place; without memory to note the hole, of all behind it too. */
    private void letGo(int from, int place) {
        if (holders.letGoOne(slot, from, place)) {
            return;
        }
        for (int p = mine.high(from) - 1; p > place; p--) {
            while (mine.holds(from, p)) {
                forgotten[0] = mine.name(from, p);
                release(forgotten[0], HeldRunDescriptor.position(from, p));
                forgottenBlocks.add(1);
                gaveUp(slot, forgotten, 1);
            }
        }
        holders.letGoLast(slot, from, 1);
    }

    /**
     * Sets the number of copies of a block that are left, for engines that announce it. Writer
     * thread.
     *
     * @param workerSlot worker slot
     * @param engineHash the slot's name of the block
     * @param remainingCopies copies left; 0 or less = the block is gone
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void removeTo(int workerSlot, long engineHash, int remainingCopies) {
        final int lane = writer.enter();
        try {
            removeToInside(workerSlot, engineHash, remainingCopies);
        } finally {
            writer.exit(lane);
        }
    }

    private void removeToInside(int workerSlot, long engineHash, int remainingCopies) {
        begin(workerSlot, names, 0);
        final int position = myNames.position(engineHash);
        if (position == NONE) {
            final int removed = remainingCopies <= 0 ? 1 : 0;
            removed(removed, removed);
        } else if (remainingCopies <= 0) {
            release(engineHash, position);
            removed(1, 0);
        } else {
            myNames.copies(engineHash, remainingCopies);
        }
        end();
    }

    /**
     * Says that from here on all {@link #missingBlocks} of a slot are stored again. Writer thread.
     */
    public void beginRefill(int workerSlot) {
        missing.beginRefill(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /**
     * Says that all {@link #missingBlocks} of a slot have been stored again: none is missing any
     * more, unless there was no room for one since {@link #beginRefill}. Writer thread.
     */
    public void endRefill(int workerSlot) {
        missing.endRefill(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /**
     * Forgets everything that a slot holds; its applied sequence stays. Writer thread. Takes time
     * for each run that the slot holds, not for each block.
     *
     * @return engine hashes dropped
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public int clear(int workerSlot) {
        final int lane = writer.enter();
        try {
            return clearInside(workerSlot);
        } finally {
            writer.exit(lane);
        }
    }

    private int clearInside(int workerSlot) {
        begin(workerSlot, names, 0);
        for (int h = 0; h < mine.end(); h++) {
            while (mine.isUsed(h)) {
                if (mine.isSolid(h)) {
                    holders.letGoLast(slot, h, mine.held(h));
                } else {
                    holders.letGoOne(slot, h, mine.high(h) - 1);
                }
            }
        }
        myNames.clear();
        missing.cleared(slot);
        final int dropped = (int) heldBlocks(slot);
        heldChange = -dropped;
        end();
        return dropped;
    }

    private void begin(int workerSlot, long[] engineHashes, int blockCount) {
        Objects.checkIndex(workerSlot, config.maxWorkerSlots());
        slot = workerSlot;
        mine = slots[workerSlot];
        myNames = slotNames[workerSlot];
        names = engineHashes;
        count = blockCount;
        heldChange = 0;
        notLastBefore = 0;
    }

    private void end() {
        shares.add(slot, heldChange);
    }

    /** Takes a name away with all its copies; its block goes unless it has another name. */
    private void release(long name, int position) {
        heldChange--;
        if (!myNames.remove(name)) {
            letGo(HeldRunDescriptor.heldRun(position), HeldRunDescriptor.place(position));
        }
    }

    // -- any thread -------------------------------------------------------------------------

    /**
     * Publishes the number of the last event applied for a slot: a reader that sees it sees what
     * the event changed. Writer thread.
     *
     * @param sequence event number, or {@link #NO_EVENT} when the slot gets a new tenant
     * @throws IndexOutOfBoundsException if the slot is out of range
     */
    public void eventApplied(int workerSlot, long sequence) {
        Objects.checkIndex(workerSlot, config.maxWorkerSlots());
        slotCells.putLongRelease(SlotCellDescriptor.appliedSequenceOffset(workerSlot), sequence);
    }

    /** A run on the way through the tree, with the sequence hash of the block before it. */
    private record Visit(int run, long sequenceHash) {}

    /** Shows every held block, in no particular order. Writer thread; for tests and dumps. */
    public void forEach(BlockVisitor visitor) {
        final int lane = writer.enter();
        try {
            forEachInside(visitor);
        } finally {
            writer.exit(lane);
        }
    }

    private void forEachInside(BlockVisitor visitor) {
        final Deque<Visit> open = new ArrayDeque<>();
        open.push(new Visit(tree.root(), 0));
        while (!open.isEmpty()) {
            final Visit visit = open.pop();
            long sequence = visit.sequenceHash;
            for (int b = 0; b < tree.length(visit.run); b++) {
                final long local = tree.hash(visit.run, b);
                sequence =
                        tree.depth(visit.run) + b == 0
                                ? local
                                : BlockHasher.nextSequenceHash(sequence, local);
                showHolders(visit.run, b, sequence, visitor);
            }
            for (int child : tree.children(visit.run)) {
                open.push(new Visit(child, sequence));
            }
        }
    }

    private void showHolders(int shown, int block, long sequence, BlockVisitor visitor) {
        final int place = tree.first(shown) + block;
        for (int holder = tree.lastHolder(shown);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(shown, holder)) {
            final int owner = tree.holderSlot(shown, holder);
            final int held = tree.holderTag(shown, holder);
            if (!slots[owner].holds(held, place)) {
                continue;
            }
            final int position = HeldRunDescriptor.position(held, place);
            slotNames[owner].forEachOf(
                    position, (name, copies) -> visitor.block(owner, name, sequence, copies));
        }
    }

    /**
     * Finds how many leading blocks of a prompt each worker slot holds. Any thread.
     *
     * <p>Each block counted was held by that slot at some moment of the call, block by block: not a
     * snapshot of the whole prefix; a store that is being refused for want of memory may be seen in
     * part until it is taken back. A concurrent write may hide a block from this call (undercount)
     * but never invents one; while the writer is quiet the result is exact.
     *
     * @param localHashes local hash of block {@code i} at index {@code i}; [blockCount], not copied
     * @param blockCount blocks to match, 0..{@code localHashes.length}
     * @param out cleared, then filled with the depth in blocks of each slot; caller-owned, reused
     * @return deepest match in blocks, 0 when nothing matched
     * @throws IndexOutOfBoundsException if {@code blockCount} is negative or beyond the array
     * @throws IllegalArgumentException if {@code out} has fewer slots than the index
     * @throws io.kvasir.core.memory.ClosedException if the index is closed
     */
    public int match(long[] localHashes, int blockCount, OverlapScores out) {
        final int lane = gate.enterOrThrow();
        try {
            return matchInside(localHashes, blockCount, out);
        } finally {
            gate.exit(lane);
        }
    }

    /** The same as {@link #match}, for a caller that has entered {@link #gate()}. */
    public int matchInside(long[] localHashes, int blockCount, OverlapScores out) {
        Objects.checkFromIndexSize(0, blockCount, localHashes.length);
        return tree.match(localHashes, blockCount, out);
    }

    /** Number of the last event applied for a slot, {@link #NO_EVENT} before the first. */
    public long appliedSequence(int workerSlot) {
        Objects.checkIndex(workerSlot, config.maxWorkerSlots());
        return slotCells.getLongAcquire(SlotCellDescriptor.appliedSequenceOffset(workerSlot));
    }

    /**
     * Copies the numbers of the last events applied for the first slots; each by itself is whole.
     * What the caller reads of the index afterwards is not older. Any thread.
     *
     * @param out number for slot {@code i} at index {@code i}; {@link #NO_EVENT} before the first
     * @param count slots, at most {@code maxWorkerSlots} and {@code out.length}
     * @throws IndexOutOfBoundsException if {@code count} is beyond either
     */
    public void appliedSequences(long[] out, int count) {
        Objects.checkFromIndexSize(0, count, Math.min(out.length, config.maxWorkerSlots()));
        slotCells.getLongs(SlotCellDescriptor.appliedSequenceOffset(0), out, 0, count);
        VarHandle.acquireFence();
    }

    /** Distinct blocks that any slot holds. */
    public long blocks() {
        return holders.blocks();
    }

    /** (Worker slot, engine hash) pairs. */
    public long heldBlocks() {
        return shares.total();
    }

    /** Engine hashes that a slot holds. */
    public long heldBlocks(int workerSlot) {
        return shares.held(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /** Engine hashes that each slot has room for when all that hold something want as much. */
    public long share() {
        return config.maxHeldBlocks() / Math.max(1, shares.holders());
    }

    /**
     * Blocks that a slot has announced and that are not held for want of room: refused, stored
     * behind such a block, or evicted, less those that it has removed since. An engine hash that is
     * removed and not held is taken for one of them as long as there are some. There are none any
     * more after {@link #clear}, or when the slot has removed as many blocks, held or not, as it
     * had announced when it last got a missing one.
     */
    public long missingBlocks(int workerSlot) {
        return missing.missing(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /**
     * Whether the {@link #missingBlocks} of a slot would fit, and a tenth of each limit would be
     * left; of what memory they need, the most usual runs need less. Any thread.
     */
    public boolean hasRoom(int workerSlot) {
        final long blocks = missingBlocks(workerSlot);
        return heldBlocks() + blocks <= part(config.maxHeldBlocks())
                && blocks() + blocks <= part(config.maxBlocks())
                && usedBytes() + blocks * ROOM_PER_BLOCK <= part(config.budgetBytes());
    }

    private static long part(long limit) {
        return limit - limit / ROOM_LEFT;
    }

    /** Blocks of a slot that were not stored for want of room. */
    public long refusedBlocks(int workerSlot) {
        return missing.refused(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /** Blocks of a slot that were given up for others. */
    public long evictedBlocks(int workerSlot) {
        return missing.evicted(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /** Removals of {@link #missingBlocks} of a slot. */
    public long missingRemovals(int workerSlot) {
        return missing.removed(Objects.checkIndex(workerSlot, config.maxWorkerSlots()));
    }

    /** Off-heap bytes allocated; constant from construction to close. */
    public long bytes() {
        return arena.bytes();
    }

    /** Bytes of the budget that are in use now. */
    public long usedBytes() {
        return arena.usedLines() * BuddyArena.LINE_LENGTH;
    }

    /** Sizes that the index was made with. */
    public PrefixIndexConfig config() {
        return config;
    }

    /** Stores refused because the parent was not held, and not for want of room. */
    public long unknownParents() {
        return unknownParents.get();
    }

    /** Stores refused because the parent was not held for want of room. */
    public long missingParents() {
        return missingParents.get();
    }

    /** Blocks given up for others. */
    public long evictedBlocks() {
        return evictedBlocks.get();
    }

    /** Engine hashes to be removed that were not held for want of room. */
    public long missingRemovals() {
        return missingRemovals.get();
    }

    /** Stores refused because they did not fit. */
    public long capacityRefusals() {
        return capacityRefusals.get();
    }

    /** Stores refused as contradicting themselves. */
    public long invalidStores() {
        return invalidStores.get();
    }

    /** Engine hashes that were stored again for another block. */
    public long conflictingStores() {
        return conflictingStores.get();
    }

    /** Engine hashes to be removed that were not held, and not for want of room. */
    public long unknownRemovals() {
        return unknownRemovals.get();
    }

    /** Held blocks given up because there was no memory to note a hole before them. */
    public long forgottenBlocks() {
        return forgottenBlocks.get();
    }

    /** Where everything lives; for tests that look at all of it. */
    BuddyArena arena() {
        return arena;
    }

    /** The runs; for tests. */
    RadixTree tree() {
        return tree;
    }

    /** What keeps runs, holders and held runs in agreement; for tests. */
    HolderConsistency holders() {
        return holders;
    }

    /** What a slot holds; for tests. */
    HeldRuns heldRuns(int workerSlot) {
        return slots[workerSlot];
    }

    /** What is given up for others; for tests. */
    Evictor evictor() {
        return evictor;
    }

    /** Engine hashes of a slot; for tests. */
    EngineHashLookup names(int workerSlot) {
        return slotNames[workerSlot];
    }

    /** Keeps the memory while callers are inside. */
    public MemoryGate gate() {
        return gate;
    }

    /** How the writer thread keeps the memory; pinned by a pipeline for as long as it runs. */
    public WriterLane writer() {
        return writer;
    }

    /**
     * Closes the gate, and with it all structures that share it: the memory is given back when
     * nobody is inside any more. Any thread, at any time; a second call does nothing.
     */
    @Override
    public void close() {
        gate.close();
    }
}
