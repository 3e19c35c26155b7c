package io.kvasir.gateway.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How many decisions are kept. */
class DecisionLogTest {
    @ParameterizedTest
    @ValueSource(ints = {0, -1, DecisionLog.MOST + 1, Integer.MAX_VALUE})
    void aSizeThatCannotBeIsRefusedWithItsRange(int size) {
        assertEquals(
                "size=" + size + " must be 1.." + DecisionLog.MOST,
                assertThrows(IllegalArgumentException.class, () -> new DecisionLog(size))
                        .getMessage());
    }

    @Test
    void theSettingHasTheSameRange() {
        final GatewayConfig.Builder config = GatewayConfig.builder();
        config.set(GatewaySettings.DECISION_LOG_SIZE, DecisionLog.MOST);
        assertThrows(
                IllegalArgumentException.class,
                () -> config.set(GatewaySettings.DECISION_LOG_SIZE, DecisionLog.MOST + 1));
    }
}
