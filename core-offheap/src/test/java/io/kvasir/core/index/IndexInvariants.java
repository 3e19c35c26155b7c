package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.BuddyArenaInvariants;
import io.kvasir.core.memory.OffHeap;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;

/**
 * Looks whether an index agrees with itself: runs with their parents and children, covers with
 * holdings, names with their indexes, counters with what they count, and the arena with everything
 * that has a line of it. On the writer thread, or while it is quiet. Takes time for every block and
 * every cover.
 */
final class IndexInvariants {
    private static final int LONGS_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;

    private final PrefixIndex index;
    private final RadixTree tree;
    private final BuddyArena arena;
    private final OffHeap memory;

    /** Blocks in use by what the arena says: first line to order. */
    private final NavigableMap<Integer, Integer> used = new TreeMap<>();

    /** Blocks in use by what has been visited: first line to owner. */
    private final Map<Integer, String> owners = new TreeMap<>();

    /** Runs that the root leads to. */
    private final Set<Integer> reached = new HashSet<>();

    /** Of each (slot, holding): blocks found under its covers. */
    private final Map<List<Integer>, Integer> coveredBlocks = new HashMap<>();

    private IndexInvariants(PrefixIndex index) {
        this.index = index;
        this.tree = index.tree();
        this.arena = index.arena();
        this.memory = arena.memory();
    }

    /** Fails when anything is not as it should be. */
    static void check(PrefixIndex index) {
        new IndexInvariants(index).checkAll();
    }

    private void checkAll() {
        used.putAll(BuddyArenaInvariants.check(arena));
        walkRuns();
        checkHoldings();
        checkHeaders();
        assertEquals(owners.keySet(), used.keySet(), "blocks in use and blocks with an owner");
        assertEquals(arena.usedLines() * BuddyArena.LINE_LENGTH, index.usedBytes());
    }

    private void claim(int line, String owner) {
        assertNotEquals(BuddyArena.NONE, line, owner);
        final String before = owners.put(line, owner);
        assertEquals(null, before, () -> "two owners of line " + line + ", one is " + owner);
    }

    private void claim(SegmentedLines lines, String owner) {
        if (lines.directory() != BuddyArena.NONE) {
            claim(lines.directory(), "directory of " + owner);
            for (int line = 0; line < lines.lines(); line += SegmentedLines.SEGMENT_LINES) {
                claim((int) (lines.offset(line) / BuddyArena.LINE_LENGTH), owner);
            }
        }
    }

    // -- runs -------------------------------------------------------------------------------

    private void walkRuns() {
        long heldByAny = 0;
        long blocks = 0;
        final Deque<Integer> open = new ArrayDeque<>();
        open.push(tree.root());
        assertEquals(0, tree.length(tree.root()));
        assertEquals(0, tree.covers(tree.root()));
        while (!open.isEmpty()) {
            final int run = open.pop();
            assertTrue(reached.add(run), () -> "two ways to run " + run);
            if (run != tree.root()) {
                checkExtent(run);
                checkCovers(run);
                heldByAny += checkHolders(run);
                blocks += tree.length(run);
            }
            for (int child : checkChildren(run)) {
                open.push(child);
            }
        }
        assertEquals(reached.size() - 1, tree.runs(), "runs");
        assertEquals(blocks, tree.blocks(), "blocks of the tree");
        assertEquals(heldByAny, index.blocks(), "distinct blocks");
    }

