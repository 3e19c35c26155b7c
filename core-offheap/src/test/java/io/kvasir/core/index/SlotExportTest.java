package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.radix.OverlapScores;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.Arrays;

/** Exports and imports at their limits. */
class SlotExportTest {
    private static final int SLOTS = 3;
    private static final int SLOT = 1;

    private static PrefixIndex index(long blocks) {
        return new PrefixIndex(new PrefixIndexConfig(SLOTS, blocks, blocks));
    }

    private static long[] range(long from, int count) {
        final long[] numbers = new long[count];
        Arrays.setAll(numbers, i -> from + i);
        return numbers;
    }

    /** A prompt of blocks whose names are their local hashes and a million. */
    private static void store(PrefixIndex index, int slot, long from, int count) {
        assertEquals(
                StoreResult.STORED,
                index.store(
                        slot,
                        true,
                        0,
                        range(1_000_000 + from, count),
                        range(from, count),
                        count,
                        false));
    }

    private static void assertCopied(PrefixIndex index, PrefixIndex other) {
        assertEquals(SlotCopies.contents(index, SLOT), SlotCopies.contents(other, SLOT));
        IndexInvariants.check(index);
        IndexInvariants.check(other);
    }

    @Test
    void anEmptySlotShowsNothing() {
        try (PrefixIndex index = index(100);
                PrefixIndex other = index(100)) {
            store(index, 0, 1, 5);
            final SlotCopies.Content content = SlotCopies.export(index, SLOT, 1, () -> {});
            assertEquals(0, content.blocks());
            SlotCopies.importInto(other, SLOT, content, () -> {});
            assertCopied(index, other);
        }
    }

    @Test
    void aFullIndexFitsIntoOneOfTheSameSize() {
        final int blocks = 5_000;
        try (PrefixIndex index = index(blocks);
                PrefixIndex other = index(blocks)) {
            for (int i = 0; i < blocks; i += 50) {
                store(index, SLOT, 1 + i, 50);
            }
            assertEquals(blocks, index.heldBlocks());
            SlotCopies.importInto(
                    other, SLOT, SlotCopies.export(index, SLOT, 64, () -> {}), () -> {});
            assertEquals(0, other.missingBlocks(SLOT));
            assertCopied(index, other);
        }
    }

    /** A copy takes memory beside that of its block. */
    @ParameterizedTest
    @CsvSource({"PHYSICAL, 128", "PHYSICAL, 160", "PHYSICAL, 300", "LAST_COPY, 128"})
    void copiesThatThereIsNoMemoryToCountAreMissing(CopyRule rule, long kib) {
        final int blocks = 4_000;
        final PrefixIndexConfig config = new PrefixIndexConfig(SLOT + 1, 20_000, 20_000);
        try (PrefixIndex index = new PrefixIndex(config);
                PrefixIndex other = new PrefixIndex(config.withBudgetBytes(kib << 10))) {
            store(index, SLOT, 1, blocks);
            store(index, SLOT, 1, blocks);
            index.remove(SLOT, new long[0], 0, rule);
            SlotCopies.importInto(
                    other, SLOT, SlotCopies.export(index, SLOT, 64, () -> {}), () -> {});
            assertEquals(blocks, other.heldBlocks(SLOT));
            final long[] copies = new long[1];
            other.forEach((slot, engineHash, sequence, count) -> copies[0] += count);
            assertEquals(
                    rule == CopyRule.PHYSICAL ? 2L * blocks - copies[0] : 0,
                    other.missingBlocks(SLOT));
            assertEquals(kib < 300, copies[0] < 2L * blocks);
        }
    }

    @Test
    void moreCopiesThanCanBeSaidAreAsManyAsCan() {
        try (PrefixIndex index = index(100)) {
            store(index, SLOT, 1, 1);
            index.removeTo(SLOT, 1_000_001, Integer.MAX_VALUE);
            store(index, SLOT, 1, 1);
            index.forEach(
                    (slot, engineHash, sequence, count) -> assertEquals(Integer.MAX_VALUE, count));
        }
    }

    @Test
    void whatFindsNoRoomIsMissingAndNothingElse() {
        try (PrefixIndex index = index(100);
                PrefixIndex other = index(60)) {
            for (int i = 0; i < 100; i += 10) {
                store(index, SLOT, 1 + 100L * i, 10);
            }
            SlotCopies.importInto(
                    other, SLOT, SlotCopies.export(index, SLOT, 64, () -> {}), () -> {});
            assertEquals(60, other.heldBlocks(SLOT));
            assertEquals(40, other.missingBlocks(SLOT));
            assertEquals(100, other.turnover(SLOT));
            assertTrue(
                    SlotCopies.contents(index, SLOT).containsAll(SlotCopies.contents(other, SLOT)));
        }
    }

