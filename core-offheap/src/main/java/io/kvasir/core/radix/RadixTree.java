package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.KeptWords;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.memory.WriterCounter;

import java.security.SecureRandom;

/**
 * A radix tree over local hashes whose edges are runs of up to 512 hashes, each a contiguous array,
 * with the worker slots that hold each run. All memory comes from one {@link BuddyArena}.
 *
 * <p>A run that is split becomes two headers over the same array, its <em>segments</em>; hashes
 * never move. Children leave at the end of a run only, so a run with children has its final length.
 * The last segment of an array may grow in place while it has no children and few slots hold it.
 *
 * <p>One writer thread calls everything but {@link #match}; what a reader needs to stay right is
 * the order of the stores here and the checks in {@link RadixMatcher}: whatever a reader may still
 * be reading is given back only after the version of its run has changed.
 */
public final class RadixTree {
    /** No run. */
    public static final int NO_RUN = 0;

    /** No holder. */
    public static final int NO_HOLDER = RunHolders.NO_HOLDER;

    /** Largest number of worker slots of one tree, and of all that is kept for each slot. */
    public static final int MAX_WORKER_SLOTS = 1 << 16;

    /** Longest run in blocks. */
    public static final int MAX_RUN = RunDescriptor.MAX_RUN;

    private static final int HASHES_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;
    private static final int HEADER_ORDER = BuddyArena.orderFor(RunDescriptor.HEADER_LENGTH);
    private static final int SLAB_ORDER = BuddyArena.orderFor(32 * RunDescriptor.HEADER_LENGTH);

    /** Unused array and name entries that are cheaper than one more run. */
    private static final int WASTE_LIMIT = 48;

    private final BuddyArena arena;
    private final OffHeap memory;
    private final RunVersions versions;
    private final RunHolders holders;
    private final RadixMatcher reader;
    private final RunChildren children;
    private final int root;
    private final WriterCounter runs = new WriterCounter();
    private final WriterCounter blocks = new WriterCounter();
    private int freeRun = NO_RUN;

    /**
     * Makes an empty tree.
     *
     * @param arena where runs live; may serve others too
     * @param slots worker slots
     * @throws IllegalArgumentException if the arena has no room for the root
     */
    public RadixTree(BuddyArena arena, int slots) {
        this(arena, slots, new SecureRandom().nextLong());
    }

    /**
     * Makes an empty tree.
     *
     * @param secret for the tables of children, of which clients must know nothing
     * @throws IllegalArgumentException if the arena has no room for the root
     */
    public RadixTree(BuddyArena arena, int slots, long secret) {
        this(arena, slots, secret, NO_RUN);
    }

    /**
     * Goes on with a tree that an earlier process has left in the arena, to be followed by {@link
     * #keep}.
     *
     * @param secret the same
     * @param root the {@link #root} that it had; {@link #NO_RUN} to make an empty tree
     */
    public RadixTree(BuddyArena arena, int slots, long secret, int root) {
        this.arena = arena;
        this.memory = arena.memory();
        this.versions = new RunVersions(memory);
        this.holders = new RunHolders(arena, versions, slots);
        this.children = new RunChildren(arena, versions, secret);
        this.root = root == NO_RUN ? newRun() : root;
        if (this.root == NO_RUN) {
            throw new IllegalArgumentException(
                    "arena is too small for a tree: bytes=" + arena.bytes());
        }
        this.reader = new RadixMatcher(memory, this.root, slots, children.secret());
    }

    /** Names what the tree has beside its memory, but for the secret and the root. */
    public void keep(KeptWords words) {
        freeRun = words.keep(freeRun);
        words.keep(runs);
        words.keep(blocks);
    }

    /** The run of length 0 that every path starts at. */
    public int root() {
        return root;
    }

    /**
     * Finds how many leading blocks each slot holds; any thread, never waits.
     *
     * @param hashes local hash of block {@code i} at index {@code i}; [count]
     * @param count blocks, at most {@code hashes.length}
     * @param out overwritten
     * @return deepest holder in blocks
     */
    public int match(long[] hashes, int count, OverlapScores out) {
        return reader.match(hashes, count, out);
    }

    /** Runs but the root; any thread. */
    public long runs() {
        return runs.get() - 1;
    }

    /** First header that is free, or {@link #NO_RUN}; for tests. */
    int firstFreeRun() {
        return freeRun;
    }

    /** Blocks in all runs; any thread. */
    public long blocks() {
        return blocks.get();
    }

    // -- one run ----------------------------------------------------------------------------

