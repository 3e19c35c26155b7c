package io.kvasir.registry.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class GrowingPauseTest {
    private final GrowingPause pause = new GrowingPause();

    @Test
    void itGrowsToSomeSecondsAndIsShortAgainAfterASuccess() {
        for (long expected : new long[] {200, 400, 800, 1600, 3200, 5000, 5000}) {
            assertEquals(expected, pause.afterFailureMs());
        }
        assertEquals(200, pause.afterSuccessMs());
        assertEquals(200, pause.afterFailureMs());
    }
}
