package io.kvasir.router.state;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.concurrent.TimeUnit;

class SnapshotCountsTest {
    private long nowNs = -5;
    private final SnapshotCounts counts = new SnapshotCounts(() -> nowNs);

    private void passed(long ms) {
        nowNs += TimeUnit.MILLISECONDS.toNanos(ms);
    }

    private long ageMs() {
        return counts.status().lastAgeMs();
    }

    @Test
    void whatFailedBeforeTheLastAttemptIsOver() {
        counts.begun();
        counts.failed();
        counts.taken(1, 2, 3); // without the worker that failed
        assertEquals(1, counts.status().lastFailed());
        counts.begun();
        assertEquals(0, counts.status().lastFailed());
        counts.taken(1, 2, 3);
        assertEquals(0, counts.status().lastFailed());
        assertEquals(1, counts.status().failed());
    }

    @Test
    void theAgeGrowsByTheOwnClockWhateverTimeOfDayWasWritten() {
        assertEquals(-1, ageMs());
        counts.known(0, 7); // it cannot be read when it was taken
        assertEquals(-1, ageMs());
        counts.known(5_000_000, 3_600_000);
        passed(1_000);
        assertEquals(3_601_000, ageMs());
        counts.known(9_000_000, -3_600_000); // of a clock that is ahead
        assertEquals(0, ageMs());
        passed(250);
        counts.known(5_000_000, 3_601_250); // the older one again
        assertEquals(250, ageMs());
        counts.taken(1, 2, 1_000_000); // the time of day was set back meanwhile
        assertEquals(0, ageMs());
        passed(10);
        assertEquals(10, ageMs());
        assertEquals(9_000_000, counts.status().lastTakenMs());
    }
}
