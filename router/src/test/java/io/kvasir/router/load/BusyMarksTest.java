package io.kvasir.router.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Leases of workers that are full. */
class BusyMarksTest {
    private static final long LEASE_NS = 1_000;

    private final BusyMarks marks = new BusyMarks(4, LEASE_NS);

    @ParameterizedTest
    @ValueSource(longs = {0, -LEASE_NS, -LEASE_NS - 1, Long.MAX_VALUE - 10, Long.MIN_VALUE, 77})
    void aMarkEndsWithTheAnswerOfOneProbeWhateverTheClockSays(long nowNs) {
        marks.mark(2, nowNs, "waiting requests=9");
        assertTrue(marks.any());
        assertTrue(marks.isFull(2, nowNs));
        assertFalse(marks.isFull(1, nowNs));
        assertEquals(BusyMarks.LOST, marks.claim(2, nowNs));
        assertTrue(marks.leftNs(2, nowNs) > 0);

        final long over = nowNs + LEASE_NS + 2;
        assertFalse(marks.isFull(2, over));
        assertTrue(marks.isMarked(2));
        final long probe = marks.claim(2, over);
        assertTrue(probe != BusyMarks.LOST && probe != BusyMarks.NONE);
        assertTrue(marks.isFull(2, over), "the others wait for the probe");
        assertEquals(BusyMarks.LOST, marks.claim(2, over));

        marks.answered(2, probe);
        assertFalse(marks.any());
        assertEquals(BusyMarks.NONE, marks.claim(2, over));
    }

    @Test
    void aProbeThatComesToNothingIsFollowedByAnother() {
        marks.mark(0, 0, "429");
        assertTrue(marks.claim(0, 2_000) != BusyMarks.LOST);
        assertEquals(BusyMarks.LOST, marks.claim(0, 2_999));
        assertTrue(marks.claim(0, 3_000) != BusyMarks.LOST);
    }

    @Test
    void aWorkerThatIsMarkedAgainStaysSoWhenAnOlderProbeIsAnswered() {
        marks.mark(0, 0, "429");
        final long probe = marks.claim(0, 2_000);
        marks.mark(0, 2_500, "503");
        marks.answered(0, probe);
        assertTrue(marks.isFull(0, 3_400));
        assertEquals("503", marks.whyOrNull(0));
        assertEquals(1, marks.count());
        marks.clear(0);
        marks.clear(0);
        assertEquals(0, marks.count());
    }

    @Test
    void aProbeThatIsGivenBackIsTheNextCallersUnlessThereIsALaterOneOrAMark() {
        marks.mark(0, 0, "429");
        final BusyProbe first = new BusyProbe(marks, 0, marks.claim(0, 2_000), 2_000);
        assertEquals(BusyMarks.LOST, marks.claim(0, 2_000));
        first.giveBack();
        final long mark = marks.claim(0, 2_100);
        assertTrue(mark != BusyMarks.LOST);
        first.giveBack();
        assertEquals(BusyMarks.LOST, marks.claim(0, 2_200), "that one is another's");
        marks.mark(0, 2_300, "429");
        new BusyProbe(marks, 0, mark, 2_100).giveBack();
        assertEquals(BusyMarks.LOST, marks.claim(0, 3_200), "marked meanwhile");
        final BusyProbe last = new BusyProbe(marks, 0, marks.claim(0, 3_300), 3_300);
        last.answered();
        last.giveBack();
        assertEquals(BusyMarks.NONE, marks.claim(0, 3_300));
    }

    @Test
    void aProbeCountsOnceAlsoWhereAnotherOneWasLetInAtTheSameMoment() {
        marks.mark(0, 0, "429");
        final BusyProbe first = new BusyProbe(marks, 0, marks.claim(0, 2_000), 2_000);
        first.giveBack();
        final BusyProbe second = new BusyProbe(marks, 0, marks.claim(0, 2_000), 2_000);
        first.giveBack();
        assertEquals(BusyMarks.LOST, marks.claim(0, 2_000), "the second probe is under way");
        first.answered();
        assertTrue(marks.isMarked(0), "it was given back before");
        second.answered();
        assertFalse(marks.any());
    }

    @Test
    void withoutALeaseNothingIsMarked() {
        final BusyMarks off = new BusyMarks(4, 0);
        off.mark(0, 0, "429");
        assertFalse(off.any());
        assertFalse(off.isFull(0, 0));
    }

    @Test
    void ofManyAtOnceOneGetsTheProbe() throws Exception {
        final int threads = 8;
        final CyclicBarrier barrier = new CyclicBarrier(threads);
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            for (int round = 1; round <= 200; round++) {
                final long nowNs = round * 10_000L;
                marks.mark(1, nowNs - LEASE_NS - 1, "full");
                final List<Callable<Long>> all = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    all.add(
                            () -> {
                                barrier.await();
                                return marks.claim(1, nowNs);
                            });
                }
                int claimed = 0;
                for (Future<Long> one : pool.invokeAll(all)) {
                    if (one.get() != BusyMarks.LOST) {
                        claimed++;
                        assertTrue(one.get() != BusyMarks.NONE);
                    }
                }
                assertEquals(1, claimed);
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"-1, 0, slots=-1 must be 0 or more", "4, -1, leaseNs=-1 must be 0 or more"})
    void sizesAndTimesAreNotNegative(int slots, long leaseNs, String said) {
        assertEquals(
                said,
                assertThrows(IllegalArgumentException.class, () -> new BusyMarks(slots, leaseNs))
                        .getMessage());
    }
}
