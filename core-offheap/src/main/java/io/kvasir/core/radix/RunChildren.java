package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

import java.util.Arrays;

/**
 * The children of runs, by their first local hash. Writer thread only; {@link RadixMatcher} finds
 * them without a lock.
 *
 * <p>A <em>link</em>, one word, says where children are: none, one child, a table, or a node of 16
 * links. The header of a run has the first link. A table is open-addressed and grows to 64 entries;
 * when it is full there, or memory is too fragmented for a larger one, a node replaces it, whose
 * links share the entries out by the next four bits of the key. The key is the hash times a secret
 * of the index, so that no client can aim at a link or an entry. So a change moves one table's
 * entries at most, however many children there are, and nothing but memory limits their number. A
 * node whose children fit into half a table is a table again.
 *
 * <p>Tables and nodes are made aside, shown by one store of the link, and the version of the run
 * changes before the memory of the old ones is given back.
 */
final class RunChildren {
    private static final int NO_RUN = RadixTree.NO_RUN;

    /** Largest table that still has children when it becomes a node: 64 entries, three quarters. */
    private static final int MAX_TABLE_ORDER = 4;

    /** Children of a node at which it becomes a table: half of what made it one. */
    private static final int FEW = capacity(MAX_TABLE_ORDER) * 3 / 8;

    /** Nodes above a table at most: then the bits of the key are used up. */
    private static final int MAX_LEVEL = Long.SIZE / RunDescriptor.NODE_BITS - 1;

    private static final int NODE_ORDER = BuddyArena.orderFor(RunDescriptor.NODE_LENGTH);

    private final BuddyArena arena;
    private final OffHeap memory;
    private final RunVersions versions;
    private final long secret;

    /** Links passed on the way down, the run's own first. */
    private final long[] path = new long[MAX_LEVEL + 2];

    private final int[] counts = new int[RunDescriptor.NODE_LINKS];
    private long moved;
    private int next;

    RunChildren(BuddyArena arena, RunVersions versions, long secret) {
        this.arena = arena;
        this.memory = arena.memory();
        this.versions = versions;
        this.secret = secret | 1; // odd, so that different hashes have different keys
    }

    /** What hashes are multiplied by. */
    long secret() {
        return secret;
    }

    /** Entries moved since the beginning; for tests. */
    long moved() {
        return moved;
    }

    /** Links and entries to be read to find a hash, or that it is not there; for tests. */
    int reads(int run, long hash) {
        final int level = descend(run, hash);
        final long link = memory.getLong(path[level]);
        if (RunDescriptor.childKind(link) != RunDescriptor.CHILD_TABLE) {
            return level + 1;
        }
        final int mask = capacity(RunDescriptor.tableOrder(link)) - 1;
        final int home = home(hash, level, RunDescriptor.tableOrder(link));
        return level + 2 + (int) (indexOf(link, entry(link, hash, level)) - home & mask);
    }

    private static long indexOf(long table, long entry) {
        return (entry - entryOffset(table, 0)) / RunDescriptor.TABLE_ENTRY_LENGTH;
    }

    /** Children of a run. */
    int count(int run) {
        return memory.getInt(RunDescriptor.headerOffset(run) + RunDescriptor.CHILD_COUNT_OFFSET);
    }

    /** Child of a run that starts with a local hash, or {@link RadixTree#NO_RUN}. */
    int find(int run, long hash) {
        final int level = descend(run, hash);
        final long link = memory.getLong(path[level]);
        return switch (RunDescriptor.childKind(link)) {
            case RunDescriptor.CHILD_TABLE ->
                    memory.getInt(entry(link, hash, level) + RunDescriptor.ENTRY_RUN_OFFSET);
            case RunDescriptor.ONE_CHILD -> firstHash((int) link) == hash ? (int) link : NO_RUN;
            default -> NO_RUN;
        };
    }

    /** Puts all children of a run into an array. Not hot. */
    int[] all(int run) {
        final int[] found = new int[count(run)];
        next = 0;
        collect(memory.getLong(linkOf(run)), found);
        return found;
    }

