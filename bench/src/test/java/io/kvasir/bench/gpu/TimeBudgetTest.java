package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class TimeBudgetTest {
    private static final long HOUR = 3_600_000_000_000L;

    @Test
    void aFastCellIsRepeatedAHundredTimes() {
        final TimeBudget budget = new TimeBudget(HOUR);
        assertFalse(budget.isOver());
        assertEquals(100, budget.repeats(10, 0));
        assertEquals(100, budget.repeats(10, 1_000));
    }

    @Test
    void aSlowCellLosesRepeatsAndNotItsPlace() {
        final TimeBudget budget = new TimeBudget(HOUR);
        final int repeats = budget.repeats(10, HOUR / 80);
        assertTrue(repeats == 3 || repeats == 4, "repeats=" + repeats);
        assertEquals(1, budget.repeats(10, HOUR));
    }

    @Test
    void whenTheTimeIsUpTheCellAtHandIsStillMeasuredOnce() {
        final TimeBudget budget = new TimeBudget(0);
        assertTrue(budget.isOver());
        assertEquals(1, budget.repeats(1, 1));
    }
}
