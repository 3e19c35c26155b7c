package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

/**
 * Which worker slots hold each run, and how many of its leading blocks: a list while they are few,
 * a map with an entry for every slot when they are many. Writer thread only; readers see each
 * change as one store, or notice it by the version of the run. A run with a map does not grow: bits
 * that say "all of it" would say too much.
 *
 * <p>A holder is named by its position: the index in a list, the slot in a map. The name lasts
 * until a holder of the run is added or removed, or {@link #fit} is called.
 */
final class RunHolders {
    /** No holder. */
    static final int NO_HOLDER = -1;

    private static final int HOLDERS_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;

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

    /** Slots that hold a run. */
    int count(int run) {
        return RunDescriptor.count(holders(run));
    }

    /** Whether the holders of a run are a map, where every slot is found at once. */
    boolean isMap(int run) {
        return RunDescriptor.isMap(holders(run));
    }

    /** The holder of a slot, or {@link #NO_HOLDER}. */
    int find(int run, int slot) {
        final long holders = holders(run);
        if (RunDescriptor.isMap(holders)) {
            return isSet(holders, slot) ? slot : NO_HOLDER;
        }
        final long first = firstOfList(run, holders);
        for (int i = 0; i < (int) holders; i++) {
            if (RunDescriptor.slot(memory.getLong(first + (long) i * Long.BYTES)) == slot) {
                return i;
            }
        }
        return NO_HOLDER;
    }

    /** Whether a slot has the holder of that name. */
    boolean is(int run, int holder, int slot) {
        final long holders = holders(run);
        if (RunDescriptor.isMap(holders)) {
            return holder == slot && isSet(holders, slot);
        }
        return holder < (int) holders
                && RunDescriptor.slot(memory.getLong(listOffset(run, holders, holder))) == slot;
    }

