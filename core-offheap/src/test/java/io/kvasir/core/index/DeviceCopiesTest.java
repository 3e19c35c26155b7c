package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.Set;
import java.util.TreeSet;

class DeviceCopiesTest {
    private static final int[] COPIED = {7, 3, 3, 0};
    private static final int STEPS = 3 * COPIED.length; // of each copy: begin, blocks, end

    private final DeviceCopies copies = new DeviceCopies();

    @Test
    void aReaderLearnsWhoseCopyItMayHaveReadWheneverItBeginsAndEnds() {
        for (int from = 0; from <= STEPS; from++) {
            for (int to = from; to <= STEPS; to++) {
                final DeviceCopies shown = new DeviceCopies();
                steps(shown, 0, from);
                final long before = shown.before();
                steps(shown, from, to);
                assertEquals(expected(from, to), shown.met(before), from + ".." + to);
            }
        }
    }

    /** What the writer does in the steps of a range. */
    private static void steps(DeviceCopies copies, int from, int to) {
        for (int step = from; step < to; step++) {
            switch (step % 3) {
                case 0 -> copies.begin(COPIED[step / 3]);
                case 1 -> {} // a block is copied
                default -> copies.end();
            }
        }
    }

    /** A reader between two steps may have read of each copy that had begun and not ended. */
    private static int expected(int from, int to) {
        final Set<Integer> met = new TreeSet<>(); // numbers of copies
        for (int copy = 0; copy < COPIED.length; copy++) {
            if (from < 3 * copy + 3 && to > 3 * copy) {
                met.add(copy);
            }
        }
        return switch (met.size()) {
            case 0 -> DeviceCopies.NONE;
            case 1 -> COPIED[met.iterator().next()];
            default -> DeviceCopies.SEVERAL;
        };
    }

    @Test
    void theNumberGoesOnAfterManyCopies() {
        for (int i = 0; i < 100_000; i++) {
            copies.begin(i);
            copies.end();
        }
        final long before = copies.before();
        assertEquals(DeviceCopies.NONE, copies.met(before));
        copies.begin(4_095);
        assertEquals(4_095, copies.met(before));
    }
}
