package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.concurrent.TimeUnit;
import java.util.function.IntToDoubleFunction;

/** On a clock that moves by a given time a pass. */
class WarmUpTest {
    private static final long MINUTE_NS = TimeUnit.MINUTES.toNanos(1);

    private long nowNs;
    private int passes;

    /** Passes of a whole window each. */
    private WarmUp run(IntToDoubleFunction applyNs, IntToDoubleFunction queryNs, long limitNs) {
        return run(applyNs, queryNs, TimeUnit.MILLISECONDS.toNanos(WarmUp.WINDOW_MS), limitNs);
    }

    private WarmUp run(
            IntToDoubleFunction applyNs, IntToDoubleFunction queryNs, long passNs, long limitNs) {
        final WarmUp warmUp = new WarmUp(() -> nowNs);
        warmUp.run(
                left -> {
                    nowNs += passNs;
                    final PassCost cost =
                            new PassCost(
                                    applyNs.applyAsDouble(passes), queryNs.applyAsDouble(passes));
                    passes++;
                    return cost;
                },
                limitNs);
        assertEquals(passes, warmUp.passes());
        return warmUp;
    }

    @Test
    void itEndsWhenNothingGetsBetterAnyMore() {
        assertTrue(run(pass -> 20, pass -> 700, MINUTE_NS).settled());
        assertEquals(1 + WarmUp.STILL, passes);
    }

    @Test
    void itGoesOnWhileQueriesGetBetter() {
        final WarmUp warmUp =
                run(pass -> 20, pass -> pass < 30 ? 2900 - 30 * pass : 1900, MINUTE_NS);
        assertTrue(warmUp.settled());
        assertTrue(passes > 20, "passes " + passes);
    }

    @Test
    void anotherLoadOnTheMachineIsNoProgress() {
        final WarmUp warmUp =
                run(pass -> pass % 2 == 0 ? 20 : 35, pass -> pass % 3 == 0 ? 700 : 1200, MINUTE_NS);
        assertTrue(warmUp.settled());
        assertEquals(1 + WarmUp.STILL, passes);
    }

    @Test
    void whatNeverStandsStillEndsWithTheTime() {
        final WarmUp warmUp =
                run(pass -> Math.pow(0.9, pass), pass -> 0, TimeUnit.SECONDS.toNanos(10));
        assertFalse(warmUp.settled());
        assertEquals(50, passes);
    }

    @Test
    void shortPassesAreTakenTogether() {
        final long passNs = TimeUnit.MILLISECONDS.toNanos(1);
        // each pass by itself jumps about; the mean of a window does not
        assertTrue(run(pass -> 20 - pass % 10, pass -> 0, passNs, MINUTE_NS).settled());
        assertEquals((1 + WarmUp.STILL) * WarmUp.WINDOW_MS, passes);
    }

    @Test
    void onePassIsDoneWhateverTheTime() {
        assertFalse(run(pass -> 20, pass -> 700, 0).settled());
        assertEquals(1, passes);
    }
}
