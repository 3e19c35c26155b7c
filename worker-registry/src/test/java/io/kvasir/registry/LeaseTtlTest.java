package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;

class LeaseTtlTest {
    @Test
    void bothLimitsAreTaken() {
        assertDoesNotThrow(() -> LeaseTtl.check(LeaseTtl.LEAST));
        assertDoesNotThrow(() -> LeaseTtl.check(LeaseTtl.MOST));
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 0, 999, 3_600_001, 7_199_999, Long.MAX_VALUE})
    void whatIsBeyondThemIsRefused(long ms) {
        final String refusal =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> LeaseTtl.check(Duration.ofMillis(ms)))
                        .getMessage();
        assertTrue(refusal.endsWith("limits are 1 s..1 h"), refusal);
    }
}