    @ParameterizedTest
    @CsvSource({"PHYSICAL, true", "PHYSICAL, false", "LAST_COPY, true", "LAST_COPY, false"})
    void aSlotRemovesByTheRuleThatItHadBefore(CopyRule rule, boolean copied) {
        final int copies = 2;
        final int ofABlock = rule == CopyRule.LAST_COPY ? 1 : copies; // removals to come
        try (PrefixIndex index = index(1_000);
                PrefixIndex other =
                        new PrefixIndex(
                                new PrefixIndexConfig(
                                        SLOTS, 1_000, 20, 1 << 20, CapacityRule.EVICT))) {
            for (int i = 0; i < copies; i++) {
                store(index, SLOT, 1, 20);
            }
            for (int i = 0; i < ofABlock; i++) {
                index.remove(SLOT, new long[] {1_000_020}, 1, rule);
            }
            if (copied) {
                index.copySlot(SLOT, other);
            } else {
                SlotCopies.importInto(
                        other, SLOT, SlotCopies.export(index, SLOT, 64, () -> {}), () -> {});
            }
            assertCopied(index, other);
            assertEquals(rule, other.removalRule(SLOT));

            store(other, SLOT, 500, 20); // gives up all others
            assertEquals(19, other.evictedBlocks(SLOT));
            assertEquals(19L * ofABlock, other.missingBlocks(SLOT));
            for (int i = 0; i < ofABlock; i++) {
                assertEquals(0, other.remove(SLOT, range(1_000_001, 19), 19, rule));
            }
            assertEquals(0, other.missingBlocks(SLOT));
        }
    }

    @ParameterizedTest(name = "a store of {0} blocks between any {1} steps, up to {2} in {3} KiB")
    @CsvSource({
        "1, 1, 3000, 4096",
        "7, 3, 3300, 4096",
        "40, 60, 2900, 4096",
        "100, 40, 3000, 4096",
        "300, 200, 3300, 4096",
        "1, 1, 9000, 160",
        "7, 3, 9000, 160",
        "30, 20, 9000, 192"
    })
    void whatIsEvictedOfAnImportIsMissing(int blocks, int steps, long most, long kib) {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(SLOTS, most, most, kib << 10).with(CapacityRule.EVICT);
        try (PrefixIndex index = index(10_000);
                PrefixIndex other = new PrefixIndex(config)) {
            for (int prompt = 0; prompt < 300; prompt++) {
                store(index, SLOT, 1 + 10 * prompt, 10);
                index.remove(SLOT, new long[] {1_000_005 + 10 * prompt}, 1, CopyRule.PHYSICAL);
            }
            final SlotCopies.Content content = SlotCopies.export(index, SLOT, 64, () -> {});
            assertEquals(300, content.holes());
            final int[] step = {0};
            SlotCopies.importInto(
                    other,
                    SLOT,
                    content,
                    () -> {
                        if (++step[0] % steps == 0) {
                            store(other, 0, 1_000_000 + (long) step[0] * blocks, blocks);
                        }
                    });
            assertTrue(other.missingBlocks(SLOT) > 0);
            assertEquals(2_700, other.heldBlocks(SLOT) + other.missingBlocks(SLOT));
            IndexInvariants.check(other);
        }
    }

    @Test
    void nothingIsEvictedFromASlotThatIsBeingShown() {
        final PrefixIndexConfig config =
                new PrefixIndexConfig(SLOTS, 1_000, 1_000).with(CapacityRule.EVICT);
        try (PrefixIndex index = new PrefixIndex(config)) {
            for (int i = 0; i < 1_000; i += 10) {
                store(index, SLOT, 1 + 100L * i, 10);
            }
            final int[] stored = {0};
            final SlotCopies.Content content =
                    SlotCopies.export(
                            index,
                            SLOT,
                            10,
                            () -> {
                                final long from = 1_000_000 + 100L * stored[0]++;
                                index.store(
                                        2, true, 0, range(from, 10), range(from, 10), 10, false);
                            });
            assertEquals(1_000, content.blocks());
            assertEquals(1_000, index.heldBlocks(SLOT));
            assertTrue(index.missingBlocks(2) > 0, "the other slot found no room meanwhile");
            store(index, 2, 9_000_000, 10); // it is over: the largest gives again
            assertTrue(index.heldBlocks(SLOT) < 1_000);
            IndexInvariants.check(index);
        }
    }

