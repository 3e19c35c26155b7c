package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class HeapLimitsTest {
    @Test
    void theLongestBodyFollowsTheHeapUpToAConstant() {
        assertEquals(2 << 20, HeapLimits.bodyBytes(128L << 20));
        assertEquals(8 << 20, HeapLimits.bodyBytes(512L << 20));
        assertEquals(32 << 20, HeapLimits.bodyBytes(2L << 30));
        assertEquals(32 << 20, HeapLimits.bodyBytes(200L << 30));
    }

    @Test
    void whatIsSetIsNotLowered() {
        final GatewayConfig config =
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, "m")
                        .set(GatewaySettings.MAX_BODY_BYTES, Integer.MAX_VALUE)
                        .build();
        assertEquals(Integer.MAX_VALUE, HeapLimits.bodyBytes(config));
    }
}
