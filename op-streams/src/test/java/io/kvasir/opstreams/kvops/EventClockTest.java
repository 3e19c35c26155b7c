package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** On clocks that move only when the test says so. */
class EventClockTest {
    private static final long WALL_COST_NS = 20;
    private static final long CPU_COST_NS = 500;

    private final Machine machine = new Machine();
    private EventClock clock;

    /** A thread that runs, or waits for its core; reading a clock takes time of both. */
    private static final class Machine extends ThreadUsage {
        private long wallNs = 1_000_000;
        private long cpuNs = 7_000;
        private long cpuReads;

        void run(long ns) {
            wallNs += ns;
            cpuNs += ns;
        }

        void loseTheCore(long ns) {
            wallNs += ns;
        }

        long wall() {
            run(WALL_COST_NS / 2);
            final long now = wallNs;
            run(WALL_COST_NS / 2);
            return now;
        }

        @Override
        public long cpuNs() {
            cpuReads++;
            run(CPU_COST_NS / 2);
            final long now = cpuNs;
            run(CPU_COST_NS / 2);
            return now;
        }

        @Override
        public long involuntarySwitches() {
            return 0;
        }

        @Override
        public boolean seesPreemption() {
            return true;
        }
    }

    @BeforeEach
    void makeAClock() {
        clock = new EventClock(machine, machine::wall, WALL_COST_NS, CPU_COST_NS);
    }

    private long timed(long runNs, long lostNs) {
        clock.start();
        machine.run(runNs / 2);
        machine.loseTheCore(lostNs);
        machine.run(runNs - runNs / 2);
        return clock.stop();
    }

    @Test
    void aShortEventIsTimedByTheWallClockAlone() {
        final long reads = machine.cpuReads;
        assertEquals(300, timed(300, 0));
        assertEquals(reads, machine.cpuReads);
    }

    @Test
    void aLongEventKeepsWhatItTook() {
        assertEquals(75_000_000.0, (double) timed(75_000_000, 0), 2.0 * WALL_COST_NS);
    }

    @Test
    void theTimeWithoutTheCoreIsNotTheEvents() {
        assertEquals(500.0, (double) timed(500, 4_000_000), 2.0 * WALL_COST_NS);
        assertEquals(9_000_000.0, (double) timed(9_000_000, 4_000_000), 2.0 * WALL_COST_NS);
    }

    @Test
    void aCoreLostBetweenEventsDoesNotHideALongOne() {
        timed(300, 0);
        machine.loseTheCore(50_000_000);
        assertEquals(40_000.0, (double) timed(40_000, 0), 2.0 * WALL_COST_NS);
    }

    @Test
    void theAnchorIsRenewedThoughNothingLongHappens() {
        final long reads = machine.cpuReads;
        for (int i = 0; i < 2 * EventClock.ANCHOR_STARTS; i++) {
            timed(200, 0);
        }
        assertEquals(reads + 2, machine.cpuReads);
    }
}
