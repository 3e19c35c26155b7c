package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Random events of several slots; at a random moment one slot is copied into another index, in
 * slices between which the other slots go on. From then on both get the same events of that slot
 * and must answer the same to everything.
 */
class SlotExportModelTest {
    private static final int SLOTS = 4;
    private static final int SLOT = 1;
    private static final int COPY = 2;

    @ParameterizedTest(name = "{0} rounds, {1} blocks, {2} held blocks")
    @CsvSource({"60, 2000, 4000", "60, 60, 90", "20, 8, 8"})
    void aCopyAnswersAsItsOriginalWhateverFollows(int rounds, long maxBlocks, long maxHeld) {
        final Random random = new Random(Seeds.next("SlotExportModelTest " + maxBlocks));
        long holes = 0;
        long missing = 0;
        for (int round = 0; round < rounds; round++) {
            final PrefixIndexConfig config = new PrefixIndexConfig(SLOTS, maxBlocks, maxHeld);
            // the copy needs room for the holes, too, and must not refuse what the other takes
            final PrefixIndexConfig larger = new PrefixIndexConfig(SLOTS, 8_000, 16_000);
            try (PrefixIndex index = new PrefixIndex(config);
                    PrefixIndex other = new PrefixIndex(larger)) {
                final Events events = new Events(random);
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
                    final Event event = events.make(SLOT);
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

    private static void compare(PrefixIndex index, PrefixIndex other, Events events) {
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

    /** One event of a slot; what it answers can be compared. */
    private interface Event {
        Object apply(PrefixIndex index, int slot);
    }

    /** Makes events out of few local hashes and names, so that prompts share and conflict. */
    private static final class Events {
        final Random random;
        final long[][] prompts = new long[16][];

        Events(Random random) {
            this.random = random;
            for (int i = 0; i < prompts.length; i++) {
                final long[] base = i == 0 ? new long[0] : prompts[random.nextInt(i)];
                final int shared = base.length == 0 ? 0 : random.nextInt(base.length);
                prompts[i] = Arrays.copyOf(base, shared + 1 + random.nextInt(14));
                for (int j = shared; j < prompts[i].length; j++) {
                    prompts[i][j] = random.nextInt(3);
                }
            }
        }

        int another(int slot) {
            final int other = random.nextInt(SLOTS - 1);
            return other < slot ? other : other + 1;
        }

        void next(PrefixIndex index, int slot) {
            make(slot).apply(index, slot);
        }

        Event make(int slot) {
            final long[] prompt = prompts[random.nextInt(prompts.length)];
            final boolean refresh = random.nextInt(4) == 0;
            return switch (random.nextInt(10)) {
                case 0, 1, 2 -> {
                    final long[] locals = Arrays.copyOf(prompt, 1 + random.nextInt(prompt.length));
                    final long[] names = names(prompt, 0, locals.length);
                    yield (index, s) ->
                            index.store(s, true, 0, names, locals, locals.length, refresh);
                }
                case 3, 4 -> {
                    final int from = random.nextInt(prompt.length);
                    final long parent = from == 0 ? 77 : names(prompt, from - 1, 1)[0];
                    final int count = random.nextInt(prompt.length - from + 1);
                    final long[] locals = Arrays.copyOfRange(prompt, from, from + count);
                    final long[] names = names(prompt, from, count);
                    yield (index, s) ->
                            index.store(s, from == 0, parent, names, locals, count, refresh);
                }
                case 5, 6, 7 -> {
                    final int from = random.nextInt(prompt.length);
                    final int count = 1 + random.nextInt(Math.min(3, prompt.length - from));
                    final long[] names = names(prompt, from, count);
                    final CopyRule rule =
                            random.nextInt(3) == 0 ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
                    yield (index, s) -> index.remove(s, names, count, rule);
                }
                case 8 -> {
                    final long name = names(prompt, random.nextInt(prompt.length), 1)[0];
                    final int left = random.nextInt(4) - 1;
                    yield (index, s) -> {
                        index.removeTo(s, name, left);
                        return left;
                    };
                }
                default -> {
                    if (random.nextInt(20) == 0) {
                        yield (index, s) -> index.clear(s);
                    }
                    yield make(slot);
                }
            };
        }

        /** Names of blocks of a prompt by what is before them; now and then an alias. */
        private long[] names(long[] prompt, int from, int count) {
            final long variant = random.nextInt(6) == 0 ? 1L << 40 : 0;
            final long[] names = new long[count];
            for (int i = 0; i < count; i++) {
                names[i] = Arrays.hashCode(Arrays.copyOf(prompt, from + i + 1)) + variant;
            }
            return names;
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
            into.end(0, 0);
            assertEquals(2, shown.size());
            assertTrue(!SlotCopies.contents(index, SLOT).equals(SlotCopies.contents(other, COPY)));
        }
    }
}