    @Test
    void tenThousandBranchesBehindAHoleAreShownOnceEach() {
        final int branches = 10_000;
        try (PrefixIndex index = index(4L * branches);
                PrefixIndex other = index(4L * branches)) {
            store(index, SLOT, 1, 600);
            final long[] name = new long[1];
            final long[] local = new long[1];
            for (int i = 0; i < branches; i++) {
                name[0] = 5_000_000L + i;
                local[0] = 700_000L + i;
                index.store(SLOT, false, 1_000_600, name, local, 1, false);
            }
            index.remove(SLOT, range(1_000_001, 600), 600, CopyRule.LAST_COPY);
            assertEquals(branches, index.heldBlocks(SLOT));
            final SlotCopies.Content content = SlotCopies.export(index, SLOT, 100, () -> {});
            assertEquals(branches, content.blocks());
            assertEquals(600, content.holes());
            SlotCopies.importInto(other, SLOT, content, () -> {});
            assertCopied(index, other);
            // the holes are filled again: all of it matches
            store(other, SLOT, 1, 600);
            final long[] prompt = Arrays.copyOf(range(1, 600), 601);
            prompt[600] = 700_007;
            final OverlapScores scores = new OverlapScores(SLOTS);
            assertEquals(601, other.match(prompt, 601, scores));
        }
    }

    @Test
    void aPromptOfManyRunsIsShownInSlicesThatEachHaveAnEnd() {
        final int blocks = 40_000;
        try (PrefixIndex index = index(2 * blocks);
                PrefixIndex other = index(2 * blocks)) {
            store(index, SLOT, 1, blocks);
            final int[] slices = {0};
            final SlotCopies.Content content =
                    SlotCopies.export(index, SLOT, 1_000, () -> slices[0]++);
            assertEquals(blocks, content.blocks());
            assertTrue(slices[0] >= blocks / (1_000 + SlotPath.MAX_BLOCKS), "slices");
            SlotCopies.importInto(other, SLOT, content, () -> {});
            assertCopied(index, other);
        }
    }

    @Test
    void oneSlotIsShownAtATime() {
        try (PrefixIndex index = index(100)) {
            final SlotExport export = index.export(SLOT);
            assertThrows(IllegalStateException.class, () -> index.export(0));
            export.close();
            export.close();
            assertThrows(
                    IllegalStateException.class, () -> export.show(1, new SlotCopies.Content()));
            index.export(0).close();
        }
    }

    @Test
    void aSlotThatIsClearedCanBeShownAgainAfterItsExportIsClosed() {
        try (PrefixIndex index = index(100)) {
            store(index, SLOT, 1, 50);
            final SlotExport export = index.export(SLOT);
            export.show(1, new SlotCopies.Content());
            export.close();
            index.clear(SLOT);
            assertEquals(0, SlotCopies.export(index, SLOT, 1, () -> {}).blocks());
        }
    }

    @Test
    void anExportIsFinishedByAPinnedWriterOfAClosedIndex() {
        final PrefixIndex index = index(100);
        store(index, SLOT, 1, 50);
        index.writer().pin();
        index.close();
        assertDoesNotThrow(
                () -> assertEquals(50, SlotCopies.export(index, SLOT, 1, () -> {}).blocks()));
        index.writer().unpin();
        assertThrows(ClosedException.class, () -> index.export(SLOT));
    }

    @Test
    void anImportThatContradictsItselfSaysSo() {
        try (PrefixIndex index = index(100)) {
            final SlotImport into = index.importInto(SLOT);
            final SlotPath path = new SlotPath();
            path.begin(SlotPath.Parent.BLOCK, 4711);
            path.addBlock(1, 2);
            assertFalse(into.path(path), "an unknown parent");
            path.begin(SlotPath.Parent.HOLE, 0);
            path.addBlock(1, 2);
            assertFalse(into.path(path), "a hole that was not shown");
            path.begin(SlotPath.Parent.ROOT, 0);
            path.addBlock(1, 2);
            path.addBlock(3, 2);
            assertFalse(into.path(path), "a name of two blocks");
        }
    }

    @Test
    void aSlotThatHoldsSomethingTakesNoImport() {
        try (PrefixIndex index = index(100)) {
            store(index, SLOT, 1, 5);
            assertThrows(IllegalStateException.class, () -> index.importInto(SLOT));
        }
    }
}