    private void collect(long link, int[] found) {
        switch (RunDescriptor.childKind(link)) {
            case RunDescriptor.ONE_CHILD -> found[next++] = (int) link;
            case RunDescriptor.CHILD_TABLE -> {
                for (int i = 0; i < capacity(RunDescriptor.tableOrder(link)); i++) {
                    final int child =
                            memory.getInt(entryOffset(link, i) + RunDescriptor.ENTRY_RUN_OFFSET);
                    if (child != NO_RUN) {
                        found[next++] = child;
                    }
                }
            }
            case RunDescriptor.CHILD_NODE -> {
                for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
                    collect(memory.getLong(RunDescriptor.nodeLinkOffset(link, i)), found);
                }
            }
            default -> {}
        }
    }

    /** Follows nodes as far as they go; the link found is in the path at the level returned. */
    private int descend(int run, long hash) {
        int level = 0;
        path[0] = linkOf(run);
        long link = memory.getLong(path[0]);
        while (RunDescriptor.childKind(link) == RunDescriptor.CHILD_NODE) {
            path[level + 1] = RunDescriptor.nodeLinkOffset(link, nodeLink(hash, level));
            level++;
            link = memory.getLong(path[level]);
        }
        return level;
    }

    // -- adding -----------------------------------------------------------------------------

    /**
     * Adds a child that a run does not have, and whose parent word is set.
     *
     * @return false when there is no memory for it; nothing has changed then
     */
    boolean add(int run, int child, long hash) {
        final int level = descend(run, hash);
        final long link = memory.getLong(path[level]);
        final boolean added =
                switch (RunDescriptor.childKind(link)) {
                    case RunDescriptor.CHILD_TABLE -> addToTable(run, link, level, child, hash);
                    case RunDescriptor.ONE_CHILD -> addToOne(link, level, child, hash);
                    default -> {
                        // after the child's header (release): findChild acquires the link
                        memory.putLongRelease(path[level], RunDescriptor.oneChild(child));
                        yield true;
                    }
                };
        if (added) {
            count(run, count(run) + 1);
        }
        return added;
    }

    private boolean addToOne(long one, int level, int child, long hash) {
        final long table = newTable(0);
        if (table == 0) {
            return false;
        }
        put(table, firstHash((int) one), (int) one, level);
        put(table, hash, child, level);
        // the table is complete before its link (release), which findChild acquires
        memory.putLongRelease(path[level], RunDescriptor.withCount(table, 2));
        return true;
    }

    private boolean addToTable(int run, long table, int level, int child, long hash) {
        final int count = RunDescriptor.tableCount(table);
        final int order = RunDescriptor.tableOrder(table);
        if (isTooFull(count + 1, order)) {
            if (makeRoom(run, table, level)) {
                return addBelow(run, level, child, hash);
            }
            if (count + 1 == capacity(order)) {
                return false; // with one more no search would end
            }
        }
        put(table, hash, child, level);
        // the count is the writer's alone: findInTable reads entries up to an empty one
        memory.putLongRelease(path[level], RunDescriptor.withCount(table, count + 1));
        return true;
    }

    /**
     * Makes a larger table of one, or a node where it is as large as a table may be, or where
     * fragmented memory has no block for the larger one: a node and its tables are small.
     */
    private boolean makeRoom(int run, long table, int level) {
        final int order = RunDescriptor.tableOrder(table);
        if ((order < MAX_TABLE_ORDER || level == MAX_LEVEL)
                && resize(run, table, level, order + 1)) {
            return true;
        }
        return level < MAX_LEVEL && divide(run, table, level);
    }

    /** Adds where there is room now, or was made one level deeper. */
    private boolean addBelow(int run, int level, int child, long hash) {
        final long link = memory.getLong(path[level]);
        if (RunDescriptor.childKind(link) == RunDescriptor.CHILD_TABLE) {
            return addToTable(run, link, level, child, hash);
        }
        path[level + 1] = RunDescriptor.nodeLinkOffset(link, nodeLink(hash, level));
        final long below = memory.getLong(path[level + 1]);
        return switch (RunDescriptor.childKind(below)) {
            case RunDescriptor.CHILD_TABLE -> addToTable(run, below, level + 1, child, hash);
            case RunDescriptor.ONE_CHILD -> addToOne(below, level + 1, child, hash);
            default -> {
                // after the child's header (release): findChild acquires the link
                memory.putLongRelease(path[level + 1], RunDescriptor.oneChild(child));
                yield true;
            }
        };
    }

    /** Moves a table into one of another order; false when there is no memory for it. */
    private boolean resize(int run, long table, int level, int order) {
        final long resized = newTable(order);
        if (resized == 0) {
            return false;
        }
        moveInto(resized, table, level, level);
        replace(run, level, RunDescriptor.withCount(resized, RunDescriptor.tableCount(table)));
        arena.free((int) table);
        return true;
    }

    /** Shares a table out to the links of a node; false when there is no memory for it. */
    private boolean divide(int run, long table, int level) {
        final int line = arena.allocate(NODE_ORDER);
        if (line == BuddyArena.NO_LINE) {
            return false;
        }
        final long node = RunDescriptor.childNode(line);
        memory.zero(BuddyArena.offset(line), RunDescriptor.NODE_LENGTH);
        countByLink(table, level);
        for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
            if (counts[i] > 1) {
                final long made = newTable(orderFor(counts[i]));
                if (made == 0) {
                    freeAll(node);
                    return false;
                }
                memory.putLongOpaque(
                        RunDescriptor.nodeLinkOffset(node, i),
                        RunDescriptor.withCount(made, counts[i]));
            }
        }
        for (int i = 0; i < capacity(RunDescriptor.tableOrder(table)); i++) {
            final long entry = entryOffset(table, i);
            final int child = memory.getInt(entry + RunDescriptor.ENTRY_RUN_OFFSET);
            if (child != NO_RUN) {
                final long hash = memory.getLong(entry);
                final long at = RunDescriptor.nodeLinkOffset(node, nodeLink(hash, level));
                final long below = memory.getLong(at);
                if (below == 0) {
                    memory.putLongOpaque(at, RunDescriptor.oneChild(child));
                } else {
                    put(below, hash, child, level + 1);
                }
                moved++;
            }
        }
        replace(run, level, node);
        arena.free((int) table);
        return true;
    }

    private void countByLink(long table, int level) {
        Arrays.fill(counts, 0);
        for (int i = 0; i < capacity(RunDescriptor.tableOrder(table)); i++) {
            final long entry = entryOffset(table, i);
            if (memory.getInt(entry + RunDescriptor.ENTRY_RUN_OFFSET) != NO_RUN) {
                counts[nodeLink(memory.getLong(entry), level)]++;
            }
        }
    }

    // -- removing ---------------------------------------------------------------------------

    /** Removes a child. */
    void remove(int run, int child, long hash) {
        int level = descend(run, hash);
        final long link = memory.getLong(path[level]);
        count(run, count(run) - 1);
        if (RunDescriptor.childKind(link) == RunDescriptor.ONE_CHILD) {
            memory.putLongOpaque(path[level], 0);
        } else {
            removeFromTable(run, link, level, child, hash);
        }
        while (level > 0 && merge(run, level - 1)) {
            level--;
        }
    }

    private void removeFromTable(int run, long table, int level, int child, long hash) {
        final int left = RunDescriptor.tableCount(table) - 1;
        final int order = RunDescriptor.tableOrder(table);
        removeEntry(table, hash, child, level);
        if (left == 1) {
            replace(run, level, RunDescriptor.oneChild(anyChild(table)));
            arena.free((int) table);
            return;
        }
        final long fewer = RunDescriptor.withCount(table, left);
        memory.putLongRelease(path[level], fewer); // the count is the writer's alone
        if (left * 8 <= capacity(order)) {
            resize(run, fewer, level, order - 1);
        }
    }

    /** Makes one table of a node whose children are few; false when they are not. */
    private boolean merge(int run, int level) {
        final long node = memory.getLong(path[level]);
        int count = 0;
        for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
            final long link = memory.getLong(RunDescriptor.nodeLinkOffset(node, i));
            final int kind = RunDescriptor.childKind(link);
            if (kind == RunDescriptor.CHILD_NODE) {
                return false;
            }
            if (link != 0) {
                count += kind == RunDescriptor.ONE_CHILD ? 1 : RunDescriptor.tableCount(link);
            }
            if (count > FEW) {
                return false;
            }
        }
        assert count > 0 : "a node loses its children one by one";
        final long table = newTable(orderFor(count));
        if (table == 0) {
            return false;
        }
        for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
            moveInto(
                    table, memory.getLong(RunDescriptor.nodeLinkOffset(node, i)), level, level + 1);
        }
        replace(run, level, RunDescriptor.withCount(table, count));
        freeAll(node);
        return true;
    }

    private int anyChild(long table) {
        for (int i = 0; ; i++) {
            final int child = memory.getInt(entryOffset(table, i) + RunDescriptor.ENTRY_RUN_OFFSET);
            if (child != NO_RUN) {
                return child;
            }
        }
    }

    /** Empties an entry and moves those after it up, so that no search ends too early. */
    private void removeEntry(long table, long hash, int child, int level) {
        final int order = RunDescriptor.tableOrder(table);
        final int mask = capacity(order) - 1;
        int hole = home(hash, level, order);
        while (memory.getInt(entryOffset(table, hole) + RunDescriptor.ENTRY_RUN_OFFSET) != child) {
            hole = (hole + 1) & mask;
        }
        for (int i = (hole + 1) & mask; ; i = (i + 1) & mask) {
            final long entry = entryOffset(table, i);
            final int other = memory.getInt(entry + RunDescriptor.ENTRY_RUN_OFFSET);
            if (other == NO_RUN) {
                break;
            }
            final long otherHash = memory.getLong(entry);
            if (((i - home(otherHash, level, order)) & mask) >= ((i - hole) & mask)) {
                memory.putLongOpaque(entryOffset(table, hole), otherHash);
                // the run (release) after its hash: findInTable acquires the run first; the old
                // run with the new hash leads to one that does not match, an undercount
                memory.putIntRelease(
                        entryOffset(table, hole) + RunDescriptor.ENTRY_RUN_OFFSET, other);
                moved++;
                hole = i;
            }
        }
        memory.putIntOpaque(entryOffset(table, hole) + RunDescriptor.ENTRY_RUN_OFFSET, NO_RUN);
    }

    // -- links, nodes and tables ------------------------------------------------------------

    /** Shows other children at a level of the path; what was there may be given back then. */
    private void replace(int run, int level, long link) {
        // what the link leads to is complete before it (release); findChild acquires it. The
        // version follows: a matcher in the old table or node finds it changed and reads again
        memory.putLongRelease(path[level], link);
        versions.pagesChanged(run);
    }

    /** Gives a node back with its tables. */
    private void freeAll(long node) {
        for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
            final long link = memory.getLong(RunDescriptor.nodeLinkOffset(node, i));
            if (RunDescriptor.childKind(link) == RunDescriptor.CHILD_TABLE) {
                arena.free((int) link);
            }
        }
        arena.free((int) node);
    }

    /** An empty table, or 0 when there is no memory for it. */
    private long newTable(int order) {
        final int line = arena.allocate(order);
        if (line == BuddyArena.NO_LINE) {
            return 0;
        }
        final long table = RunDescriptor.childTable(line, order);
        for (int i = 0; i < capacity(order); i++) {
            memory.putInt(entryOffset(table, i) + RunDescriptor.ENTRY_RUN_OFFSET, NO_RUN);
        }
        return table;
    }

    /** Puts what a link leads to, but for nodes, into a table that has room. */
    private void moveInto(long table, long link, int level, int linkLevel) {
        if (RunDescriptor.childKind(link) == RunDescriptor.ONE_CHILD) {
            assert linkLevel > level : "one child needs no table";
            put(table, firstHash((int) link), (int) link, level);
            moved++;
        } else if (link != 0) {
            for (int i = 0; i < capacity(RunDescriptor.tableOrder(link)); i++) {
                final long entry = entryOffset(link, i);
                final int child = memory.getInt(entry + RunDescriptor.ENTRY_RUN_OFFSET);
                if (child != NO_RUN) {
                    put(table, memory.getLong(entry), child, level);
                    moved++;
                }
            }
        }
    }

    private void put(long table, long hash, int child, int level) {
        final long entry = entry(table, hash, level);
        memory.putLongOpaque(entry, hash);
        // the run (release) after its hash: findInTable acquires the run, then reads the hash
        memory.putIntRelease(entry + RunDescriptor.ENTRY_RUN_OFFSET, child);
    }

    /** Entry with that hash, or the empty one where it belongs. */
    private long entry(long table, long hash, int level) {
        final int order = RunDescriptor.tableOrder(table);
        final int mask = capacity(order) - 1;
        for (int i = home(hash, level, order); ; i = (i + 1) & mask) {
            final long entry = entryOffset(table, i);
            if (memory.getInt(entry + RunDescriptor.ENTRY_RUN_OFFSET) == NO_RUN
                    || memory.getLong(entry) == hash) {
                return entry;
            }
        }
    }

    private int home(long hash, int level, int order) {
        return RunDescriptor.tableHome(keyBelow(hash, level), order);
    }

    private int nodeLink(long hash, int level) {
        return RunDescriptor.nodeLink(keyBelow(hash, level));
    }

    /** The bits of a hash's key that no node above the level has used. */
    private long keyBelow(long hash, int level) {
        return RunDescriptor.childKey(hash, secret) << (level * RunDescriptor.NODE_BITS);
    }

    private static boolean isTooFull(int count, int order) {
        return count * 4 > capacity(order) * 3;
    }

    /** Order of a table for so many children that one more has room, but for the largest. */
    private static int orderFor(int count) {
        int order = 0;
        while (order < MAX_TABLE_ORDER && isTooFull(count, order)) {
            order++;
        }
        return order;
    }

    private static int capacity(int order) {
        return RunDescriptor.TABLE_ENTRIES_PER_LINE << order;
    }

    private static long entryOffset(long table, int entry) {
        return BuddyArena.offset((int) table) + (long) entry * RunDescriptor.TABLE_ENTRY_LENGTH;
    }

    private static long linkOf(int run) {
        return RunDescriptor.headerOffset(run) + RunDescriptor.CHILDREN_OFFSET;
    }

    private void count(int run, int count) {
        memory.putInt(RunDescriptor.headerOffset(run) + RunDescriptor.CHILD_COUNT_OFFSET, count);
    }

    /** Local hash of a run's first block. */
    private long firstHash(int run) {
        final long extent =
                memory.getLong(RunDescriptor.headerOffset(run) + RunDescriptor.EXTENT_OFFSET);
        return memory.getLong(
                BuddyArena.offset(RunDescriptor.line(extent))
                        + (long) RunDescriptor.first(extent) * Long.BYTES);
    }
}
