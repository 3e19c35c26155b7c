package io.kvasir.core.index;

import static io.kvasir.core.index.HeldRuns.NO_HELD_RUN;

import io.kvasir.core.radix.RadixTree;

import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/**
 * Shows all that one worker slot holds, in slices: what the same further events need to lead to the
 * same answers. Only the order in which blocks would be evicted is not shown. Writer thread.
 *
 * <p>Between two slices the index may be written for all other slots, but nothing may be stored,
 * removed or cleared for this one: the caller keeps its events back, and the index evicts from
 * other slots meanwhile, at the worst from the one that stores. {@link #close} ends that.
 *
 * <p>The arrays of hashes that the slot holds something of are shown one by one, each after the one
 * that it continues from; the blocks before the first held one of a path, and those between, are
 * holes. An array is known by its first segment, whose number stays the same as long as anything
 * after it is held.
 */
public final class SlotExport implements AutoCloseable {
    private static final int FIRST_TASKS = 16;
    private static final int NO_HOLE = -1;
    private static final int[] NONE = {};

    private final RadixTree tree;
    private final HolderConsistency holders;
    private final IndexCapacity capacity;
    private final HeldRuns heldRuns;
    private final EngineHashLookup lookup;
    private final int slot;
    private final SlotPath path = new SlotPath();

    /** Held runs whose blocks have been shown. */
    private final BitSet shown = new BitSet();

    /**
     * First segment of each array that was shown with holes → numbers of these by offset, as far as
     * it was shown.
     */
    private final Map<Integer, int[]> holes = new HashMap<>();

    private int holeCount;

    /** Arrays to show, the last one first: first segment, blocks of it, what the slot holds. */
    private int[] tasks = new int[3 * FIRST_TASKS];

    private int taskCount;
    private int nextHeldRun;
    private int nextRecord;
    private final boolean pinned;
    private boolean open = true;

    SlotExport(IndexTables tables, IndexCapacity capacity, int slot) {
        this(tables, capacity, slot, true);
        capacity.pin(slot);
    }

    private SlotExport(IndexTables tables, IndexCapacity capacity, int slot, boolean pinned) {
        this.tree = tables.tree;
        this.holders = tables.holders;
        this.capacity = capacity;
        this.heldRuns = tables.heldRuns[slot];
        this.lookup = tables.lookups[slot];
        this.slot = slot;
        this.pinned = pinned;
    }

    /** One that is shown and closed before the index is written again, so nothing is pinned. */
    static SlotExport atOnce(IndexTables tables, IndexCapacity capacity, int slot) {
        return new SlotExport(tables, capacity, slot, false);
    }

    /**
     * Shows the next blocks.
     *
     * @param blocks about so many, at least one and up to {@value SlotPath#MAX_BLOCKS} more
     * @return whether there may be more
     * @throws IllegalStateException once closed
     */
    public boolean show(int blocks, SlotVisitor visitor) {
        if (!open) {
            throw new IllegalStateException("the export of slot " + slot + " is closed");
        }
        int left = Math.max(1, blocks);
        while (left > 0 && (taskCount > 0 || nextHeldRun < heldRuns.end())) {
            left -= taskCount == 0 ? beginHeldRun() : goOn(visitor);
        }
        while (left > 0 && nextRecord < lookup.records().end()) {
            showRecord(nextRecord++, visitor);
            left--;
        }
        return left <= 0;
    }

    /** The slot may be changed again. A second call does nothing. */
    @Override
    public void close() {
        if (open) {
            open = false;
            if (pinned) {
                capacity.unpin();
            }
        }
    }

    private int beginHeldRun() {
        final int heldRun = nextHeldRun++;
        if (heldRuns.isUsed(heldRun) && !shown.get(heldRun)) {
            final int run = heldRuns.run(heldRun);
            push(tree.segmentAt(run, 0), heldRuns.high(heldRun), heldRun);
        }
        return 1;
    }

    private void push(int array, int blocks, int heldRun) {
        if (3 * taskCount == tasks.length) {
            tasks = Arrays.copyOf(tasks, 2 * tasks.length);
        }
        tasks[3 * taskCount] = array;
        tasks[3 * taskCount + 1] = blocks;
        tasks[3 * taskCount + 2] = heldRun;
        taskCount++;
    }