    /** Blocks of a run. */
    public int length(int run) {
        return RunDescriptor.length(extent(run));
    }

    /** Offset of a run's first block in its array. */
    public int first(int run) {
        return RunDescriptor.first(extent(run));
    }

    /** Blocks before the run's first. */
    public int depth(int run) {
        return memory.getInt(at(run) + RunDescriptor.DEPTH_OFFSET);
    }

    /** Run at whose end a run begins. */
    public int parent(int run) {
        final int end = (int) memory.getLong(at(run) + RunDescriptor.PARENT_OFFSET);
        return memory.getInt(at(end) + RunDescriptor.END_RUN_OFFSET);
    }

    /** Local hash of a block. */
    public long hash(int run, int block) {
        final long extent = extent(run);
        return memory.getLong(hashOffset(extent, block));
    }

    /** How many blocks from {@code block} on have the hashes given, at most to the run's end. */
    public int matching(int run, int block, long[] hashes, int from, int count) {
        final long extent = extent(run);
        return memory.matchingLongs(
                hashOffset(extent, block),
                hashes,
                from,
                Math.min(count, RunDescriptor.length(extent) - block));
    }

    /** Next segment of the same array, deeper; or {@link #NO_RUN}. */
    public int nextSegment(int run) {
        return memory.getInt(at(run) + RunDescriptor.NEXT_SEGMENT_OFFSET);
    }

    /** Segment of the same array before this one; or {@link #NO_RUN}. */
    public int previousSegment(int run) {
        return memory.getInt(at(run) + RunDescriptor.PREVIOUS_SEGMENT_OFFSET);
    }

    /** Segment of the array of {@code run} that contains an offset of the array. */
    public int segmentAt(int run, int arrayOffset) {
        int segment = run;
        while (arrayOffset < first(segment)) {
            segment = previousSegment(segment);
        }
        while (arrayOffset
                >= RunDescriptor.first(extent(segment)) + RunDescriptor.length(extent(segment))) {
            segment = nextSegment(segment);
        }
        return segment;
    }

    /** Blocks of a run that no slot holds any more; kept by the owner of the holders. */
    public int unheld(int run) {
        return memory.getInt(at(run) + RunDescriptor.UNHELD_OFFSET);
    }

    /** Sets {@link #unheld}. */
    public void unheld(int run, int blocks) {
        memory.putInt(at(run) + RunDescriptor.UNHELD_OFFSET, blocks);
    }

    /** Line of the counts of holders of a run's array, {@link BuddyArena#NO_LINE} = none. */
    public int holderLine(int run) {
        return memory.getInt(at(run) + RunDescriptor.HOLDER_COUNTS_OFFSET);
    }

    /** Sets {@link #holderLine}; the memory goes with the array. */
    public void holderLine(int run, int line) {
        memory.putInt(at(run) + RunDescriptor.HOLDER_COUNTS_OFFSET, line);
    }

    /**
     * Whether a slot may hold blocks of the array of a run, its first segment, without holding it.
     */
    public boolean isHeadless(int run) {
        return memory.getInt(at(run) + RunDescriptor.HEADLESS_OFFSET) != 0;
    }

    /** Sets {@link #isHeadless}; it stays until the array goes. */
    public void markHeadless(int run) {
        memory.putInt(at(run) + RunDescriptor.HEADLESS_OFFSET, 1);
    }

    /** Blocks that the array of a run has room for. */
    public int arrayCapacity(int run) {
        return capacity(RunDescriptor.line(extent(run)));
    }

    /** Children of a run. */
    public int childCount(int run) {
        return children.count(run);
    }

    /** Child of a run that starts with a local hash, or {@link #NO_RUN}. */
    public int child(int run, long hash) {
        return children.find(run, hash);
    }

    /** Puts all children of a run into an array. Not hot. */
    public int[] children(int run) {
        return children.all(run);
    }

    /** Where runs find their children; for tests. */
    RunChildren runChildren() {
        return children;
    }

    // -- holders -----------------------------------------------------------------------------

    /** Slots that hold a run. */
    public int holders(int run) {
        return holders.count(run);
    }

    /** Whether {@link #findHolder} finds a slot at once, without a search. */
    public boolean hasHolderMap(int run) {
        return holders.isMap(run);
    }

    /**
     * Finds the holder of a slot.
     *
     * @return its name until a holder of the run is added or removed; {@link #NO_HOLDER} = none
     */
    public int findHolder(int run, int slot) {
        return holders.find(run, slot);
    }