    /** The last holder of a run, or {@link #NO_HOLDER}; the others follow by {@link #previous}. */
    int last(int run) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders)
                ? lastBelow(holders, groups * RunDescriptor.MAP_GROUP_SLOTS)
                : (int) holders - 1;
    }

    /** The holder before another, which may have been removed since; or {@link #NO_HOLDER}. */
    int previous(int run, int holder) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders) ? lastBelow(holders, holder) : holder - 1;
    }

    /** As {@link #last}, of those that are not known to be whole; the others follow. */
    int lastNotWhole(int run) {
        return previousNotWhole(run, groups * RunDescriptor.MAP_GROUP_SLOTS);
    }

    /** As {@link #previous}, of those that are not known to be whole. */
    int previousNotWhole(int run, int holder) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders)
                ? lastBelow(holders, holder, false)
                : Math.min(holder, (int) holders) - 1;
    }

    private int lastBelow(long holders, int end) {
        return lastBelow(holders, end, true);
    }

    private int lastBelow(long holders, int end, boolean whole) {
        for (int group = (end - 1) >> 6; end > 0 && group >= 0; group--) {
            final long full = full(holders, group);
            final long set =
                    whole ? full | partial(holders, group) : partial(holders, group) & ~full;
            final int left = end - group * RunDescriptor.MAP_GROUP_SLOTS;
            final long below = left >= Long.SIZE ? set : set & ((1L << left) - 1);
            if (below != 0) {
                return group * RunDescriptor.MAP_GROUP_SLOTS
                        + Long.SIZE
                        - 1
                        - Long.numberOfLeadingZeros(below);
            }
        }
        return NO_HOLDER;
    }

    /** Slot of a holder. */
    int slot(int run, int holder) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders)
                ? holder
                : RunDescriptor.slot(memory.getLong(listOffset(run, holders, holder)));
    }

    /** Leading blocks of a holder. */
    int leading(int run, int holder) {
        final long holders = holders(run);
        if (!RunDescriptor.isMap(holders)) {
            return RunDescriptor.leading(memory.getLong(listOffset(run, holders, holder)));
        }
        return isWhole(run, holder) ? length(run) : memory.getShort(leadingOffset(holders, holder));
    }

    /** Whether a map says of the slot of a holder that it holds the whole run. */
    boolean isWhole(int run, int holder) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders) && (full(holders, holder >> 6) >>> holder & 1) != 0;
    }

    /** What the owner keeps with a holder. */
    int tag(int run, int holder) {
        final long holders = holders(run);
        return RunDescriptor.isMap(holders)
                ? memory.getInt(tagOffset(holders, holder))
                : RunDescriptor.tag(memory.getLong(listOffset(run, holders, holder)));
    }

    /** Changes a holder. */
    void set(int run, int holder, int slot, int leading, int tag) {
        set(run, holder, slot, leading, tag, length(run));
    }

    /** Changes a holder of a run that is about to have another length. */
    void set(int run, int holder, int slot, int leading, int tag, int length) {
        final long holders = holders(run);
        if (RunDescriptor.isMap(holders)) {
            setInMap(run, holders, slot, leading, tag, length);
        } else {
            // one word: creditList reads the old holder or the new one
            memory.putLongRelease(
                    listOffset(run, holders, holder), RunDescriptor.holder(slot, leading, tag));
        }
    }

    private void setInMap(int run, long holders, int slot, int leading, int tag, int length) {
        final long group = groupOffset(holders, slot >> 6);
        final long bit = 1L << slot;
        final long full = memory.getLong(group);
        final long partial = memory.getLong(group + RunDescriptor.PARTIAL_OFFSET);
        memory.putInt(tagOffset(holders, slot), tag);
        memory.putShortOpaque(leadingOffset(holders, slot), (short) leading);
        if (leading >= length) {
            if ((full & bit) == 0) {
                memory.putLongRelease(group, full | bit);
            }
            if ((partial & bit) != 0) {
                // cleared (release) after full is set: creditMap acquires partial before it reads
                // full, so if it misses the slot in partial it finds it in full
                memory.putLongRelease(group + RunDescriptor.PARTIAL_OFFSET, partial & ~bit);
            }
            return;
        }
        if ((partial & bit) == 0) {
            // set (release) after the prefix length: creditMap acquires the bit, then reads that
            memory.putLongRelease(group + RunDescriptor.PARTIAL_OFFSET, partial | bit);
        }
        if ((full & bit) != 0) {
            // the version between the two bits: a matcher that read partial before it was set and
            // full after it was cleared finds another version and reads the run again
            versions.pagesChanged(run);
            memory.putLongOpaque(group, full & ~bit);
        }
    }

    /**
     * Adds a slot that does not hold the run yet.
     *
     * @return its holder, or {@link #NO_HOLDER} when there is no memory for one more
     */
    int add(int run, int slot, int leading, int tag) {
        return add(run, slot, leading, tag, length(run));
    }

    /** As {@link #add}, to a run that is about to have another length. */
    int add(int run, int slot, int leading, int tag, int length) {
        long holders = holders(run);
        if (!RunDescriptor.isMap(holders) && isFull(holders)) {
            holders = grow(run, holders, length);
        }
        if (RunDescriptor.isMap(holders)) {
            setInMap(run, holders, slot, leading, tag, length);
            // a map's count is the writer's alone: creditMap reads its bits
            memory.putLongRelease(holdersOffset(run), holders + 1);
            return slot;
        }
        if (isFull(holders)) {
            return NO_HOLDER;
        }
        final int count = (int) holders;
        memory.putLongOpaque(
                listOffset(run, holders, count), RunDescriptor.holder(slot, leading, tag));
        // the count (release) after the holder: credit acquires it and reads so many holders
        memory.putLongRelease(holdersOffset(run), holders + 1);
        return count;
    }

    /** See {@link RadixTree#differingHolders}. */
    int differing(int run, int other, int[] out) {
        final long map = holders(run);
        final long otherMap = holders(other);
        int found = 0;
        for (int group = 0; group < groups; group++) {
            final long any =
                    full(map, group)
                            | partial(map, group)
                            | full(otherMap, group)
                            | partial(otherMap, group);
            final long differing = any & ~(full(map, group) & full(otherMap, group));
            if (found + Long.bitCount(differing) > out.length) {
                return NO_HOLDER;
            }
            for (long rest = differing; rest != 0; rest &= rest - 1) {
                out[found++] =
                        group * RunDescriptor.MAP_GROUP_SLOTS + Long.numberOfTrailingZeros(rest);
            }
        }
        return found;
    }

    /** See {@link RadixTree#copyWholeHolders}. */
    boolean copyWhole(int run, int lower) {
        final long map = holders(run);
        final int line = arena.allocate(mapOrder);
        if (line == BuddyArena.NO_LINE) {
            return false;
        }
        memory.copy(
                BuddyArena.offset(RunDescriptor.line(map)) + RunDescriptor.mapTags(groups),
                BuddyArena.offset(line) + RunDescriptor.mapTags(groups),
                (long) groups * RunDescriptor.MAP_GROUP_SLOTS * Integer.BYTES);
        int count = 0;
        final long copy = RunDescriptor.holderMap(line, 0);
        for (int group = 0; group < groups; group++) {
            memory.putLongOpaque(groupOffset(copy, group), full(map, group));
            memory.putLongOpaque(groupOffset(copy, group) + RunDescriptor.PARTIAL_OFFSET, 0);
            count += Long.bitCount(full(map, group));
        }
        // the map is complete before the word that leads to it; finishSplit makes it reachable
        memory.putLongRelease(holdersOffset(lower), copy + count);
        return true;
    }

    private boolean isFull(long holders) {
        final int line = RunDescriptor.line(holders);
        return (int) holders
                == (line == BuddyArena.NO_LINE
                        ? RunDescriptor.INLINE_HOLDERS
                        : HOLDERS_PER_LINE << arena.order(line));
    }

    /** Makes room for one more in a full list, if there is memory. */
    private long grow(int run, long holders, int length) {
        final int line = RunDescriptor.line(holders);
        final int order = line == BuddyArena.NO_LINE ? 1 : arena.order(line) + 1;
        if (order > lastListOrder && toMap(run, holders, length)) {
            return holders(run);
        }
        final int target = arena.allocate(order);
        if (target == BuddyArena.NO_LINE) {
            return holders;
        }
        memory.copy(
                firstOfList(run, holders),
                BuddyArena.offset(target),
                (long) (int) holders * Long.BYTES);
        replace(run, holders, RunDescriptor.holders(target, (int) holders));
        return holders(run);
    }

    private boolean toMap(int run, long list, int length) {
        final int line = arena.allocate(mapOrder);
        if (line == BuddyArena.NO_LINE) {
            return false;
        }
        final long map = RunDescriptor.holderMap(line, (int) list);
        memory.zero(BuddyArena.offset(line), RunDescriptor.mapTags(groups));
        for (int i = 0; i < (int) list; i++) {
            final long holder = memory.getLong(listOffset(run, list, i));
            final int slot = RunDescriptor.slot(holder);
            final int leading = RunDescriptor.leading(holder);
            final long word =
                    groupOffset(map, slot >> 6)
                            + (leading >= length ? 0 : RunDescriptor.PARTIAL_OFFSET);
            memory.putInt(tagOffset(map, slot), RunDescriptor.tag(holder));
            memory.putShortOpaque(leadingOffset(map, slot), (short) leading);
            memory.putLongOpaque(word, memory.getLong(word) | 1L << slot);
        }
        replace(run, list, map);
        return true;
    }

    /** Shows the readers other holders and gives the page of the old ones back. */
    private void replace(int run, long before, long after) {
        final int line = RunDescriptor.line(before);
        // the new list or map is complete before this word (release), which credit acquires
        memory.putLongRelease(holdersOffset(run), after);
        if (line != BuddyArena.NO_LINE) {
            // the version before the page is free: a matcher still inside it reads the run again
            versions.pagesChanged(run);
            arena.free(line);
        }
    }

    /** Removes a holder; in a list the last one takes its name. */
    void remove(int run, int holder) {
        final long holders = holders(run);
        if (RunDescriptor.isMap(holders)) {
            final long group = groupOffset(holders, holder >> 6);
            final long bit = 1L << holder;
            final long partial = group + RunDescriptor.PARTIAL_OFFSET;
            memory.putLongOpaque(group, memory.getLong(group) & ~bit);
            memory.putLongOpaque(partial, memory.getLong(partial) & ~bit);
            // no order needed: the slot held the run until now, in whichever word it is still seen
            memory.putLongRelease(holdersOffset(run), holders - 1);
        } else {
            removeFromList(run, holders, holder);
        }
    }

    private void removeFromList(int run, long holders, int holder) {
        final int last = (int) holders - 1;
        final int line = RunDescriptor.line(holders);
        if (holder != last) {
            memory.putLongOpaque(
                    listOffset(run, holders, holder),
                    memory.getLong(listOffset(run, holders, last)));
        }
        if (line == BuddyArena.NO_LINE || last > RunDescriptor.INLINE_HOLDERS - 2) {
            // the smaller count (release) after the last holder was moved: a matcher with the old
            // count may read that one twice, which credits it once, and misses none
            memory.putLongRelease(holdersOffset(run), holders - 1);
            if (line != BuddyArena.NO_LINE && last * 4 <= HOLDERS_PER_LINE << arena.order(line)) {
                versions.pagesChanged(run);
                arena.shrink(line, arena.order(line) - 1);
            }
            return;
        }
        memory.copy(
                firstOfList(run, holders),
                RunDescriptor.headerOffset(run) + RunDescriptor.INLINE_HOLDERS_OFFSET,
                (long) last * Long.BYTES);
        replace(run, holders, RunDescriptor.holders(BuddyArena.NO_LINE, last));
    }

    /**
     * Makes a list of a map that has few holders left, if there is memory or they fit in the run's
     * header; renames the holders.
     *
     * @param whole leading blocks of a slot that holds the whole run
     */
    void fit(int run, int whole) {
        final long map = holders(run);
        final int count = RunDescriptor.count(map);
        if (!RunDescriptor.isMap(map) || count * 2 > HOLDERS_PER_LINE << lastListOrder) {
            return;
        }
        int line = BuddyArena.NO_LINE;
        if (count >= RunDescriptor.INLINE_HOLDERS) {
            line = arena.allocate(BuddyArena.orderFor(2L * count * Long.BYTES));
            if (line == BuddyArena.NO_LINE && count > RunDescriptor.INLINE_HOLDERS) {
                return;
            }
        }
        final long list = RunDescriptor.holders(line, count);
        int next = 0;
        for (int holder = last(run); holder != NO_HOLDER; holder = previous(run, holder)) {
            memory.putLongOpaque(
                    listOffset(run, list, next++),
                    RunDescriptor.holder(
                            holder,
                            isWhole(run, holder) ? whole : leading(run, holder),
                            tag(run, holder)));
        }
        replace(run, map, list);
    }

    /** Removes all holders of a run. */
    void clear(int run) {
        replace(run, holders(run), 0);
    }

    private boolean isSet(long holders, int slot) {
        return ((full(holders, slot >> 6) | partial(holders, slot >> 6)) >>> slot & 1) != 0;
    }

    private long full(long holders, int group) {
        return memory.getLong(groupOffset(holders, group));
    }

    private long partial(long holders, int group) {
        return memory.getLong(groupOffset(holders, group) + RunDescriptor.PARTIAL_OFFSET);
    }

    private static long groupOffset(long holders, int group) {
        return BuddyArena.offset(RunDescriptor.line(holders))
                + (long) group * RunDescriptor.MAP_GROUP_LENGTH;
    }

    private long tagOffset(long holders, int slot) {
        return BuddyArena.offset(RunDescriptor.line(holders))
                + RunDescriptor.mapTags(groups)
                + (long) slot * Integer.BYTES;
    }

    private long leadingOffset(long holders, int slot) {
        return BuddyArena.offset(RunDescriptor.line(holders))
                + RunDescriptor.mapLeadings(groups)
                + (long) slot * Short.BYTES;
    }

    private static long firstOfList(int run, long holders) {
        final int line = RunDescriptor.line(holders);
        return line == BuddyArena.NO_LINE
                ? RunDescriptor.headerOffset(run) + RunDescriptor.INLINE_HOLDERS_OFFSET
                : BuddyArena.offset(line);
    }

    private static long listOffset(int run, long holders, int holder) {
        return firstOfList(run, holders) + (long) holder * Long.BYTES;
    }

    private long holders(int run) {
        return memory.getLong(holdersOffset(run));
    }

    private static long holdersOffset(int run) {
        return RunDescriptor.headerOffset(run) + RunDescriptor.HOLDERS_OFFSET;
    }

    private int length(int run) {
        return RunDescriptor.length(
                memory.getLong(RunDescriptor.headerOffset(run) + RunDescriptor.EXTENT_OFFSET));
    }
}