    /** Shows the array that is next, or puts the one before it first; says what that has cost. */
    private int goOn(SlotVisitor visitor) {
        final int top = 3 * (taskCount - 1);
        final int array = tasks[top];
        final int blocks = tasks[top + 1];
        final int heldRun = tasks[top + 2];
        final int from = shownBlocks(array, heldRun);
        if (from >= blocks) {
            taskCount--;
            return 1;
        }
        if (from == 0 && needsArrayBefore(array)) {
            return 1;
        }
        final int high = heldRun == NO_HELD_RUN ? 0 : heldRuns.high(heldRun);
        final int to = Math.max(blocks, high);
        showArray(array, heldRun, from, to, visitor);
        taskCount--;
        return to - from;
    }

    private int shownBlocks(int array, int heldRun) {
        final int[] numbers = holes.get(array);
        if (numbers != null) {
            return numbers.length;
        }
        return heldRun != NO_HELD_RUN && shown.get(heldRun) ? heldRuns.high(heldRun) : 0;
    }

    /** Puts the array that one continues from first, unless it was shown so far. */
    private boolean needsArrayBefore(int array) {
        final int parent = tree.parent(array);
        if (parent == tree.root()) {
            return false;
        }
        final int before = tree.segmentAt(parent, 0);
        final int blocks = tree.first(parent) + tree.length(parent);
        final int heldRun = holders.findHeldRun(parent, slot);
        if (shownBlocks(before, heldRun) >= blocks) {
            return false;
        }
        push(before, blocks, heldRun);
        return true;
    }

    private void showArray(int array, int heldRun, int from, int to, SlotVisitor visitor) {
        beginPath(array, heldRun, from);
        int run = tree.segmentAt(array, from);
        int end = tree.first(run) + tree.length(run);
        int[] numbers = NONE;
        for (int offset = from; offset < to; offset++) {
            if (offset == end) {
                run = tree.nextSegment(run);
                end = tree.first(run) + tree.length(run);
            }
            final long localHash = tree.hash(run, offset - tree.first(run));
            if (heldRun != NO_HELD_RUN && heldRuns.holds(heldRun, offset)) {
                path.addBlock(localHash, heldRuns.name(heldRun, offset));
            } else {
                if (numbers.length == 0) {
                    numbers = holeNumbers(array, to);
                }
                numbers[offset] = holeCount++;
                path.addHole(localHash);
            }
        }
        if (heldRun != NO_HELD_RUN) {
            shown.set(heldRun);
        }
        visitor.path(path);
    }

    /** Numbers of the holes of an array, with room up to an offset. */
    private int[] holeNumbers(int array, int to) {
        final int[] before = holes.get(array);
        final int[] numbers = Arrays.copyOf(before == null ? NONE : before, to);
        Arrays.fill(numbers, before == null ? 0 : before.length, to, NO_HOLE);
        holes.put(array, numbers);
        return numbers;
    }

    private void beginPath(int array, int heldRun, int from) {
        if (from > 0) {
            beginAfter(array, heldRun, from - 1);
            return;
        }
        final int parent = tree.parent(array);
        if (parent == tree.root()) {
            path.begin(SlotPath.Parent.ROOT, 0);
        } else {
            beginAfter(
                    tree.segmentAt(parent, 0),
                    holders.findHeldRun(parent, slot),
                    tree.first(parent) + tree.length(parent) - 1);
        }
    }

    private void beginAfter(int array, int heldRun, int offset) {
        if (heldRun != NO_HELD_RUN && heldRuns.holds(heldRun, offset)) {
            path.begin(SlotPath.Parent.BLOCK, heldRuns.name(heldRun, offset));
        } else {
            path.begin(SlotPath.Parent.HOLE, holes.get(array)[offset]);
        }
    }

    /** Shows an alias, and copies beyond the first. */
    private void showRecord(int record, SlotVisitor visitor) {
        if (!lookup.isUsed(record)) {
            return;
        }
        final EngineHashRecords records = lookup.records();
        final long engineHash = records.engineHash(record);
        final int position = records.position(record);
        if (heldRuns.name(position) != engineHash) {
            final int heldRun = HeldRunDescriptor.heldRun(position);
            final int offset = HeldRunDescriptor.arrayOffset(position);
            final int run = tree.segmentAt(heldRuns.run(heldRun), offset);
            beginPath(tree.segmentAt(run, 0), heldRun, offset);
            path.addBlock(tree.hash(run, offset - tree.first(run)), engineHash);
            visitor.path(path);
        }
        if (records.copies(record) > 1) {
            visitor.copies(engineHash, records.copies(record));
        }
    }
}
