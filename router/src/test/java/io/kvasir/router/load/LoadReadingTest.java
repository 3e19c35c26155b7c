package io.kvasir.router.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.EngineLoad;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;

/** Numbers as engines write them. */
class LoadReadingTest {
    private final LoadReading reading = new LoadReading();

    @ParameterizedTest
    @ValueSource(
            doubles = {
                Double.NaN,
                -1,
                -0.5,
                Double.NEGATIVE_INFINITY,
                Double.POSITIVE_INFINITY,
                1e18,
                Double.MAX_VALUE
            })
    void aNumberThatNoEngineHasMakesItABadOne(double value) {
        for (LoadReading bad :
                List.of(
                        new LoadReading().running(value).waiting(0),
                        new LoadReading().waiting(value).running(0),
                        new LoadReading().waitingTokens(value).running(0),
                        new LoadReading().usedBlocks(value).running(0),
                        new LoadReading().usage(value).running(0),
                        new LoadReading().blocks(value).running(0),
                        new LoadReading().batchTokens(value).running(0))) {
            final String problem = bad.problemOrNull();
            assertNotNull(problem);
            assertTrue(problem.contains("value=" + value), problem);
            assertTrue(problem.contains("limits=0.."), problem);
        }
    }

    @Test
    void theLargestThatIsBelievedIs() {
        reading.running(LoadReading.MOST_REQUESTS).blocks(LoadReading.MOST_TOKENS).usage(1);
        assertNull(reading.problemOrNull());
        assertEquals(
                new EngineLoad(
                        LoadReading.MOST_REQUESTS,
                        -1,
                        -1,
                        LoadReading.MOST_TOKENS,
                        LoadReading.MOST_TOKENS,
                        -1),
                reading.load(0));
    }

    @Test
    void aPartInUseNeedsTheNumberOfBlocksFromSomewhere() {
        reading.usage(0.25);
        assertEquals(EngineLoad.UNKNOWN, reading.load(0).usedBlocks());
        assertEquals(50, reading.load(200).usedBlocks());
        assertEquals(100, reading.blocks(400).load(200).usedBlocks());
        assertEquals(7, reading.usedBlocks(7).load(200).usedBlocks());
    }

    @Test
    void whatAnEngineHasIsNoLoad() {
        assertTrue(reading.isEmpty());
        assertTrue(reading.blocks(100).batchTokens(2_048).isEmpty());
        assertFalse(reading.waitingTokens(0).isEmpty());
        assertTrue(reading.reset().isEmpty());
        assertFalse(reading.usage(0).isEmpty());
        assertNull(reading.running(-1).reset().problemOrNull());
    }
}
