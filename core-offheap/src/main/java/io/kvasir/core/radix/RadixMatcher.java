package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

import java.lang.invoke.VarHandle;

/**
 * The lookup: walks runs from the root without locks while one writer changes them. Stateless; any
 * number of threads.
 *
 * <p>A word of a run is believed when the run's version is the same before and after; a run is
 * believed to continue its parent when it names the end that was the parent's at that version, and
 * its depth is the one reached. So a run that was split, cut or used again under the reader is
 * noticed: the reader reads it again, or starts at the root, and after a bounded number of tries it
 * takes the rest as absent, which the contract allows. Appended blocks and changed holders need no
 * version: length and each holder are single words, and each says what was true at some moment.
 */
class RadixMatcher {
    /** Moments between two reads; a test steps in to let the writer act. */
    enum Step {
        /** Where the children are is read, the table not. */
        CHILDREN_LOCATED,
        /** The child is known by its number. */
        CHILD_FOUND,
        /** Version, parent and depth of the run are read. */
        IDENTIFIED,
        /** The extent is read, the hashes not. */
        EXTENT_READ,
        /** The hashes are compared, the holders not read. */
        COMPARED,
        /** Where the holders are is read, the holders not. */
        HOLDERS_LOCATED,
        /** Of 64 slots those are known that hold some of the run, not those that hold all of it. */
        PARTIAL_READ,
        /** The holders are read, the version not checked. */
        CREDITED
    }

    private static final int MAX_TRIES = 64;
    private static final int MAX_RESTARTS = 8;
    private static final int NO_RUN = RadixTree.NO_RUN;

    private final OffHeap memory;
    private final int root;
    private final int slots;
    private final int mapGroups;
    private final long secret;

    RadixMatcher(OffHeap memory, int root, int slots, long secret) {
        this.memory = memory;
        this.root = root;
        this.slots = slots;
        this.secret = secret;
        this.mapGroups = RunDescriptor.mapGroups(slots);
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
        out.finish();
        return out.deepest;
    }

