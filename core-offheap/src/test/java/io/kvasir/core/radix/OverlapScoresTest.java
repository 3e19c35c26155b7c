package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

class OverlapScoresTest {
    private static final int SLOTS = 100;

    private final OverlapScores scores = new OverlapScores(SLOTS);

    private static long[] slots(int from, int to) {
        final long[] bits = new long[2];
        for (int slot = from; slot < to; slot++) {
            bits[slot / Long.SIZE] |= 1L << slot;
        }
        return bits;
    }

    @Test
    void listedSlotsAndSetsAreOneResult() {
        scores.add(70, 9);
        scores.addSet(slots(60, 68), 4);
        scores.addSet(slots(3, 5), 2);
        assertEquals(9, scores.deepest());
        assertEquals(11, scores.matchedSlots());
        assertEquals(1, scores.listedSlots());
        assertEquals(2, scores.sets());
        assertEquals(0xFL << 60, scores.setSlots(0, 0));
        assertEquals(0xF, scores.setSlots(0, 1));
        assertEquals(0, scores.setSlots(0, 2));
        assertEquals(
                "{3=2, 4=2, 60=4, 61=4, 62=4, 63=4, 64=4, 65=4, 66=4, 67=4, 70=9}", scores + "");
    }

    @Test
    void slotsOfSetsAreListedWhenTheyAreAskedForOneByOne() {
        scores.add(70, 9);
        scores.addSet(slots(60, 68), 4);
        final String before = scores.toString();
        final int[] found =
                IntStream.range(0, scores.matchedSlots()).map(scores::slotAt).sorted().toArray();
        assertArrayEquals(new int[] {60, 61, 62, 63, 64, 65, 66, 67, 70}, found);
        assertEquals(9, scores.listedSlots());
        assertEquals(0, scores.sets());
        assertEquals(before, scores.toString());
        scores.clear();
        assertEquals("{}", scores.toString());
        assertEquals(0, scores.matchedSlots());
    }

    @Test
    void setsBeyondTheLastThatHasRoomAreListed() {
        for (int i = 0; i < 12; i++) {
            scores.addSet(slots(8 * i, 8 * i + 8), i + 1);
        }
        assertEquals(96, scores.matchedSlots());
        for (int slot = 0; slot < SLOTS; slot++) {
            assertEquals(slot < 96 ? slot / 8 + 1 : 0, scores.depth(slot));
        }
    }

    @Test
    void aSlotThatHoldsMoreThanWasFoundIsListedWithThat() {
        scores.add(70, 9);
        scores.addSet(slots(60, 68), 4);
        scores.raise(61, 12); // of a set
        scores.raise(62, 4); // no more than before
        scores.raise(63, 1);
        scores.raise(70, 10); // listed
        scores.raise(5, 3); // not recorded before
        assertEquals(12, scores.deepest());
        assertEquals(10, scores.matchedSlots());
        assertEquals(3, scores.listedSlots());
        assertEquals("{5=3, 60=4, 61=12, 62=4, 63=4, 64=4, 65=4, 66=4, 67=4, 70=10}", scores + "");
        final String before = scores.toString();
        assertEquals(
                10,
                IntStream.range(0, scores.matchedSlots()).map(scores::slotAt).distinct().count());
        assertEquals(before, scores.toString());
        scores.clear();
        assertEquals("{}", scores.toString());
        assertThrows(IllegalArgumentException.class, () -> scores.raise(5, 0));
    }

    @Test
    void aSlotThatIsDroppedLeavesTheOthersAsTheyWere() {
        scores.add(70, 9);
        scores.add(71, 7);
        scores.add(2, 7);
        scores.addSet(slots(60, 63), 8);
        scores.addSet(slots(3, 4), 12); // a set of one
        scores.drop(5); // not recorded
        scores.drop(61); // of a set
        assertEquals("{2=7, 3=12, 60=8, 62=8, 70=9, 71=7}", scores + "");
        assertEquals(6, scores.matchedSlots());
        assertEquals(12, scores.deepest());
        scores.drop(3);
        assertEquals(9, scores.deepest());
        scores.drop(70); // listed
        assertEquals(8, scores.deepest());
        scores.drop(60);
        scores.drop(62);
        assertEquals(7, scores.deepest());
        assertEquals("{2=7, 71=7}", scores + "");
        assertEquals(2, scores.matchedSlots());
        assertArrayEquals(
                new int[] {2, 71}, IntStream.range(0, 2).map(scores::slotAt).sorted().toArray());
        scores.drop(2);
        scores.drop(71);
        assertEquals(0, scores.deepest());
        assertEquals(0, scores.matchedSlots());
        scores.add(70, 3); // may be recorded again
        scores.addSet(slots(2, 5), 1);
        assertEquals("{2=1, 3=1, 4=1, 70=3}", scores + "");
    }

