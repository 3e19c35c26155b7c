package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ArenaClaims;
import io.kvasir.core.memory.BuddyArena;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.core.radix.RadixInvariants;
import io.kvasir.core.radix.RadixTree;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Verifies that an index agrees with itself: its tree (see {@link RadixInvariants}), holders with
 * held runs, engine hashes with their indexes, counters with what they count, and the arena with
 * everything that has a line of it. On the writer thread, or while it is quiet. Takes time for
 * every block and every holder.
 */
public final class IndexInvariants {
    private static final int LONGS_PER_LINE = BuddyArena.LINE_LENGTH / Long.BYTES;

    private final PrefixIndex index;
    private final RadixTree tree;
    private final BuddyArena arena;
    private final OffHeap memory;

    private final ArenaClaims claims;

    /** Runs that the root leads to. */
    private Set<Integer> reached = Set.of();

    /** Of each (slot, held run): blocks found under its holders. */
    private final Map<List<Integer>, Integer> heldBlocksOf = new HashMap<>();

    private IndexInvariants(PrefixIndex index) {
        this.index = index;
        this.tree = index.tree();
        this.arena = index.arena();
        this.memory = arena.memory();
        this.claims = new ArenaClaims(arena);
    }

    /** Tree of an index, for tests of the tree. */
    public static RadixTree tree(PrefixIndex index) {
        return index.tree();
    }

    /** Memory of the tree of an index, for tests of the tree. */
    public static BuddyArena arena(PrefixIndex index) {
        return index.arena();
    }

    /** Fails when anything is not as it should be. */
    public static void check(PrefixIndex index) {
        new IndexInvariants(index).checkAll();
    }

    private void checkAll() {
        reached = RadixInvariants.check(tree, arena, index.config().maxWorkerSlots(), claims);
        checkHolders();
        checkHeldRuns();
        claims.checkAllClaimed();
        assertEquals(arena.usedLines() * BuddyArena.LINE_LENGTH, index.usedBytes());
    }

    private void claim(SegmentedLines lines, String owner) {
        lines.directory().forEach(page -> claims.claim(page, "directory of " + owner));
        for (int line = 0; line < lines.lines(); line += SegmentedLines.SEGMENT_LINES) {
            claims.claim((int) (lines.offset(line) / BuddyArena.LINE_LENGTH), owner);
        }
    }

    // -- holders -----------------------------------------------------------------------------

    private void checkHolders() {
        long heldByAny = 0;
        for (int run : reached) {
            if (run != tree.root()) {
                assertTrue(
                        tree.holders(run) <= HolderCounts.FEW
                                || tree.holderLine(run) != BuddyArena.NO_LINE,
                        () -> "many holders that are not counted: run " + run);
                checkHolders(run);
                heldByAny += checkHolderCounts(run);
            }
        }
        assertEquals(heldByAny, index.blocks(), "distinct blocks");
    }

    private void checkHolders(int run) {
        final int first = tree.first(run);
        final int end = first + tree.length(run);
        final Set<Integer> slots = new HashSet<>();
        for (int holder = tree.lastHolder(run);
                holder != RadixTree.NO_HOLDER;
                holder = tree.previousHolder(run, holder)) {
            final int slot = tree.holderSlot(run, holder);
            final int heldRun = tree.holderTag(run, holder);
            final HeldRuns held = index.heldRuns(slot);
            assertTrue(slots.add(slot), "two holders of a slot");
            assertEquals(holder, tree.findHolder(run, slot));
            assertTrue(tree.isHolder(run, holder, slot));
            assertTrue(heldRun < held.end() && held.isUsed(heldRun), "holder without a held run");
            assertTrue(
                    isSegmentOf(held.run(heldRun), run), "holder of a held run of another array");
            int leading = 0;
            int blocks = 0;
            for (int arrayOffset = first; arrayOffset < end; arrayOffset++) {
                blocks += held.holds(heldRun, arrayOffset) ? 1 : 0;
                leading +=
                        leading == arrayOffset - first && held.holds(heldRun, arrayOffset) ? 1 : 0;
            }
            assertTrue(blocks > 0, "holder without a block");
            assertEquals(leading, tree.holderLeading(run, holder), "leading blocks of a holder");
            heldBlocksOf.merge(List.of(slot, heldRun), blocks, Integer::sum);
        }
        assertEquals(tree.holders(run), slots.size(), "holders");
    }

    private boolean isSegmentOf(int segment, int run) {
        int top = run;
        while (tree.previousSegment(top) != RadixTree.NO_RUN) {
            top = tree.previousSegment(top);
        }
        for (int p = top; p != RadixTree.NO_RUN; p = tree.nextSegment(p)) {
            if (p == segment) {
                return true;
            }
        }
        return false;
    }

