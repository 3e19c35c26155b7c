package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

/**
 * Which worker slots cover each run, and how many of its leading blocks: a list while they are few,
 * a map with a place for every slot when they are many. Writer thread only; readers see each change
 * as one store, or notice it by the version of the run. A run with a map does not grow: bits that
 * say "all of it" would say too much.
 *
 * <p>A cover is named by its place: the index in a list, the slot in a map. The name lasts until a
 * cover of the run is added or removed, or {@link #fit} is called.
 */
final class RunHolders {
    /** No cover. */
    static final int NONE = -1;

    private static final int COVERS_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;

    /** A list gives way to a map when it would grow to this fraction of the map's size: 2^-2. */
    private static final int LIST_SHARE = 2;

    private final BuddyArena arena;
    private final OffHeap memory;
    private final RunVersions versions;
    private final int groups;
    private final int mapOrder;

    /** Order of the largest page that is a list. */
    private final int lastListOrder;

    RunHolders(BuddyArena arena, RunVersions versions, int slots) {
        this.arena = arena;
        this.memory = arena.memory();
        this.versions = versions;
        this.groups = RunDescriptor.mapGroups(slots);
        this.mapOrder = BuddyArena.orderFor(RunDescriptor.mapLength(groups));
        this.lastListOrder = Math.max(1, mapOrder - LIST_SHARE - 1);
    }

    /** Slots that cover a run. */
    int count(int run) {
        return RunDescriptor.count(covers(run));
    }

    /** Whether the covers of a run are a map, where every slot is found at once. */
    boolean isMap(int run) {
        return RunDescriptor.isMap(covers(run));
    }

    /** The cover of a slot, or {@link #NONE}. */
    int find(int run, int slot) {
        final long covers = covers(run);
        if (RunDescriptor.isMap(covers)) {
            return isSet(covers, slot) ? slot : NONE;
        }
        final long first = firstOfList(run, covers);
        for (int i = 0; i < (int) covers; i++) {
            if (RunDescriptor.slot(memory.getLong(first + (long) i * Long.BYTES)) == slot) {
                return i;
            }
        }
        return NONE;
    }

    /** Whether a slot has the cover of that name. */
    boolean is(int run, int cover, int slot) {
        final long covers = covers(run);
        if (RunDescriptor.isMap(covers)) {
            return cover == slot && isSet(covers, slot);
        }
        return cover < (int) covers
                && RunDescriptor.slot(memory.getLong(listOffset(run, covers, cover))) == slot;
    }