    /** Whether a slot has the holder of that name. */
    public boolean isHolder(int run, int holder, int slot) {
        return holders.is(run, holder, slot);
    }

    /** The last holder of a run, or {@link #NO_HOLDER}; the others follow by previousHolder. */
    public int lastHolder(int run) {
        return holders.last(run);
    }

    /** The holder before another, which may have been removed since; or {@link #NO_HOLDER}. */
    public int previousHolder(int run, int holder) {
        return holders.previous(run, holder);
    }

    /** Slot of a holder. */
    public int holderSlot(int run, int holder) {
        return holders.slot(run, holder);
    }

    /** Leading blocks of the run that the slot of a holder holds. */
    public int holderLeading(int run, int holder) {
        return holders.leading(run, holder);
    }

    /** What the owner keeps with a holder. */
    public int holderTag(int run, int holder) {
        return holders.tag(run, holder);
    }

    /** As {@link #lastHolder}, without those that a map says hold the whole run. */
    public int lastHolderNotWhole(int run) {
        return holders.lastNotWhole(run);
    }

    /** As {@link #previousHolder}, without those that a map says hold the whole run. */
    public int previousHolderNotWhole(int run, int holder) {
        return holders.previousNotWhole(run, holder);
    }

    /**
     * Gives the lower segment of a split that begins the slots that hold the whole of a run, which
     * has a map: word by word.
     *
     * @return false when there is no memory for it
     */
    public boolean copyWholeHolders(int run, int lower) {
        return holders.copyWhole(run, lower);
    }

    /**
     * Finds the slots that hold one of two runs with maps and are not known to hold all of both.
     *
     * @param out the slots
     * @return how many they are; {@link #NO_HOLDER} when they are more
     */
    public int differingHolders(int run, int other, int[] out) {
        return holders.differing(run, other, out);
    }

    /** As {@link #setHolder}, of a run that is about to have another length. */
    public void setHolder(int run, int holder, int slot, int leading, int tag, int length) {
        holders.set(run, holder, slot, leading, tag, length);
    }

    /** As {@link #addHolder}, to a run that is about to have another length. */
    public int addHolder(int run, int slot, int leading, int tag, int length) {
        return holders.add(run, slot, leading, tag, length);
    }

    /** Changes a holder. */
    public void setHolder(int run, int holder, int slot, int leading, int tag) {
        holders.set(run, holder, slot, leading, tag);
    }

    /**
     * Adds a slot that does not hold the run yet.
     *
     * @return its holder, or {@link #NO_HOLDER} when there is no memory for one more
     */
    public int addHolder(int run, int slot, int leading, int tag) {
        return holders.add(run, slot, leading, tag);
    }

    /** Takes a slot from the holders of a run; another one may have its name then. */
    public void removeHolder(int run, int holder) {
        holders.remove(run, holder);
    }

    /**
     * After removals: keeps the holders that are left in as little memory; renames them.
     *
     * @param whole leading blocks of a slot that holds the whole run: its length, or {@link
     *     #MAX_RUN} where that stays so when the length changes
     */
    public void fitHolders(int run, int whole) {
        holders.fit(run, whole);
    }

    // -- growing ----------------------------------------------------------------------------

    /**
     * Appends to a run, as far as it has no children and its holders are few: where its array has
     * room, or in a larger array if it is all of its array and not more than one slot holds it.
     *
     * @param arrays how many arrays as large there must be room for, so that a larger one is taken
     * @return blocks appended
     */
    public int append(int run, long[] hashes, int from, int count, int arrays) {
        final long before = extent(run);
        final int line = RunDescriptor.line(before);
        if (line == BuddyArena.NO_LINE
                || childCount(run) != 0
                || nextSegment(run) != NO_RUN
                || holders.isMap(run)) {
            return 0;
        }
        final int length = RunDescriptor.length(before);
        final int end = RunDescriptor.first(before) + length;
        final long extent =
                end + count > capacity(line) ? grow(run, before, count, arrays) : before;
        final int appended = Math.min(count, capacity(RunDescriptor.line(extent)) - end);
        if (appended > 0) {
            memory.putLongs(hashOffset(extent, length), hashes, from, appended);
            // the length (release) after the hashes: a matcher that acquires it reads all of them
            memory.putLongRelease(at(run) + RunDescriptor.EXTENT_OFFSET, extent + appended);
            blocks.add(appended);
        }
        if (extent != before) {
            // the version before the old array is free: a matcher inside it reads the run again
            versions.pagesChanged(run);
            arena.free(line);
        }
        return appended;
    }

