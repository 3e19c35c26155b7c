package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaClaims;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Verifies that a tree agrees with itself: runs with their parents, children and arrays, the memory
 * of their holders, and the headers. On the writer thread, or while it is quiet. Takes time for
 * every block.
 */
public final class RadixInvariants {
    private static final int LONGS_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;

    private final RadixTree tree;
    private final BuddyArena arena;
    private final OffHeap memory;
    private final int slots;
    private final ArenaClaims claims;

    /** Runs that the root leads to. */
    private final Set<Integer> reached = new HashSet<>();

    private RadixInvariants(RadixTree tree, BuddyArena arena, int slots, ArenaClaims claims) {
        this.tree = tree;
        this.arena = arena;
        this.memory = arena.memory();
        this.slots = slots;
        this.claims = claims;
    }

    /**
     * Fails when anything is not as it should be.
     *
     * @param claims gets every line that the tree has
     * @return all runs, the root among them
     */
    public static Set<Integer> check(
            RadixTree tree, BuddyArena arena, int slots, ArenaClaims claims) {
        final RadixInvariants invariants = new RadixInvariants(tree, arena, slots, claims);
        invariants.checkRuns();
        invariants.checkHeaders();
        return invariants.reached;
    }

    private void checkRuns() {
        long blocks = 0;
        final Deque<Integer> open = new ArrayDeque<>();
        open.push(tree.root());
        assertEquals(0, tree.length(tree.root()));
        assertEquals(0, tree.holders(tree.root()));
        while (!open.isEmpty()) {
            final int run = open.pop();
            assertTrue(reached.add(run), () -> "two ways to run " + run);
            if (run != tree.root()) {
                checkExtent(run);
                checkHolderMemory(run);
                blocks += tree.length(run);
            }
            for (int child : checkChildren(run)) {
                open.push(child);
            }
        }
        assertEquals(reached.size() - 1, tree.runs(), "runs");
        assertEquals(blocks, tree.blocks(), "blocks of the tree");
    }

    private void checkExtent(int run) {
        final long extent = extent(run);
        final int line = RunDescriptor.line(extent);
        final int first = RunDescriptor.first(extent);
        final int end = first + RunDescriptor.length(extent);
        final int above = tree.previousSegment(run);
        assertTrue(tree.length(run) > 0, () -> "empty run " + run);
        assertTrue(end <= RadixTree.MAX_RUN, () -> "long run " + run);
        if (above == RadixTree.NO_RUN) {
            assertEquals(0, first, "offset of the first segment");
            claims.claim(line, "hashes of run " + run);
            if (tree.holderLine(run) != BuddyArena.NO_LINE) {
                claims.claim(tree.holderLine(run), "counts of holders of run " + run);
            }
        } else {
            assertEquals(RunDescriptor.line(extent(above)), line, "segments share an array");
            assertEquals(tree.first(above) + tree.length(above), first, "segments meet");
            assertEquals(run, tree.nextSegment(above));
            assertEquals(above, tree.parent(run));
            assertEquals(tree.holderLine(above), tree.holderLine(run), "counts of the array");
        }
        assertTrue(end <= LONGS_PER_LINE << arena.order(line), () -> "beyond its array: " + run);
        final int below = tree.nextSegment(run);
        assertTrue(
                below == RadixTree.NO_RUN || tree.previousSegment(below) == run, "segments linked");
    }

    private int[] checkChildren(int run) {
        final long children = memory.getLong(at(run) + RunDescriptor.CHILDREN_OFFSET);
        final int[] found = tree.children(run);
        final int kind = RunDescriptor.childKind(children);
        assertEquals(tree.childCount(run), found.length);
        assertEquals(found.length == 0, children == 0);
        assertEquals(found.length == 1, kind == RunDescriptor.ONE_CHILD);
        assertEquals(found.length, checkLink(children, "children of run " + run));
        final Set<Long> firsts = new HashSet<>();
        boolean hasNextSegment = tree.nextSegment(run) == RadixTree.NO_RUN;
        for (int child : found) {
            final long hash = tree.hash(child, 0);
            assertTrue(firsts.add(hash), "two children with one hash");
            assertEquals(child, tree.child(run, hash));
            assertEquals(
                    tree.end(run),
                    memory.getLong(at(child) + RunDescriptor.PARENT_OFFSET),
                    () -> "parent of run " + child);
            assertEquals(run, tree.parent(child), () -> "parent of run " + child);
            assertEquals(tree.depth(run) + tree.length(run), tree.depth(child));
            hasNextSegment |= child == tree.nextSegment(run);
        }
        assertTrue(hasNextSegment, () -> "the next segment is no child of run " + run);
        return found;
    }