    /** False when the path changed underneath: what was found is true but may be too little. */
    private boolean walk(long[] hashes, int count, OverlapScores out) {
        int run = root;
        long version = versionAcquire(root);
        long end =
                memory.getLongOpaque(RunDescriptor.headerOffset(root) + RunDescriptor.END_OFFSET);
        int depth = 0;
        while (depth < count) {
            final int child = findChild(run, version, hashes[depth]);
            if (child == NO_RUN) {
                return !changed(run, version);
            }
            at(Step.CHILD_FOUND);
            final long at = RunDescriptor.headerOffset(child);
            int matched = 0;
            int length = 0;
            long childEnd = 0;
            boolean sound = false;
            for (int tries = 0; !sound && tries < MAX_TRIES; tries++) {
                final long childVersion = versionAcquire(child);
                // acquire: depth, extent and hashes were stored before the parent was released
                if (memory.getLongAcquire(at + RunDescriptor.PARENT_OFFSET) != end
                        || memory.getIntOpaque(at + RunDescriptor.DEPTH_OFFSET) != depth) {
                    return !changed(run, version);
                }
                childEnd = memory.getLongOpaque(at + RunDescriptor.END_OFFSET);
                at(Step.IDENTIFIED);
                // acquire: appended hashes were stored before the length was released
                final long extent = memory.getLongAcquire(at + RunDescriptor.EXTENT_OFFSET);
                at(Step.EXTENT_READ);
                length = RunDescriptor.length(extent);
                out.touched ^= touch(at, extent, hashes, depth + length, count);
                matched =
                        memory.matchingLongs(
                                BuddyArena.offset(RunDescriptor.line(extent))
                                        + (long) RunDescriptor.first(extent) * Long.BYTES,
                                hashes,
                                depth,
                                Math.min(length, count - depth));
                at(Step.COMPARED);
                out.beginRun(depth);
                if (matched > 0) {
                    credit(at, depth, matched, out);
                }
                at(Step.CREDITED);
                // all reads of the run before its version again: the same version says that no page
                // read above was given back, and no path cut, before its last read
                VarHandle.loadLoadFence();
                if (versionOpaque(child) == childVersion) {
                    sound = true;
                    out.endRun(matched);
                    run = child;
                    version = childVersion;
                    end = childEnd;
                } else {
                    out.takeBack();
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
        // acquire: the list or map, as long as this says, was stored before it was released
        final long holders = memory.getLongAcquire(at + RunDescriptor.HOLDERS_OFFSET);
        final int line = RunDescriptor.line(holders);
        final long first =
                line == BuddyArena.NO_LINE
                        ? at + RunDescriptor.INLINE_HOLDERS_OFFSET
                        : BuddyArena.offset(line);
        at(Step.HOLDERS_LOCATED);
        if (!RunDescriptor.isMap(holders)) {
            creditList(first, (int) holders, matched, out);
        } else if (depth == 0 || out.shared) {
            creditMap(first, matched, out);
        } else {
            creditListed(first, matched, out);
        }
    }

    private void creditList(long first, int count, int matched, OverlapScores out) {
        for (int i = 0; i < count; i++) {
            final long holder = memory.getLongOpaque(first + (long) i * Long.BYTES);
            final int slot = RunDescriptor.slot(holder);
            final int held = Math.min(RunDescriptor.leading(holder), matched);
            if (held > 0 && slot < slots) {
                out.credit(slot, held, matched);
            }
        }
    }

    /** Those that are left are few, though many hold this run: each is looked up in the map. */
    private void creditListed(long map, int matched, OverlapScores out) {
        for (int i = 0; i < out.listed; i++) {
            final int slot = out.slots[i];
            final long group = map + (long) (slot >> 6) * RunDescriptor.MAP_GROUP_LENGTH;
            // partial (acquire) before full, as in creditMap
            final long partial = memory.getLongAcquire(group + RunDescriptor.PARTIAL_OFFSET);
            at(Step.PARTIAL_READ);
            final long full = memory.getLongOpaque(group);
            int held = 0;
            if ((full >>> slot & 1) != 0) {
                held = matched;
            } else if ((partial >>> slot & 1) != 0) {
                held = Math.min(mapLeading(map, slot), matched);
            }
            if (held > 0) {
                out.credit(slot, held, matched);
            }
        }
    }

    private void creditMap(long map, int matched, OverlapScores out) {
        for (int group = 0; group < mapGroups; group++) {
            final long word = map + (long) group * RunDescriptor.MAP_GROUP_LENGTH;
            final long candidates = out.candidates(group);
            // partial (acquire) before full: the writer clears partial (release) after it has set
            // full, so a slot that changes over is seen in at least one of them
            final long partial = memory.getLongAcquire(word + RunDescriptor.PARTIAL_OFFSET);
            at(Step.PARTIAL_READ);
            final long full = memory.getLongOpaque(word);
            long kept = full & candidates;
            for (long rest = partial & ~full & candidates; rest != 0; rest &= rest - 1) {
                final int slot =
                        group * RunDescriptor.MAP_GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
                final int held = Math.min(mapLeading(map, slot), matched);
                if (held == matched) {
                    kept |= 1L << slot;
                } else if (held > 0 && slot < slots) {
                    out.credit(slot, held, matched);
                }
            }
            out.keep(group, kept);
        }
        out.kept(mapGroups, matched);
    }

    private int mapLeading(long map, int slot) {
        return memory.getShortOpaque(
                map + RunDescriptor.mapLeadings(mapGroups) + (long) slot * Short.BYTES);
    }

    /**
     * Starts the loads of all that is read next (hashes, holders, and where the walk continues if
     * the whole run matches), so that they wait for memory together and not one after the other.
     */
    private long touch(long at, long extent, long[] hashes, int next, int count) {
        long sum =
                memory.getLong(
                        BuddyArena.offset(RunDescriptor.line(extent))
                                + (long) RunDescriptor.first(extent) * Long.BYTES);
        final int page =
                RunDescriptor.line(memory.getLongOpaque(at + RunDescriptor.HOLDERS_OFFSET));
        if (page != BuddyArena.NO_LINE) {
            sum ^= memory.getLong(BuddyArena.offset(page));
        }
        final long children = memory.getLongOpaque(at + RunDescriptor.CHILDREN_OFFSET);
        if (children != 0 && next < count) {
            sum ^= memory.getLong(firstRead(children, hashes[next]));
        }
        return sum;
    }

    /** What is read first of the children: a link, an entry, or the header of the only one. */
    private long firstRead(long children, long hash) {
        final int kind = RunDescriptor.childKind(children);
        if (kind == RunDescriptor.ONE_CHILD) {
            return RunDescriptor.headerOffset((int) children);
        }
        final long key = RunDescriptor.childKey(hash, secret);
        if (kind == RunDescriptor.CHILD_NODE) {
            return RunDescriptor.nodeLinkOffset(children, RunDescriptor.nodeLink(key));
        }
        return BuddyArena.offset((int) children)
                + (long) RunDescriptor.tableHome(key, RunDescriptor.tableOrder(children))
                        * RunDescriptor.TABLE_ENTRY_LENGTH;
    }

    private int findChild(int run, long version, long hash) {
        // acquire: what the link leads to was stored before it was released
        long children =
                memory.getLongAcquire(
                        RunDescriptor.headerOffset(run) + RunDescriptor.CHILDREN_OFFSET);
        at(Step.CHILDREN_LOCATED);
        if (RunDescriptor.childKind(children) < RunDescriptor.CHILD_TABLE) {
            return (int) children; // the only child, or none
        }
        long key = RunDescriptor.childKey(hash, secret);
        while (RunDescriptor.childKind(children) == RunDescriptor.CHILD_NODE) {
            children =
                    memory.getLongAcquire(
                            RunDescriptor.nodeLinkOffset(children, RunDescriptor.nodeLink(key)));
            at(Step.CHILDREN_LOCATED);
            // read after the link (acquire): the same version says that the link was read from the
            // node, and not from what its memory was used for next
            if (versionOpaque(run) != version) {
                return NO_RUN;
            }
            key <<= RunDescriptor.NODE_BITS;
        }
        if (RunDescriptor.childKind(children) != RunDescriptor.CHILD_TABLE) {
            return (int) children;
        }
        return findInTable(run, version, children, key, hash);
    }

    private int findInTable(int run, long version, long children, long key, long hash) {
        final int order = RunDescriptor.tableOrder(children);
        final int mask = (RunDescriptor.TABLE_ENTRIES_PER_LINE << order) - 1;
        final long table = BuddyArena.offset((int) children);
        int entry = RunDescriptor.tableHome(key, order);
        for (int probes = 0; probes <= mask; probes++) {
            final long offset = table + (long) entry * RunDescriptor.TABLE_ENTRY_LENGTH;
            // acquire: the hash of this run was stored before the run was released
            final int child = memory.getIntAcquire(offset + RunDescriptor.ENTRY_RUN_OFFSET);
            final long found = memory.getLongOpaque(offset);
            if (child == NO_RUN) {
                return NO_RUN;
            }
            if (found == hash) {
                // entry before version: the same one says that the entry was read from the table,
                // and not from what its memory was used for next
                VarHandle.loadLoadFence();
                return versionOpaque(run) == version ? child : NO_RUN;
            }
            entry = (entry + 1) & mask;
        }
        return NO_RUN;
    }

    private boolean changed(int run, long version) {
        VarHandle.loadLoadFence(); // what the caller has read is read before the version again
        return versionOpaque(run) != version;
    }

    /** Before all else of a run: what is read next is not older than this version. */
    private long versionAcquire(int run) {
        return memory.getLongAcquire(
                RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET);
    }

    private long versionOpaque(int run) {
        return memory.getLongOpaque(RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET);
    }
}
