package io.kvasir.core.index;

import io.kvasir.core.memory.LineArena;
import io.kvasir.core.memory.OffHeap;

import java.lang.invoke.VarHandle;

/**
 * The lookup: walks runs from the root without locks while one writer changes them. Stateless; any
 * number of threads.
 *
 * <p>A word of a run is believed when the run's version is the same before and after; a run is
 * believed to continue its parent when it names the parent at that version, and its depth is the
 * one reached. So a run that was split, cut or used again under the reader is noticed: the reader
 * reads it again, or starts at the root, and after a bounded number of tries it takes the rest as
 * absent, which the contract allows. Appended blocks and changed covers need no version: length and
 * each cover are single words, and each says what was true at some moment.
 */
class RunReader {
    /** Moments between two reads; a test steps in to let the writer act. */
    enum Step {
        /** The child is known by its number. */
        CHILD_FOUND,
        /** Version, parent and depth of the run are read. */
        IDENTIFIED,
        /** The extent is read, the hashes not. */
        EXTENT_READ,
        /** The hashes are compared, the covers not read. */
        COMPARED,
        /** The covers are read, the version not checked. */
        CREDITED
    }

    private static final int MAX_TRIES = 64;
    private static final int MAX_RESTARTS = 8;
    private static final int NONE = 0;

    private final OffHeap memory;
    private final int root;
    private final int slots;

    RunReader(OffHeap memory, int root, int slots) {
        this.memory = memory;
        this.root = root;
        this.slots = slots;
    }

    /** Does nothing; see {@link Step}. */
    void at(Step step) {}

    int match(long[] hashes, int count, OverlapScores out) {
        for (int restarts = 0; restarts < MAX_RESTARTS; restarts++) {
            out.begin(slots);
            if (walk(hashes, count, out)) {
                break;
            }
        }
        return out.deepest;
    }

    /** False when the path changed underneath: what was found is true but may be too little. */
    private boolean walk(long[] hashes, int count, OverlapScores out) {
        int run = root;
        long version = versionAcquire(root);
        int depth = 0;
        while (depth < count) {
            final int child = findChild(run, version, hashes[depth]);
            if (child == NONE) {
                return !changed(run, version);
            }
            at(Step.CHILD_FOUND);
            final long parent = RunDescriptor.parentWord(version, run);
            final long at = RunDescriptor.headerOffset(child);
            int matched = 0;
            int length = 0;
            boolean sound = false;
            for (int tries = 0; !sound && tries < MAX_TRIES; tries++) {
                final long childVersion = versionAcquire(child);
                if (memory.getLongAcquire(at + RunDescriptor.PARENT_OFFSET) != parent
                        || memory.getIntOpaque(at + RunDescriptor.DEPTH_OFFSET) != depth) {
                    return !changed(run, version);
                }
                at(Step.IDENTIFIED);
                final long extent = memory.getLongAcquire(at + RunDescriptor.EXTENT_OFFSET);
                at(Step.EXTENT_READ);
                length = RunDescriptor.length(extent);
                out.touched ^= touch(at, extent, hashes, depth + length, count);
                matched =
                        memory.matchingLongs(
                                LineArena.offset(RunDescriptor.line(extent))
                                        + (long) RunDescriptor.first(extent) * Long.BYTES,
                                hashes,
                                depth,
                                Math.min(length, count - depth));
                at(Step.COMPARED);
                out.fullHolders = 0;
                if (matched > 0) {
                    credit(at, depth, matched, out);
                }
                at(Step.CREDITED);
                VarHandle.loadLoadFence(); // all of the run is read before its version again
                if (versionOpaque(child) == childVersion) {
                    sound = true;
                    run = child;
                    version = childVersion;
                } else {
                    out.takeBack(depth);
                    Thread.onSpinWait();
                }
            }
            if (!sound) {
                return true; // the writer changes this run faster than it can be read
            }
            depth += matched;
            if (matched < length || out.fullHolders == 0) {
                break;
            }
        }
        return true;
    }