    /** Counts the blocks of a run that any slot holds; what is behind the last one is gone. */
    private int checkHolderCounts(int run) {
        int held = 0;
        boolean lastHeld = false;
        for (int arrayOffset = tree.first(run);
                arrayOffset < tree.first(run) + tree.length(run);
                arrayOffset++) {
            int holders = 0;
            for (int holder = tree.lastHolder(run);
                    holder != RadixTree.NO_HOLDER;
                    holder = tree.previousHolder(run, holder)) {
                final HeldRuns mine = index.heldRuns(tree.holderSlot(run, holder));
                holders += mine.holds(tree.holderTag(run, holder), arrayOffset) ? 1 : 0;
            }
            lastHeld = holders > 0;
            held += lastHeld ? 1 : 0;
            if (tree.holderLine(run) != BuddyArena.NO_LINE) {
                final long counts = BuddyArena.offset(tree.holderLine(run));
                assertEquals(holders, memory.getInt(counts + (long) arrayOffset * Integer.BYTES));
            }
        }
        assertEquals(tree.length(run) - held, tree.unheld(run), () -> "unheld of run " + run);
        assertTrue(lastHeld || tree.childCount(run) > 0, () -> "unheld end of run " + run);
        return held;
    }

    // -- held runs ---------------------------------------------------------------------------

    private void checkHeldRuns() {
        long heldBlocks = 0;
        for (int slot = 0; slot < index.config().maxWorkerSlots(); slot++) {
            final HeldRuns held = index.heldRuns(slot);
            int used = 0;
            int names = 0;
            final Map<Integer, Integer> below = new HashMap<>();
            for (int heldRun = 0; heldRun < held.end(); heldRun++) {
                if (held.isUsed(heldRun)) {
                    used++;
                    names += held.held(heldRun);
                    checkHeldRun(slot, held, heldRun);
                    below.merge(held.above(heldRun), 1, Integer::sum);
                }
            }
            for (int heldRun = 0; heldRun < held.end(); heldRun++) {
                if (held.isUsed(heldRun)) {
                    assertEquals(
                            below.getOrDefault(heldRun, 0), held.below(heldRun), "held runs below");
                }
            }
            assertEquals(used, held.used(), "holdings");
            final EngineHashLookup all = index.names(slot);
            assertEquals(names + all.aliases(), index.heldBlocks(slot));
            assertEquals(index.heldBlocks(slot), all.index().size(), "engine hashes");
            claim(all.index().buckets(), "engine-hash index of slot " + slot);
            claim(all.index().overflow(), "overflow lines of slot " + slot);
            claim(all.records().lines(), "records of slot " + slot);
            claim(held.lines(), "lines of the held runs of slot " + slot);
            heldBlocks += index.heldBlocks(slot);
        }
        assertEquals(heldBlocks, index.heldBlocks());
        assertTrue(heldBlocksOf.isEmpty(), () -> "holders left over: " + heldBlocksOf);
    }

    private void checkHeldRun(int slot, HeldRuns held, int heldRun) {
        final String owner = "held run " + heldRun + " of slot " + slot;
        final long at = BuddyArena.offset(held.line(heldRun));
        final int bits = memory.getInt(at + HeldRunDescriptor.BITS_OFFSET);
        claims.claim(held.line(heldRun), owner);
        for (int chunk = 0; chunk < HeldRunDescriptor.CHUNKS; chunk++) {
            final int names = memory.getInt(at + HeldRunDescriptor.chunkOffset(chunk));
            if (names != BuddyArena.NO_LINE) {
                claims.claim(names, "names of " + owner);
            }
        }
        if (bits != BuddyArena.NO_LINE) {
            claims.claim(bits, "bits of " + owner);
        }
        assertTrue(reached.contains(held.run(heldRun)), "run of " + owner);
        assertTrue(tree.findHolder(held.run(heldRun), slot) >= 0, "run not held by " + owner);
        assertEquals(
                tree.segmentAt(held.run(heldRun), held.low(heldRun)),
                held.run(heldRun),
                "first segment that is held by " + owner);
        assertTrue(
                tree.first(held.run(heldRun)) == 0
                        || tree.isHeadless(tree.segmentAt(held.run(heldRun), 0)),
                () -> "not known to hold no first segment: " + owner);
        checkBlocks(slot, held, heldRun, at, owner);
        assertEquals(
                held.held(heldRun),
                heldBlocksOf.remove(List.of(slot, heldRun)),
                "blocks under holders of " + owner);
    }

    private boolean namesReach(long at, int arrayOffset) {
        final int perChunk = HeldRunDescriptor.NAMES_PER_CHUNK;
        final int names = memory.getInt(at + HeldRunDescriptor.chunkOffset(arrayOffset / perChunk));
        return arrayOffset % perChunk < LONGS_PER_LINE << arena.order(names);
    }

    private void checkBlocks(int slot, HeldRuns held, int heldRun, long at, String owner) {
        int count = 0;
        final int high = held.high(heldRun);
        for (int arrayOffset = held.low(heldRun); arrayOffset < high; arrayOffset++) {
            if (held.holds(heldRun, arrayOffset)) {
                count++;
                final long name = held.name(heldRun, arrayOffset);
                assertTrue(namesReach(at, arrayOffset), () -> "no memory of names of " + owner);
                assertEquals(
                        HeldRunDescriptor.position(heldRun, arrayOffset),
                        index.names(slot).position(name),
                        () -> "position of an engine hash of " + owner);
            }
        }
        assertEquals(held.held(heldRun), count, "held blocks of " + owner);
        assertTrue(held.holds(heldRun, held.low(heldRun)), "first block of " + owner);
        assertTrue(held.holds(heldRun, high - 1), "last block of " + owner);
        assertFalse(
                held.isSolid(heldRun) && count < high - held.low(heldRun),
                "gap in the solid " + owner);
    }
}