    @Test
    void slotsThatAreLoweredHoldABlockLess() {
        scores.add(70, 9);
        scores.add(71, 1);
        scores.add(2, 1);
        scores.addSet(slots(60, 68), 4);
        scores.addSet(slots(10, 20), 3);
        scores.addSet(slots(30, 40), 12);
        scores.lower(group -> group == 0 ? ~0L << 12 : 1L << (70 - 64) | 1L << (71 - 64), 1_000);
        assertEquals(
                "{2=1, 10=3, 11=3, 12=2, 13=2, 14=2, 15=2, 16=2, 17=2, 18=2, 19=2, 30=11, 31=11,"
                        + " 32=11, 33=11, 34=11, 35=11, 36=11, 37=11, 38=11, 39=11, 60=3, 61=3,"
                        + " 62=3, 63=3, 64=4, 65=4, 66=4, 67=4, 70=8}",
                scores + "");
        assertEquals(30, scores.matchedSlots());
        assertEquals(11, scores.deepest());
    }

    /** Whatever is recorded and lowered in any order: as in a map of depths. */
    @Test
    void loweredSlotsAreThoseOfAMap() {
        final SplittableRandom random = new SplittableRandom(5);
        for (int trial = 0; trial < 2_000; trial++) {
            final int[] expected = new int[SLOTS];
            scores.clear();
            for (int from = 0; from < SLOTS; from += 10) {
                record(random, expected, from, 1 + random.nextInt(3));
            }
            for (int i = random.nextInt(4); i >= 0; i--) {
                final long[] named = {
                    random.nextInt(3) == 0 ? -1 : random.nextLong(), random.nextLong()
                };
                final int most = random.nextInt(4);
                scores.lower(group -> named[group], most);
                for (int slot = 0; slot < SLOTS; slot++) {
                    final long bit = named[slot / Long.SIZE] >>> slot & 1;
                    if (bit != 0) {
                        expected[slot] = Math.max(0, Math.min(expected[slot], most) - 1);
                    }
                }
                check(expected, "trial " + trial);
            }
        }
    }

    private void record(SplittableRandom random, int[] expected, int from, int depth) {
        final int to = Math.min(SLOTS, from + 10);
        switch (random.nextInt(3)) {
            case 0 -> scores.addSet(slots(from, to), depth);
            case 1 -> scores.add(from, depth);
            default -> {
                return;
            }
        }
        Arrays.fill(expected, from, scores.depth(from + 1) > 0 ? to : from + 1, depth);
    }

    private void check(int[] expected, String when) {
        int matched = 0;
        int deepest = 0;
        for (int slot = 0; slot < SLOTS; slot++) {
            assertEquals(expected[slot], scores.depth(slot), when + ", slot " + slot);
            matched += expected[slot] > 0 ? 1 : 0;
            deepest = Math.max(deepest, expected[slot]);
        }
        assertEquals(matched, scores.matchedSlots(), when);
        assertEquals(deepest, scores.deepest(), when);
    }

    @Test
    void depthsOfAGroupAreCopiedToWhereTheyAre() {
        scores.add(70, 9);
        scores.addSet(slots(60, 68), 4);
        final int[] copied = new int[192];
        Arrays.fill(copied, -1);
        for (int group = 0; group < 3; group++) {
            scores.copyDepths(group, group + 1, copied);
        }
        for (int slot = 0; slot < copied.length; slot++) {
            assertEquals(slot < SLOTS ? scores.depth(slot) : 0, copied[slot]);
        }
    }

    @Test
    void aSlotIsRecordedOnceAndWithinLimits() {
        scores.addSet(slots(60, 68), 4);
        assertThrows(IllegalArgumentException.class, () -> scores.add(61, 1));
        assertThrows(IllegalArgumentException.class, () -> scores.addSet(slots(67, 69), 1));
        assertThrows(IllegalArgumentException.class, () -> scores.addSet(slots(1, 2), 0));
        assertThrows(IllegalArgumentException.class, () -> scores.addSet(slots(99, 101), 1));
        assertEquals(8, scores.matchedSlots());
    }
}