    /** Verifies what a link leads to; returns how many children it is. */
    private int checkLink(long link, String owner) {
        int count = 0;
        switch (RunDescriptor.childKind(link)) {
            case RunDescriptor.ONE_CHILD -> count = 1;
            case RunDescriptor.CHILD_TABLE -> {
                final int order = RunDescriptor.tableOrder(link);
                claims.claim((int) link, "table of " + owner);
                assertEquals(arena.order((int) link), order, "size of a table of children");
                for (int i = 0; i < RunDescriptor.TABLE_ENTRIES_PER_LINE << order; i++) {
                    final long entry =
                            BuddyArena.offset((int) link)
                                    + (long) i * RunDescriptor.TABLE_ENTRY_LENGTH;
                    count += memory.getInt(entry + Long.BYTES) == RadixTree.NO_RUN ? 0 : 1;
                }
                assertEquals(RunDescriptor.tableCount(link), count, "count of a table");
                assertTrue(count > 1, "table for one child");
                assertTrue(count < RunDescriptor.TABLE_ENTRIES_PER_LINE << order, "no end");
            }
            case RunDescriptor.CHILD_NODE -> {
                claims.claim((int) link, "node of " + owner);
                for (int i = 0; i < RunDescriptor.NODE_LINKS; i++) {
                    count +=
                            checkLink(memory.getLong(RunDescriptor.nodeLinkOffset(link, i)), owner);
                }
                assertTrue(count > 1, "node for one child");
            }
            default -> assertEquals(0, link);
        }
        return count;
    }

    private void checkHolderMemory(int run) {
        final long holders = memory.getLong(at(run) + RunDescriptor.HOLDERS_OFFSET);
        final int line = RunDescriptor.line(holders);
        final int count = RunDescriptor.count(holders);
        assertTrue(count > 0 || tree.childCount(run) > 0, () -> "no use for run " + run);
        if (line == BuddyArena.NO_LINE) {
            assertTrue(count <= RunDescriptor.INLINE_HOLDERS);
        } else {
            claims.claim(line, "holders of run " + run);
            if (RunDescriptor.isMap(holders)) {
                checkMap(line, count);
            } else {
                assertTrue(count <= LONGS_PER_LINE << arena.order(line));
                assertTrue(count * 4 > LONGS_PER_LINE << arena.order(line), "page is too large");
            }
        }
    }

    private void checkMap(int line, int count) {
        final int groups = RunDescriptor.mapGroups(slots);
        final long offset = BuddyArena.offset(line);
        assertEquals(
                BuddyArena.orderFor(RunDescriptor.mapLength(groups)),
                arena.order(line),
                "map size");
        assertTrue(count > RunDescriptor.INLINE_HOLDERS, "map for few");
        for (int slot = 0; slot < groups * Long.SIZE; slot++) {
            final long group = offset + (long) (slot / Long.SIZE) * RunDescriptor.MAP_GROUP_LENGTH;
            final boolean full = (memory.getLong(group) >>> slot & 1) != 0;
            final boolean partial =
                    (memory.getLong(group + RunDescriptor.PARTIAL_OFFSET) >>> slot & 1) != 0;
            assertFalse(full && partial, "full and partial");
            assertTrue(slot < slots || !(full || partial));
        }
    }

    /** Every header of every block of headers is a run of the tree or free. */
    private void checkHeaders() {
        final Set<Integer> headers = new HashSet<>(reached);
        int free = tree.firstFreeRun();
        while (free != RadixTree.NO_RUN) {
            assertTrue(headers.add(free), "free and in use, or twice free: run " + free);
            assertEquals(0, memory.getLong(at(free) + RunDescriptor.PARENT_OFFSET));
            free = memory.getInt(at(free) + RunDescriptor.NEXT_SEGMENT_OFFSET);
        }
        final List<Integer> lost = new ArrayList<>();
        for (int run : headers) {
            final int line = claims.firstLine((int) (at(run) / BuddyArena.LINE_LENGTH));
            if (claims.owner(line) == null) {
                claims.claim(line, "headers");
                final int firstRun = line * BuddyArena.LINE_LENGTH / RunDescriptor.HEADER_LENGTH;
                final int count =
                        (BuddyArena.LINE_LENGTH << arena.order(line)) / RunDescriptor.HEADER_LENGTH;
                for (int r = firstRun; r < firstRun + count; r++) {
                    if (!headers.contains(r)) {
                        lost.add(r);
                    }
                }
            } else {
                assertEquals("headers", claims.owner(line), "header inside");
            }
        }
        assertTrue(lost.isEmpty(), () -> "headers neither free nor in use: " + lost);
    }

    private long extent(int run) {
        return memory.getLong(at(run) + RunDescriptor.EXTENT_OFFSET);
    }

    private static long at(int run) {
        return RunDescriptor.headerOffset(run);
    }
}