    /** The last cover of a run, or {@link #NONE}; the others follow by {@link #previous}. */
    int last(int run) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers)
                ? lastBelow(covers, groups * RunDescriptor.MAP_GROUP_SLOTS)
                : (int) covers - 1;
    }

    /** The cover before another, which may have been removed since; or {@link #NONE}. */
    int previous(int run, int cover) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers) ? lastBelow(covers, cover) : cover - 1;
    }

    /** As {@link #last}, of those that are not known to be whole; the others follow. */
    int lastNotWhole(int run) {
        return previousNotWhole(run, groups * RunDescriptor.MAP_GROUP_SLOTS);
    }

    /** As {@link #previous}, of those that are not known to be whole. */
    int previousNotWhole(int run, int cover) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers)
                ? lastBelow(covers, cover, false)
                : Math.min(cover, (int) covers) - 1;
    }

    private int lastBelow(long covers, int end) {
        return lastBelow(covers, end, true);
    }

    private int lastBelow(long covers, int end, boolean whole) {
        for (int group = (end - 1) >> 6; end > 0 && group >= 0; group--) {
            final long full = full(covers, group);
            final long set = whole ? full | partial(covers, group) : partial(covers, group) & ~full;
            final int left = end - group * RunDescriptor.MAP_GROUP_SLOTS;
            final long below = left >= Long.SIZE ? set : set & ((1L << left) - 1);
            if (below != 0) {
                return group * RunDescriptor.MAP_GROUP_SLOTS
                        + Long.SIZE
                        - 1
                        - Long.numberOfLeadingZeros(below);
            }
        }
        return NONE;
    }

    /** Slot of a cover. */
    int slot(int run, int cover) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers)
                ? cover
                : RunDescriptor.slot(memory.getLong(listOffset(run, covers, cover)));
    }

    /** Leading blocks of a cover. */
    int leading(int run, int cover) {
        final long covers = covers(run);
        if (!RunDescriptor.isMap(covers)) {
            return RunDescriptor.leading(memory.getLong(listOffset(run, covers, cover)));
        }
        return isWhole(run, cover) ? length(run) : memory.getShort(leadingOffset(covers, cover));
    }

    /** Whether a map says of the slot of a cover that it holds the whole run. */
    boolean isWhole(int run, int cover) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers) && (full(covers, cover >> 6) >>> cover & 1) != 0;
    }

    /** What the owner has noted with a cover. */
    int tag(int run, int cover) {
        final long covers = covers(run);
        return RunDescriptor.isMap(covers)
                ? memory.getInt(tagOffset(covers, cover))
                : RunDescriptor.tag(memory.getLong(listOffset(run, covers, cover)));
    }

    /** Changes a cover. */
    void set(int run, int cover, int slot, int leading, int tag) {
        set(run, cover, slot, leading, tag, length(run));
    }

    /** Changes a cover of a run that is about to have another length. */
    void set(int run, int cover, int slot, int leading, int tag, int length) {
        final long covers = covers(run);
        if (RunDescriptor.isMap(covers)) {
            setInMap(run, covers, slot, leading, tag, length);
        } else {
            memory.putLongRelease(
                    listOffset(run, covers, cover), RunDescriptor.cover(slot, leading, tag));
        }
    }

    private void setInMap(int run, long covers, int slot, int leading, int tag, int length) {
        final long group = groupOffset(covers, slot >> 6);
        final long bit = 1L << slot;
        final long full = memory.getLong(group);
        final long partial = memory.getLong(group + RunDescriptor.PARTIAL_OFFSET);
        memory.putInt(tagOffset(covers, slot), tag);
        memory.putShortOpaque(leadingOffset(covers, slot), (short) leading);
        if (leading >= length) {
            if ((full & bit) == 0) {
                memory.putLongRelease(group, full | bit);
            }
            if ((partial & bit) != 0) { // behind: who misses it here finds it there
                memory.putLongRelease(group + RunDescriptor.PARTIAL_OFFSET, partial & ~bit);
            }
            return;
        }
        if ((partial & bit) == 0) {
            memory.putLongRelease(group + RunDescriptor.PARTIAL_OFFSET, partial | bit);
        }
        if ((full & bit) != 0) {
            versions.pagesChanged(run); // who has looked for it there already looks again
            memory.putLongOpaque(group, full & ~bit);
        }
    }

    /**
     * Adds a slot that does not cover the run yet.
     *
     * @return its cover, or {@link #NONE} when there is no memory for one more
     */
    int add(int run, int slot, int leading, int tag) {
        return add(run, slot, leading, tag, length(run));
    }

    /** As {@link #add}, to a run that is about to have another length. */
    int add(int run, int slot, int leading, int tag, int length) {
        long covers = covers(run);
        if (!RunDescriptor.isMap(covers) && isFull(covers)) {
            covers = grow(run, covers, length);
        }
        if (RunDescriptor.isMap(covers)) {
            setInMap(run, covers, slot, leading, tag, length);
            memory.putLongRelease(coversOffset(run), covers + 1);
            return slot;
        }
        if (isFull(covers)) {
            return NONE;
        }
        final int count = (int) covers;
        memory.putLongOpaque(
                listOffset(run, covers, count), RunDescriptor.cover(slot, leading, tag));
        memory.putLongRelease(coversOffset(run), covers + 1);
        return count;
    }

    /** See {@link RadixTree#differingCovers}. */
    int differing(int run, int other, int[] out) {
        final long map = covers(run);
        final long otherMap = covers(other);
        int found = 0;
        for (int group = 0; group < groups; group++) {
            final long any =
                    full(map, group)
                            | partial(map, group)
                            | full(otherMap, group)
                            | partial(otherMap, group);
            final long differing = any & ~(full(map, group) & full(otherMap, group));
            if (found + Long.bitCount(differing) > out.length) {
                return NONE;
            }
            for (long rest = differing; rest != 0; rest &= rest - 1) {
                out[found++] =
                        group * RunDescriptor.MAP_GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
            }
        }
        return found;
    }

    /** See {@link RadixTree#copyWholeCovers}. */
    boolean copyWhole(int run, int lower) {
        final long map = covers(run);
        final int line = arena.allocate(mapOrder);
        if (line == BuddyArena.NONE) {
            return false;
        }
        memory.copy(
                BuddyArena.offset(RunDescriptor.line(map)) + RunDescriptor.mapTags(groups),
                BuddyArena.offset(line) + RunDescriptor.mapTags(groups),
                (long) groups * RunDescriptor.MAP_GROUP_SLOTS * Integer.BYTES);
        int count = 0;
        final long copy = RunDescriptor.coverMap(line, 0);
        for (int group = 0; group < groups; group++) {
            memory.putLongOpaque(groupOffset(copy, group), full(map, group));
            memory.putLongOpaque(groupOffset(copy, group) + RunDescriptor.PARTIAL_OFFSET, 0);
            count += Long.bitCount(full(map, group));
        }
        memory.putLongRelease(coversOffset(lower), copy + count);
        return true;
    }

    private boolean isFull(long covers) {
        final int line = RunDescriptor.line(covers);
        return (int) covers
                == (line == BuddyArena.NONE
                        ? RunDescriptor.INLINE_COVERS
                        : COVERS_PER_LINE << arena.order(line));
    }

    /** Makes room for one more in a full list, if there is memory. */
    private long grow(int run, long covers, int length) {
        final int line = RunDescriptor.line(covers);
        final int order = line == BuddyArena.NONE ? 1 : arena.order(line) + 1;
        if (order > lastListOrder && toMap(run, covers, length)) {
            return covers(run);
        }
        final int target = arena.allocate(order);
        if (target == BuddyArena.NONE) {
            return covers;
        }
        memory.copy(
                firstOfList(run, covers),
                BuddyArena.offset(target),
                (long) (int) covers * Long.BYTES);
        replace(run, covers, RunDescriptor.covers(target, (int) covers));
        return covers(run);
    }

    private boolean toMap(int run, long list, int length) {
        final int line = arena.allocate(mapOrder);
        if (line == BuddyArena.NONE) {
            return false;
        }
        final long map = RunDescriptor.coverMap(line, (int) list);
        memory.zero(BuddyArena.offset(line), RunDescriptor.mapTags(groups));
        for (int i = 0; i < (int) list; i++) {
            final long cover = memory.getLong(listOffset(run, list, i));
            final int slot = RunDescriptor.slot(cover);
            final int leading = RunDescriptor.leading(cover);
            final long word =
                    groupOffset(map, slot >> 6)
                            + (leading >= length ? 0 : RunDescriptor.PARTIAL_OFFSET);
            memory.putInt(tagOffset(map, slot), RunDescriptor.tag(cover));
            memory.putShortOpaque(leadingOffset(map, slot), (short) leading);
            memory.putLongOpaque(word, memory.getLong(word) | 1L << slot);
        }
        replace(run, list, map);
        return true;
    }

    /** Shows the readers other covers and gives the page of the old ones back. */
    private void replace(int run, long before, long after) {
        final int line = RunDescriptor.line(before);
        memory.putLongRelease(coversOffset(run), after);
        if (line != BuddyArena.NONE) {
            versions.pagesChanged(run);
            arena.free(line);
        }
    }

    /** Removes a cover; in a list the last one takes its name. */
    void remove(int run, int cover) {
        final long covers = covers(run);
        if (RunDescriptor.isMap(covers)) {
            final long group = groupOffset(covers, cover >> 6);
            final long bit = 1L << cover;
            final long partial = group + RunDescriptor.PARTIAL_OFFSET;
            memory.putLongOpaque(group, memory.getLong(group) & ~bit);
            memory.putLongOpaque(partial, memory.getLong(partial) & ~bit);
            memory.putLongRelease(coversOffset(run), covers - 1);
        } else {
            removeFromList(run, covers, cover);
        }
    }

    private void removeFromList(int run, long covers, int cover) {
        final int last = (int) covers - 1;
        final int line = RunDescriptor.line(covers);
        if (cover != last) {
            memory.putLongOpaque(
                    listOffset(run, covers, cover), memory.getLong(listOffset(run, covers, last)));
        }
        if (line == BuddyArena.NONE || last > RunDescriptor.INLINE_COVERS - 2) {
            memory.putLongRelease(coversOffset(run), covers - 1);
            if (line != BuddyArena.NONE && last * 4 <= COVERS_PER_LINE << arena.order(line)) {
                versions.pagesChanged(run);
                arena.shrink(line, arena.order(line) - 1);
            }
            return;
        }
        memory.copy(
                firstOfList(run, covers),
                RunDescriptor.headerOffset(run) + RunDescriptor.INLINE_COVERS_OFFSET,
                (long) last * Long.BYTES);
        replace(run, covers, RunDescriptor.covers(BuddyArena.NONE, last));
    }

    /**
     * Makes a list of a map that has few covers left, if there is memory; renames the covers.
     *
     * @param whole leading blocks of a slot that holds the whole run
     */
    void fit(int run, int whole) {
        final long map = covers(run);
        final int count = RunDescriptor.count(map);
        if (!RunDescriptor.isMap(map) || count * 2 > COVERS_PER_LINE << lastListOrder) {
            return;
        }
        int line = BuddyArena.NONE;
        if (count >= RunDescriptor.INLINE_COVERS) {
            line = arena.allocate(BuddyArena.orderFor(2L * count * Long.BYTES));
            if (line == BuddyArena.NONE) {
                return;
            }
        }
        final long list = RunDescriptor.covers(line, count);
        int next = 0;
        for (int cover = last(run); cover != NONE; cover = previous(run, cover)) {
            memory.putLongOpaque(
                    listOffset(run, list, next++),
                    RunDescriptor.cover(
                            cover,
                            isWhole(run, cover) ? whole : leading(run, cover),
                            tag(run, cover)));
        }
        replace(run, map, list);
    }

    /** Removes all covers of a run. */
    void clear(int run) {
        replace(run, covers(run), 0);
    }

    private boolean isSet(long covers, int slot) {
        return ((full(covers, slot >> 6) | partial(covers, slot >> 6)) >>> slot & 1) != 0;
    }

    private long full(long covers, int group) {
        return memory.getLong(groupOffset(covers, group));
    }

    private long partial(long covers, int group) {
        return memory.getLong(groupOffset(covers, group) + RunDescriptor.PARTIAL_OFFSET);
    }

    private static long groupOffset(long covers, int group) {
        return BuddyArena.offset(RunDescriptor.line(covers))
                + (long) group * RunDescriptor.MAP_GROUP_LENGTH;
    }

    private long tagOffset(long covers, int slot) {
        return BuddyArena.offset(RunDescriptor.line(covers))
                + RunDescriptor.mapTags(groups)
                + (long) slot * Integer.BYTES;
    }

    private long leadingOffset(long covers, int slot) {
        return BuddyArena.offset(RunDescriptor.line(covers))
                + RunDescriptor.mapLeadings(groups)
                + (long) slot * Short.BYTES;
    }

    private static long firstOfList(int run, long covers) {
        final int line = RunDescriptor.line(covers);
        return line == BuddyArena.NONE
                ? RunDescriptor.headerOffset(run) + RunDescriptor.INLINE_COVERS_OFFSET
                : BuddyArena.offset(line);
    }

    private static long listOffset(int run, long covers, int cover) {
        return firstOfList(run, covers) + (long) cover * Long.BYTES;
    }

    private long covers(int run) {
        return memory.getLong(coversOffset(run));
    }

    private static long coversOffset(int run) {
        return RunDescriptor.headerOffset(run) + RunDescriptor.COVERS_OFFSET;
    }

    private int length(int run) {
        return RunDescriptor.length(
                memory.getLong(RunDescriptor.headerOffset(run) + RunDescriptor.EXTENT_OFFSET));
    }
}
