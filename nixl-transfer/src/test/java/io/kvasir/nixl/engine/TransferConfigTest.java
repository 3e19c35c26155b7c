package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TransferConfigTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "0; 1; 1; 1; 1; queueCapacity=0, limits are 1..1048576",
                "1048577; 1; 1; 1; 1; queueCapacity=1048577, limits are 1..1048576",
                "2147483647; 1; 1; 1; 1; queueCapacity=2147483647, limits are 1..1048576",
                "1; -1; 1; 1; 1; inFlightRequests=-1, limits are 1..1048576",
                "1; 2147483647; 1; 1; 1; inFlightRequests=2147483647, limits are 1..1048576",
                "1; 1; 0; 1; 1; inFlightBytes=0, must be at least 1",
                "1; 1; 1; 0; 1; requestBytes=0, must be at least 1",
                "1; 1; 1; 1; 0; requestDescriptors=0, must be at least 1",
            })
    void whatIsOutsideItsLimitsIsNamed(
            int queue, int requests, long bytes, long requestBytes, int descriptors, String why) {
        assertEquals(
                why,
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        new TransferConfig(
                                                queue, requests, bytes, requestBytes, descriptors))
                        .getMessage());
    }
}