    /**
     * Extent of a run in a copy of its array that has more room; as it is where that is not to be.
     */
    private long grow(int run, long extent, int count, int arrays) {
        final int length = RunDescriptor.length(extent);
        final int line = RunDescriptor.line(extent);
        if (previousSegment(run) != NO_RUN
                || holders.count(run) > 1
                || holderLine(run) != BuddyArena.NO_LINE) {
            return extent;
        }
        final int wanted = Math.min(longestRun(arena, arrays), length + count);
        if (wanted <= capacity(line)) {
            return extent;
        }
        final int grown = arena.allocate(BuddyArena.orderFor((long) wanted * Long.BYTES));
        if (grown == BuddyArena.NO_LINE) {
            return extent;
        }
        memory.copy(BuddyArena.offset(line), BuddyArena.offset(grown), (long) length * Long.BYTES);
        return RunDescriptor.extent(grown, 0, length);
    }

    /** Hashes for which an array has room. */
    private int capacity(int line) {
        return HASHES_PER_LINE << arena.order(line);
    }

    /**
     * Adds a child with the first of the hashes given, as many as one run takes.
     *
     * @return the child, or {@link #NO_RUN} when there is no memory for it
     */
    public int addChild(int parent, long[] hashes, int from, int count) {
        final int order = arrayOrder(count);
        int line = BuddyArena.NO_LINE;
        int fits = order;
        while (line == BuddyArena.NO_LINE && fits >= 0) {
            line = arena.allocate(fits--); // a fragmented arena gives shorter runs
        }
        if (line == BuddyArena.NO_LINE) {
            return NO_RUN;
        }
        final int child = newRun();
        if (child == NO_RUN) {
            arena.free(line);
            return NO_RUN;
        }
        final int length = Math.min(count, HASHES_PER_LINE << (fits + 1));
        final long extent = RunDescriptor.extent(line, 0, length);
        final long at = at(child);
        memory.putLongs(hashOffset(extent, 0), hashes, from, length);
        memory.putLongOpaque(at + RunDescriptor.EXTENT_OFFSET, extent);
        memory.putIntOpaque(at + RunDescriptor.DEPTH_OFFSET, depth(parent) + length(parent));
        if (!link(parent, child, hashes[from])) {
            freeRun(child);
            arena.free(line);
            return NO_RUN;
        }
        blocks.add(length);
        return child;
    }

    /** Longest run whose array could be had that many times now. */
    public static int longestRun(BuddyArena arena, int times) {
        final int order = arena.largestOrder(times);
        return order < 0 ? 0 : Math.min(MAX_RUN, HASHES_PER_LINE << Math.min(order, SLAB_ORDER));
    }

    /** Order of the array for a new run: little waste. */
    private static int arrayOrder(int count) {
        final int wanted = Math.min(MAX_RUN, count);
        final int order = BuddyArena.orderFor((long) wanted * Long.BYTES);
        return (HASHES_PER_LINE << order) - wanted > WASTE_LIMIT ? order - 1 : order;
    }

    /**
     * Prepares the split of a run: a second segment over the rest of its array, without holders,
     * that no reader sees yet.
     *
     * @param at blocks that stay in the run, 1..length - 1
     * @return the lower segment, to be given to {@link #finishSplit}; {@link #NO_RUN} = no memory
     */
    public int beginSplit(int run, int at) {
        final int lower = newRun();
        if (lower == NO_RUN) {
            return NO_RUN;
        }
        final long extent = extent(run);
        memory.putLongOpaque(
                at(lower) + RunDescriptor.EXTENT_OFFSET,
                RunDescriptor.extent(
                        RunDescriptor.line(extent),
                        RunDescriptor.first(extent) + at,
                        RunDescriptor.length(extent) - at));
        memory.putIntOpaque(at(lower) + RunDescriptor.DEPTH_OFFSET, depth(run) + at);
        holderLine(lower, holderLine(run));
        return lower;
    }

    /** Drops a segment that {@link #beginSplit} has made, with its holders. */
    public void cancelSplit(int lower) {
        holders.clear(lower);
        freeRun(lower);
    }