    private void checkExtent(int run) {
        final long extent = extent(run);
        final int line = RunDescriptor.line(extent);
        final int first = RunDescriptor.first(extent);
        final int end = first + RunDescriptor.length(extent);
        final int above = tree.previousPiece(run);
        assertTrue(tree.length(run) > 0, () -> "empty run " + run);
        assertTrue(end <= RadixTree.MAX_RUN, () -> "long run " + run);
        if (above == RadixTree.NONE) {
            assertEquals(0, first, "place of the first piece");
            claim(line, "hashes of run " + run);
            if (tree.holderLine(run) != BuddyArena.NONE) {
                claim(tree.holderLine(run), "counts of holders of run " + run);
            }
        } else {
            assertEquals(RunDescriptor.line(extent(above)), line, "pieces share an array");
            assertEquals(tree.first(above) + tree.length(above), first, "pieces meet");
            assertEquals(run, tree.nextPiece(above));
            assertEquals(above, tree.parent(run));
            assertEquals(tree.holderLine(above), tree.holderLine(run), "counts of the array");
        }
        assertTrue(
                tree.covers(run) <= HolderCounts.FEW || tree.holderLine(run) != BuddyArena.NONE,
                () -> "many holders that are not counted: run " + run);
        assertTrue(end <= LONGS_PER_LINE << arena.order(line), () -> "beyond its array: " + run);
        final int below = tree.nextPiece(run);
        assertTrue(below == RadixTree.NONE || tree.previousPiece(below) == run, "pieces linked");
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
        boolean hasNextPiece = tree.nextPiece(run) == RadixTree.NONE;
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
            hasNextPiece |= child == tree.nextPiece(run);
        }
        assertTrue(hasNextPiece, () -> "the next piece is no child of run " + run);
        return found;
    }

    /** Looks at what a link leads to; returns how many children it is. */
    private int checkLink(long link, String owner) {
        int count = 0;
        switch (RunDescriptor.childKind(link)) {
            case RunDescriptor.ONE_CHILD -> count = 1;
            case RunDescriptor.CHILD_TABLE -> {
                final int order = RunDescriptor.tableOrder(link);
                claim((int) link, "table of " + owner);
                assertEquals(arena.order((int) link), order, "size of a table of children");
                for (int i = 0; i < RunDescriptor.TABLE_ENTRIES_PER_LINE << order; i++) {
                    final long entry =
                            BuddyArena.offset((int) link)
                                    + (long) i * RunDescriptor.TABLE_ENTRY_LENGTH;
                    count += memory.getInt(entry + Long.BYTES) == RadixTree.NONE ? 0 : 1;
                }
                assertEquals(RunDescriptor.tableCount(link), count, "count of a table");
                assertTrue(count > 1, "table for one child");
                assertTrue(count < RunDescriptor.TABLE_ENTRIES_PER_LINE << order, "no end");
            }
            case RunDescriptor.CHILD_NODE -> {
                claim((int) link, "node of " + owner);
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

    private void checkCovers(int run) {
        final long covers = memory.getLong(at(run) + RunDescriptor.COVERS_OFFSET);
        final int line = RunDescriptor.line(covers);
        final int count = RunDescriptor.count(covers);
        assertTrue(count > 0 || tree.childCount(run) > 0, () -> "nobody needs run " + run);
        if (line == BuddyArena.NONE) {
            assertTrue(count <= RunDescriptor.INLINE_COVERS);
        } else {
            claim(line, "covers of run " + run);
            if (RunDescriptor.isMap(covers)) {
                checkMap(line, count);
            } else {
                assertTrue(count <= LONGS_PER_LINE << arena.order(line));
                assertTrue(count * 4 > LONGS_PER_LINE << arena.order(line), "page is too large");
            }
        }
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        final Set<Integer> slots = new HashSet<>();
        for (int cover = tree.lastCover(run);
                cover != RadixTree.NO_COVER;
                cover = tree.previousCover(run, cover)) {
            final int slot = tree.coverSlot(run, cover);
            final int holding = tree.coverTag(run, cover);
            final HeldRuns held = index.holdings(slot);
            assertTrue(slots.add(slot), "two covers of a slot");
            assertEquals(cover, tree.findCover(run, slot));
            assertTrue(tree.isCover(run, cover, slot));
            assertTrue(holding < held.end() && held.isUsed(holding), "cover without a holding");
            assertTrue(isPieceOf(held.run(holding), run), "cover of a holding of another array");
            int leading = 0;
            int blocks = 0;
            for (int place = first; place < end; place++) {
                blocks += held.holds(holding, place) ? 1 : 0;
                leading += leading == place - first && held.holds(holding, place) ? 1 : 0;
            }
            assertTrue(blocks > 0, "cover without a block");
            assertEquals(leading, tree.coverLeading(run, cover), "leading blocks of a cover");
            coveredBlocks.merge(List.of(slot, holding), blocks, Integer::sum);
        }
        assertEquals(count, slots.size(), "covers");
    }

    private void checkMap(int line, int count) {
        final int groups = RunDescriptor.mapGroups(index.config().maxWorkerSlots());
        final long offset = BuddyArena.offset(line);
        assertEquals(
                BuddyArena.orderFor(RunDescriptor.mapLength(groups)),
                arena.order(line),
                "map size");
        assertTrue(count > RunDescriptor.INLINE_COVERS, "map for few");
        for (int slot = 0; slot < groups * Long.SIZE; slot++) {
            final long group = offset + (long) (slot / Long.SIZE) * RunDescriptor.MAP_GROUP_LENGTH;
            final boolean full = (memory.getLong(group) >>> slot & 1) != 0;
            final boolean partial =
                    (memory.getLong(group + RunDescriptor.PARTIAL_OFFSET) >>> slot & 1) != 0;
            assertFalse(full && partial, "full and partial");
            assertTrue(slot < index.config().maxWorkerSlots() || !(full || partial));
        }
    }

    private boolean isPieceOf(int piece, int run) {
        int top = run;
        while (tree.previousPiece(top) != RadixTree.NONE) {
            top = tree.previousPiece(top);
        }
        for (int p = top; p != RadixTree.NONE; p = tree.nextPiece(p)) {
            if (p == piece) {
                return true;
            }
        }
        return false;
    }

    /** Counts the blocks of a run that any slot holds; what is behind the last one is gone. */
    private int checkHolders(int run) {
        int held = 0;
        boolean lastHeld = false;
        for (int place = tree.first(run); place < tree.first(run) + tree.length(run); place++) {
            int holders = 0;
            for (int cover = tree.lastCover(run);
                    cover != RadixTree.NO_COVER;
                    cover = tree.previousCover(run, cover)) {
                final HeldRuns mine = index.holdings(tree.coverSlot(run, cover));
                holders += mine.holds(tree.coverTag(run, cover), place) ? 1 : 0;
            }
            lastHeld = holders > 0;
            held += lastHeld ? 1 : 0;
            if (tree.holderLine(run) != BuddyArena.NONE) {
                final long counts = BuddyArena.offset(tree.holderLine(run));
                assertEquals(holders, memory.getInt(counts + (long) place * Integer.BYTES));
            }
        }
        assertEquals(tree.length(run) - held, tree.unheld(run), () -> "unheld of run " + run);
        assertTrue(lastHeld || tree.childCount(run) > 0, () -> "unheld end of run " + run);
        return held;
    }

    // -- holdings ---------------------------------------------------------------------------

    private void checkHoldings() {
        long heldBlocks = 0;
        for (int slot = 0; slot < index.config().maxWorkerSlots(); slot++) {
            final HeldRuns held = index.holdings(slot);
            int used = 0;
            int names = 0;
            final Map<Integer, Integer> below = new HashMap<>();
            for (int holding = 0; holding < held.end(); holding++) {
                if (held.isUsed(holding)) {
                    used++;
                    names += held.held(holding);
                    checkHolding(slot, held, holding);
                    below.merge(held.above(holding), 1, Integer::sum);
                }
            }
            for (int holding = 0; holding < held.end(); holding++) {
                if (held.isUsed(holding)) {
                    assertEquals(
                            below.getOrDefault(holding, 0), held.below(holding), "holdings below");
                }
            }
            assertEquals(used, held.used(), "holdings");
            final EngineHashLookup all = index.names(slot);
            assertEquals(names + all.aliases(), index.heldBlocks(slot));
            assertEquals(index.heldBlocks(slot), all.index().size(), "engine hashes");
            claim(all.index().buckets(), "engine-hash index of slot " + slot);
            claim(all.index().overflow(), "overflow lines of slot " + slot);
            claim(all.records().lines(), "records of slot " + slot);
            claim(held.lines(), "lines of the holdings of slot " + slot);
            heldBlocks += index.heldBlocks(slot);
        }
        assertEquals(heldBlocks, index.heldBlocks());
        assertTrue(coveredBlocks.isEmpty(), () -> "covers left over: " + coveredBlocks);
    }

    private void checkHolding(int slot, HeldRuns held, int holding) {
        final String owner = "holding " + holding + " of slot " + slot;
        final long at = BuddyArena.offset(held.line(holding));
        final int bits = memory.getInt(at + HeldRunDescriptor.BITS_OFFSET);
        claim(held.line(holding), owner);
        for (int chunk = 0; chunk < HeldRunDescriptor.CHUNKS; chunk++) {
            final int names = memory.getInt(at + HeldRunDescriptor.chunkOffset(chunk));
            if (names != BuddyArena.NONE) {
                claim(names, "names of " + owner);
            }
        }
        if (bits != BuddyArena.NONE) {
            claim(bits, "bits of " + owner);
        }
        assertTrue(reached.contains(held.run(holding)), "run of " + owner);
        assertTrue(tree.findCover(held.run(holding), slot) >= 0, "run not covered by " + owner);
        assertEquals(
                tree.pieceAt(held.run(holding), held.low(holding)),
                held.run(holding),
                "first piece that is covered by " + owner);
        assertTrue(
                tree.first(held.run(holding)) == 0
                        || tree.isHeadless(tree.pieceAt(held.run(holding), 0)),
                () -> "not known to hold no first piece: " + owner);
        checkPlaces(slot, held, holding, at, owner);
        assertEquals(
                held.held(holding),
                coveredBlocks.remove(List.of(slot, holding)),
                "blocks under covers of " + owner);
    }

    private boolean namesReach(long at, int place) {
        final int perChunk = HeldRunDescriptor.NAMES_PER_CHUNK;
        final int names = memory.getInt(at + HeldRunDescriptor.chunkOffset(place / perChunk));
        return place % perChunk < LONGS_PER_LINE << arena.order(names);
    }

    private void checkPlaces(int slot, HeldRuns held, int holding, long at, String owner) {
        int count = 0;
        final int high = held.high(holding);
        for (int place = held.low(holding); place < high; place++) {
            if (held.holds(holding, place)) {
                count++;
                final long name = held.name(holding, place);
                assertTrue(namesReach(at, place), () -> "no memory of names of " + owner);
                assertEquals(
                        HeldRunDescriptor.position(holding, place),
                        index.names(slot).position(name),
                        () -> "position of an engine hash of " + owner);
            }
        }
        assertEquals(held.held(holding), count, "held places of " + owner);
        assertTrue(held.holds(holding, held.low(holding)), "first place of " + owner);
        assertTrue(held.holds(holding, high - 1), "last place of " + owner);
        assertFalse(
                held.isSolid(holding) && count < high - held.low(holding),
                "gap in the solid " + owner);
    }

    // -- headers ----------------------------------------------------------------------------

    /** Every header of every block of headers is a run of the tree or free. */
    private void checkHeaders() {
        final Set<Integer> headers = new HashSet<>(reached);
        int free = tree.firstFreeRun();
        while (free != RadixTree.NONE) {
            assertTrue(headers.add(free), "free and in use, or twice free: run " + free);
            assertEquals(0, memory.getLong(at(free) + RunDescriptor.PARENT_OFFSET));
            free = memory.getInt(at(free) + RunDescriptor.NEXT_PIECE_OFFSET);
        }
        final List<Integer> lost = new ArrayList<>();
        for (int run : headers) {
            final int line = used.floorKey((int) (at(run) / BuddyArena.LINE_LENGTH));
            if (owners.get(line) == null) {
                claim(line, "headers");
                final int firstRun = line * BuddyArena.LINE_LENGTH / RunDescriptor.HEADER_LENGTH;
                final int count =
                        (BuddyArena.LINE_LENGTH << arena.order(line)) / RunDescriptor.HEADER_LENGTH;
                for (int r = firstRun; r < firstRun + count; r++) {
                    if (!headers.contains(r)) {
                        lost.add(r);
                    }
                }
            } else {
                assertEquals("headers", owners.get(line), "header inside");
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