    /** Gives the slots that held everything so far what they hold of this run. */
    private void credit(long at, int depth, int matched, OverlapScores out) {
        final long covers = memory.getLongAcquire(at + RunDescriptor.COVERS_OFFSET);
        final int line = RunDescriptor.line(covers);
        final long first =
                line == NONE ? at + RunDescriptor.INLINE_COVERS_OFFSET : LineArena.offset(line);
        final int count = (int) covers;
        final int[] depths = out.depths;
        int alive = 0;
        int deepest = 0;
        for (int i = 0; i < count; i++) {
            final long cover = memory.getLongOpaque(first + (long) i * Long.BYTES);
            final int slot = RunDescriptor.slot(cover);
            final int held = Math.min(RunDescriptor.leading(cover), matched);
            if (held > 0 && slot < slots && depths[slot] == depth) {
                depths[slot] = depth + held;
                if (depth == 0) {
                    out.slots[out.matched++] = slot;
                }
                alive += held == matched ? 1 : 0;
                deepest = Math.max(deepest, held);
            }
        }
        out.fullHolders = alive;
        if (deepest > 0) {
            out.deepest = depth + deepest;
        }
    }

    /**
     * Starts the loads of all that is read next (hashes, covers, and where the walk goes on if the
     * whole run matches), so that they wait for memory together and not one after the other.
     */
    private long touch(long at, long extent, long[] hashes, int next, int count) {
        long sum =
                memory.getLong(
                        LineArena.offset(RunDescriptor.line(extent))
                                + (long) RunDescriptor.first(extent) * Long.BYTES);
        final int page = RunDescriptor.line(memory.getLongOpaque(at + RunDescriptor.COVERS_OFFSET));
        if (page != NONE) {
            sum ^= memory.getLong(LineArena.offset(page));
        }
        final long children = memory.getLongOpaque(at + RunDescriptor.CHILDREN_OFFSET);
        if (children != 0 && next < count) {
            sum ^=
                    memory.getLong(
                            RunDescriptor.childKind(children) == RunDescriptor.CHILD_TABLE
                                    ? entryOffset(children, hashes[next])
                                    : RunDescriptor.headerOffset((int) children));
        }
        return sum;
    }

    private static long entryOffset(long table, long hash) {
        return LineArena.offset((int) table)
                + (long) RunDescriptor.tableHome(hash, RunDescriptor.tableOrder(table))
                        * RunDescriptor.TABLE_ENTRY_LENGTH;
    }

    private int findChild(int run, long version, long hash) {
        final long children =
                memory.getLongAcquire(
                        RunDescriptor.headerOffset(run) + RunDescriptor.CHILDREN_OFFSET);
        if (RunDescriptor.childKind(children) != RunDescriptor.CHILD_TABLE) {
            return (int) children; // the only child, or none
        }
        final int order = RunDescriptor.tableOrder(children);
        final int mask = (RunDescriptor.TABLE_ENTRIES_PER_LINE << order) - 1;
        final long table = LineArena.offset((int) children);
        int entry = RunDescriptor.tableHome(hash, order);
        for (int probes = 0; probes <= mask; probes++) {
            final long offset = table + (long) entry * RunDescriptor.TABLE_ENTRY_LENGTH;
            final int child = memory.getIntAcquire(offset + Long.BYTES);
            final long found = memory.getLongOpaque(offset);
            if (child == NONE) {
                return NONE;
            }
            if (found == hash) {
                VarHandle.loadLoadFence(); // a number from memory that is still the table
                return versionOpaque(run) == version ? child : NONE;
            }
            entry = (entry + 1) & mask;
        }
        return NONE;
    }

    private boolean changed(int run, long version) {
        VarHandle.loadLoadFence();
        return versionOpaque(run) != version;
    }

    private long versionAcquire(int run) {
        return memory.getLongAcquire(
                RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET);
    }

    private long versionOpaque(int run) {
        return memory.getLongOpaque(RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET);
    }
}