    /** Makes the split visible: the lower segment takes the children and becomes the only child. */
    public void finishSplit(int run, int lower) {
        final long below = memory.getLong(at(run) + RunDescriptor.CHILDREN_OFFSET);
        memory.putLongOpaque(at(lower) + RunDescriptor.CHILDREN_OFFSET, below);
        memory.putInt(at(lower) + RunDescriptor.CHILD_COUNT_OFFSET, childCount(run));
        final int next = nextSegment(run);
        memory.putInt(at(lower) + RunDescriptor.NEXT_SEGMENT_OFFSET, next);
        memory.putInt(at(lower) + RunDescriptor.PREVIOUS_SEGMENT_OFFSET, run);
        if (next != NO_RUN) {
            memory.putInt(at(next) + RunDescriptor.PREVIOUS_SEGMENT_OFFSET, lower);
        }
        memory.putInt(at(run) + RunDescriptor.NEXT_SEGMENT_OFFSET, lower);
        final long end = end(run);
        final long other = end(lower);
        end(lower, end);
        // the length before the version (release): a matcher that acquired the new version and
        // read the old length would credit holders of the whole shorter run with the longer one
        memory.putLongOpaque(at(run) + RunDescriptor.EXTENT_OFFSET, extent(run) - length(lower));
        versions.structureChanged(run);
        // stored after the version's fence: a matcher that reads this end finds another version
        end(run, other);
        // the parent (release) after all else of the lower half: a matcher acquires it first
        memory.putLongRelease(at(lower) + RunDescriptor.PARENT_OFFSET, other);
        memory.putInt(at(run) + RunDescriptor.CHILD_COUNT_OFFSET, 1);
        // last (release): findChild acquires the link and finds the lower half complete
        memory.putLongRelease(
                at(run) + RunDescriptor.CHILDREN_OFFSET, RunDescriptor.oneChild(lower));
    }

    /**
     * Undoes a split: a run takes the blocks and the children of its next segment, which is its
     * only child. The holders of the run stay and must be right for the joined run already, those
     * of the segment go.
     */
    public void join(int run) {
        final int lower = nextSegment(run);
        final long below = memory.getLong(at(lower) + RunDescriptor.CHILDREN_OFFSET);
        final int next = nextSegment(lower);
        assert childCount(run) == 1 && parent(lower) == run && holders(lower) <= holders(run);
        // the version before the words below: a matcher that began before it and reads one of them
        // finds it changed; one that begins after it and reads some old, some new, finds a child of
        // another parent or depth, which counts as absent
        versions.structureChanged(run);
        memory.putLongOpaque(at(run) + RunDescriptor.EXTENT_OFFSET, extent(run) + length(lower));
        final long end = end(lower);
        end(lower, end(run));
        end(run, end);
        memory.putInt(at(run) + RunDescriptor.CHILD_COUNT_OFFSET, childCount(lower));
        // after the end (release): these children name it as their parent
        memory.putLongRelease(at(run) + RunDescriptor.CHILDREN_OFFSET, below);
        memory.putInt(at(run) + RunDescriptor.NEXT_SEGMENT_OFFSET, next);
        if (next != NO_RUN) {
            memory.putInt(at(next) + RunDescriptor.PREVIOUS_SEGMENT_OFFSET, run);
        }
        unheld(run, unheld(run) + unheld(lower));
        if (next == NO_RUN && first(run) == 0) {
            memory.putInt(at(run) + RunDescriptor.HEADLESS_OFFSET, 0); // the run is the array
        }
        cancelSplit(lower);
    }

    /** Where the children of a run are; they name it as their parent. */
    long end(int run) {
        return memory.getLong(at(run) + RunDescriptor.END_OFFSET);
    }

    private void end(int run, long end) {
        memory.putLongOpaque(at(run) + RunDescriptor.END_OFFSET, end);
        memory.putInt(at((int) end) + RunDescriptor.END_RUN_OFFSET, run);
    }

    // -- shrinking --------------------------------------------------------------------------

    /** Cuts the end off a run without children; it keeps at least one block. */
    public void truncate(int run, int length) {
        final long extent = extent(run);
        final int cut = RunDescriptor.length(extent) - length;
        assert childCount(run) == 0 && nextSegment(run) == NO_RUN && length > 0;
        memory.putLongOpaque(at(run) + RunDescriptor.EXTENT_OFFSET, extent - cut);
        versions.structureChanged(run);
        // another end, stored after the version's fence: a matcher that took the old length and the
        // old version holds the old end, which no child of the shorter run will name
        end(run, RunDescriptor.nextEnd(end(run)));
        blocks.add(-cut);
        shrinkArray(extent, RunDescriptor.first(extent) + length);
    }

