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
 * Verifies that an index agrees with itself: its tree (see {@link RadixInvariants}), covers with
 * held runs, engine hashes with their indexes, counters with what they count, and the arena with
 * everything that has a line of it. On the writer thread, or while it is quiet. Takes time for
 * every block and every cover.
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

    /** Of each (slot, holding): blocks found under its covers. */
    private final Map<List<Integer>, Integer> coveredBlocks = new HashMap<>();

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
        checkCovers();
        checkHoldings();
        claims.checkAllClaimed();
        assertEquals(arena.usedLines() * BuddyArena.LINE_LENGTH, index.usedBytes());
    }

    private void claim(SegmentedLines lines, String owner) {
        if (lines.directory() != BuddyArena.NONE) {
            claims.claim(lines.directory(), "directory of " + owner);
            for (int line = 0; line < lines.lines(); line += SegmentedLines.SEGMENT_LINES) {
                claims.claim((int) (lines.offset(line) / BuddyArena.LINE_LENGTH), owner);
            }
        }
    }

    // -- covers -----------------------------------------------------------------------------

    private void checkCovers() {
        long heldByAny = 0;
        for (int run : reached) {
            if (run != tree.root()) {
                assertTrue(
                        tree.covers(run) <= HolderCounts.FEW
                                || tree.holderLine(run) != BuddyArena.NONE,
                        () -> "many holders that are not counted: run " + run);
                checkCovers(run);
                heldByAny += checkHolders(run);
            }
        }
        assertEquals(heldByAny, index.blocks(), "distinct blocks");
    }

    private void checkCovers(int run) {
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
        assertEquals(tree.covers(run), slots.size(), "covers");
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
        claims.claim(held.line(holding), owner);
        for (int chunk = 0; chunk < HeldRunDescriptor.CHUNKS; chunk++) {
            final int names = memory.getInt(at + HeldRunDescriptor.chunkOffset(chunk));
            if (names != BuddyArena.NONE) {
                claims.claim(names, "names of " + owner);
            }
        }
        if (bits != BuddyArena.NONE) {
            claims.claim(bits, "bits of " + owner);
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
}
