package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.stream.LongStream;

class MachinePausesTest {
    @Test
    void theFloorIsThePauseThatAsManyQueriesAreAllowedToExceed() {
        // 10,000 queries of 100 µs in a second, and 20 pauses of 1..20 ms
        final MachinePauses pauses =
                MachinePauses.of(
                        1_000_000_000,
                        LongStream.rangeClosed(1, 20).map(ms -> ms * 1_000_000).toArray());
        assertEquals(19_000_000, pauses.floorNs(99.99, 100_000), "one of 10,000 may take longer");
        assertEquals(10_000_000, pauses.floorNs(99.9, 100_000));
        assertEquals(0, pauses.floorNs(99, 100_000));
    }

    @Test
    void withoutPausesThereIsNoFloor() {
        assertEquals(0, MachinePauses.of(1_000_000).floorNs(99.99, 100));
    }

    @Test
    void pausesAreSeenOnThisMachine() {
        final MachinePauses pauses =
                MachinePauses.measure(ThreadUsage.ofCurrentThread(), 50_000_000);
        assertTrue(pauses.floorNs(99.99, 1_000) >= 0);
    }
}