    /** Frees a run without children and holders. */
    public void remove(int run) {
        assert childCount(run) == 0 && holders(run) == 0 && nextSegment(run) == NO_RUN;
        final long extent = extent(run);
        final int above = previousSegment(run);
        children.remove(parent(run), run, hash(run, 0));
        blocks.add(-RunDescriptor.length(extent));
        if (above != NO_RUN) {
            memory.putInt(at(above) + RunDescriptor.NEXT_SEGMENT_OFFSET, NO_RUN);
        }
        final int holders = holderLine(run);
        freeRun(run);
        if (above == NO_RUN) {
            arena.free(RunDescriptor.line(extent));
            if (holders != BuddyArena.NO_LINE) {
                arena.free(holders);
            }
        } else {
            shrinkArray(extent, RunDescriptor.first(extent));
        }
    }

    private void shrinkArray(long extent, int end) {
        final int line = RunDescriptor.line(extent);
        final int order = BuddyArena.orderFor((long) end * Long.BYTES);
        if (order < arena.order(line)) {
            arena.shrink(line, order);
        }
    }

    // -- children ---------------------------------------------------------------------------

    private boolean link(int parent, int child, long hash) {
        // the parent (release) after hashes, extent and depth: a matcher acquires it before them
        memory.putLongRelease(at(child) + RunDescriptor.PARENT_OFFSET, end(parent));
        return children.add(parent, child, hash);
    }

    // -- headers ----------------------------------------------------------------------------

    /** A header without parent, children and holders; its version continues from its last life. */
    private int newRun() {
        if (freeRun == NO_RUN && !newHeaders()) {
            return NO_RUN;
        }
        final int run = freeRun;
        final long at = at(run);
        freeRun = memory.getInt(at + RunDescriptor.NEXT_SEGMENT_OFFSET);
        memory.putLongOpaque(at + RunDescriptor.EXTENT_OFFSET, 0);
        memory.putLongOpaque(at + RunDescriptor.CHILDREN_OFFSET, 0);
        memory.putLongOpaque(at + RunDescriptor.HOLDERS_OFFSET, 0);
        memory.putIntOpaque(at + RunDescriptor.DEPTH_OFFSET, 0);
        memory.putInt(at + RunDescriptor.CHILD_COUNT_OFFSET, 0);
        memory.putInt(at + RunDescriptor.NEXT_SEGMENT_OFFSET, NO_RUN);
        memory.putInt(at + RunDescriptor.PREVIOUS_SEGMENT_OFFSET, NO_RUN);
        memory.putInt(at + RunDescriptor.UNHELD_OFFSET, 0);
        memory.putInt(at + RunDescriptor.HOLDER_COUNTS_OFFSET, BuddyArena.NO_LINE);
        memory.putInt(at + RunDescriptor.HEADLESS_OFFSET, 0);
        runs.add(1);
        return run;
    }

    /** Turns a block of the arena into headers, for good. */
    private boolean newHeaders() {
        int order = SLAB_ORDER;
        int line = BuddyArena.NO_LINE;
        while (line == BuddyArena.NO_LINE && order >= HEADER_ORDER) {
            line = arena.allocate(order--);
        }
        if (line == BuddyArena.NO_LINE) {
            return false;
        }
        final int firstRun = line >> HEADER_ORDER;
        for (int run = firstRun; run < firstRun + (1 << (order + 1 - HEADER_ORDER)); run++) {
            memory.putLongOpaque(at(run) + RunDescriptor.PARENT_OFFSET, 0);
            memory.putLongOpaque(at(run) + RunDescriptor.VERSION_OFFSET, 0);
            end(run, run);
            memory.putInt(at(run) + RunDescriptor.NEXT_SEGMENT_OFFSET, freeRun);
            freeRun = run;
        }
        return true;
    }

    /** Gives a header back: from here on no reader believes anything that it reads of it. */
    private void freeRun(int run) {
        memory.putLongOpaque(at(run) + RunDescriptor.PARENT_OFFSET, 0);
        versions.structureChanged(run);
        end(run, RunDescriptor.nextEnd(end(run)));
        memory.putInt(at(run) + RunDescriptor.NEXT_SEGMENT_OFFSET, freeRun);
        freeRun = run;
        runs.add(-1);
    }

    private long extent(int run) {
        return memory.getLong(at(run) + RunDescriptor.EXTENT_OFFSET);
    }

    private static long hashOffset(long extent, int block) {
        return BuddyArena.offset(RunDescriptor.line(extent))
                + (long) (RunDescriptor.first(extent) + block) * Long.BYTES;
    }

    private static long at(int run) {
        return RunDescriptor.headerOffset(run);
    }
}
