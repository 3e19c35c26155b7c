package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Random events of several slots; at a random moment one slot is copied into another index, in
 * slices between which the other slots go on. From then on both get the same events of that slot
 * and must answer the same to everything.
 */
class SlotExportModelTest {
    private static final int ROUNDS = Trials.of(15, 60);
    private static final int SLOTS = 4;
    private static final int SLOT = 1;
    private static final int COPY = 2;

    @Tag("trials")
    @ParameterizedTest(name = "{0} blocks, {1} held blocks")
    @CsvSource({"2000, 4000", "60, 90", "8, 8"})
    void aCopyAnswersAsItsOriginalWhateverFollows(long maxBlocks, long maxHeld) {
        final Random random = new Random(Seeds.next("SlotExportModelTest " + maxBlocks));
        long holes = 0;
        long missing = 0;
        for (int round = 0; round < ROUNDS; round++) {
            final PrefixIndexConfig config = new PrefixIndexConfig(SLOTS, maxBlocks, maxHeld);
            // the copy needs room for the holes, too, and must not refuse what the other takes
            final PrefixIndexConfig larger = new PrefixIndexConfig(SLOTS, 8_000, 16_000);
            try (PrefixIndex index = new PrefixIndex(config);
                    PrefixIndex other = new PrefixIndex(larger)) {
                final SlotEvents events = new SlotEvents(random, SLOTS);
                for (int i = random.nextInt(400); i >= 0; i--) {
                    events.next(index, random.nextInt(SLOTS));
                    if (random.nextInt(3) == 0) {
                        events.next(other, 1 - random.nextInt(2));
                    }
                }
                final SlotCopies.Content content =
                        SlotCopies.export(
                                index,
                                SLOT,
                                1 + random.nextInt(5),
                                () -> events.next(index, events.another(SLOT)));
                holes += content.holes();
                missing += index.missingBlocks(SLOT);
                SlotCopies.importInto(
                        other, COPY, content, () -> events.next(other, events.another(COPY)));
                assertEquals(index.heldBlocks(SLOT), content.blocks());
                compare(index, other, events);
                for (int i = 0; i < 60 && index.missingBlocks(SLOT) == 0; i++) {
                    final SlotEvents.Event event = events.make(SLOT);
                    final Object said = event.apply(index, SLOT);
                    if (index.missingBlocks(SLOT) == 0) { // else the larger one has more
                        assertEquals(said, event.apply(other, COPY));
                        compare(index, other, events);
                    }
                }
                IndexInvariants.check(index);
                IndexInvariants.check(other);
                other.clear(COPY);
                IndexInvariants.check(other);
            }
        }
        assertTrue(maxBlocks == 8 || holes > 0, "no story had a hole");
        assertTrue(maxBlocks > 1000 || missing > 0, "no story filled the index");
    }

    private static void compare(PrefixIndex index, PrefixIndex other, SlotEvents events) {
        assertEquals(SlotCopies.contents(index, SLOT), SlotCopies.contents(other, COPY));
        assertEquals(index.heldBlocks(SLOT), other.heldBlocks(COPY));
        assertEquals(index.missingBlocks(SLOT), other.missingBlocks(COPY));
        assertEquals(index.turnover(SLOT), other.turnover(COPY));
        final OverlapScores scores = new OverlapScores(SLOTS);
        for (long[] prompt : events.prompts) {
            index.match(prompt, prompt.length, scores);
            final int depth = scores.depth(SLOT);
            other.match(prompt, prompt.length, scores);
            assertEquals(depth, scores.depth(COPY));
        }
    }

    /** What the model test relies on: it would see a path that is lost. */
    @ParameterizedTest(name = "without path {0}")
    @CsvSource({"0", "1"})
    void aCopyWithoutOnePathIsNotTheSame(int lost) {
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(SLOTS, 100, 100));
                PrefixIndex other = new PrefixIndex(new PrefixIndexConfig(SLOTS, 100, 100))) {
            index.store(SLOT, true, 0, new long[] {1, 2}, new long[] {11, 12}, 2, false);
            index.store(SLOT, true, 0, new long[] {3}, new long[] {13}, 1, false);
            final List<SlotPath> shown = new ArrayList<>();
            final SlotImport into = other.importInto(COPY);
            try (SlotExport export = index.export(SLOT)) {
                export.show(
                        100,
                        new SlotVisitor() {
                            @Override
                            public void path(SlotPath path) {
                                if (shown.size() != lost) {
                                    assertTrue(into.path(path));
                                }
                                shown.add(path);
                            }

                            @Override
                            public void copies(long engineHash, int copies) {}
                        });
            }
            into.end(0, 0, CopyRule.PHYSICAL);
            assertEquals(2, shown.size());
            assertTrue(!SlotCopies.contents(index, SLOT).equals(SlotCopies.contents(other, COPY)));
        }
    }
}
