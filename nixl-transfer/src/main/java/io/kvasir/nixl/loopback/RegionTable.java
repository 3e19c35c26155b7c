package io.kvasir.nixl.loopback;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** Registered memory of one end, found by address. Immutable; any thread may read it. */
final class RegionTable {
    static final RegionTable EMPTY = new RegionTable(List.of());

    /**
     * One registered region.
     *
     * @param name for messages
     * @param base address of its first byte, in the process that registered it
     * @param length bytes
     * @param file number of the shared memory that it lies in, {@link #IN_PROCESS} if in none
     * @param memory what it lies in as this process sees it; null if this process cannot reach it
     * @param offset of its first byte in {@code memory}
     */
    record Entry(String name, long base, long length, int file, MemorySegment memory, long offset) {
        static final int IN_PROCESS = -1;

        long end() {
            return base + length;
        }

        boolean overlaps(Entry other) {
            return base < other.end() && other.base < end();
        }
    }

    private final List<Entry> entries;

    private RegionTable(List<Entry> sorted) {
        this.entries = sorted;
    }

    /**
     * Sorts entries.
     *
     * @throws IllegalArgumentException if two of them overlap
     */
    static RegionTable of(List<Entry> entries) {
        final List<Entry> sorted = new ArrayList<>(entries);
        sorted.sort(Comparator.comparingLong(Entry::base));
        for (int i = 1; i < sorted.size(); i++) {
            final Entry before = sorted.get(i - 1);
            final Entry entry = sorted.get(i);
            if (before.overlaps(entry)) {
                throw new IllegalArgumentException(
                        "regions " + before.name + " and " + entry.name + " overlap");
            }
        }
        return new RegionTable(List.copyOf(sorted));
    }

    /** These entries, and those of an older table that do not overlap them. */
    RegionTable over(RegionTable older) {
        final List<Entry> all = new ArrayList<>(entries);
        for (Entry entry : older.entries) {
            final int before = countBefore(entry.end());
            if (before == 0 || !entries.get(before - 1).overlaps(entry)) {
                all.add(entry);
            }
        }
        return of(all);
    }

    List<Entry> entries() {
        return entries;
    }

    /**
     * Finds the region that holds a range.
     *
     * @return null if no single one does
     */
    Entry find(long address, long length) {
        final int from = address == Long.MAX_VALUE ? entries.size() : countBefore(address + 1);
        if (from == 0) {
            return null;
        }
        final Entry entry = entries.get(from - 1);
        final long before = address - entry.base;
        return length <= entry.length && before <= entry.length - length ? entry : null;
    }

    /** Number of entries that begin before an address. */
    private int countBefore(long address) {
        int low = 0;
        int high = entries.size();
        while (low < high) {
            final int middle = (low + high) >>> 1;
            if (entries.get(middle).base < address) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
}
