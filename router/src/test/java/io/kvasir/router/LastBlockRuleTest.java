package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.SplittableRandom;

/** When an engine counts as one that computes the last block of each cache hit anew. */
class LastBlockRuleTest {
    private static final int BLOCK = 16;

    private final LastBlockRule rule = new LastBlockRule(BLOCK);

    private boolean compare(int times, int believed, int stated) {
        boolean changed = false;
        for (int i = 0; i < times; i++) {
            assertFalse(changed, "after " + i);
            changed = rule.compare(believed, stated);
        }
        return changed;
    }

    @ParameterizedTest
    @CsvSource({"160, 144", "16, 0", "168, 144", "160, 136"})
    void eightHitsThatAreABlockTooLowAreEnough(int believed, int stated) {
        assertFalse(compare(LastBlockRule.ENOUGH - 1, believed, stated));
        assertFalse(rule.applies());
        assertTrue(compare(1, believed, stated));
        assertTrue(rule.applies());
    }

    @ParameterizedTest
    @CsvSource({
        "160, 160",
        "160, 145",
        "160, 128",
        "160, 0",
        "144, 160",
        "15, 0",
        "0, 0",
        "0, 160"
    })
    void otherHitsSayNothing(int believed, int stated) {
        assertFalse(compare(1_000, believed, stated));
        assertFalse(rule.applies());
    }

    @Test
    void aThirdOfTheHitsMayBeOthers() {
        compare(4, 160, 160); // a request overtook the events of the one before
        assertTrue(compare(8, 160, 144));
    }

    @Test
    void hitsThatAreMostlyRightLeaveItAsItIs() {
        final SplittableRandom random = new SplittableRandom(3);
        for (int i = 0; i < 100_000; i++) {
            assertFalse(rule.compare(160, random.nextInt(4) == 0 ? 144 : 160), "after " + i);
        }
    }

    /** Then a block less is believed, so that hits of the whole are a block too high. */
    @Test
    void itIsGivenUpByHitsThatAreABlockTooHighAndHarderToConcludeAgain() {
        compare(8, 160, 144);
        assertFalse(compare(100, 144, 144));
        int hits = 1;
        while (!rule.compare(144, 160)) {
            hits++;
        }
        assertEquals(22, hits, "until they are two thirds of the window");
        assertFalse(rule.applies());
    }

    @Test
    void whatWasDecidedBeforeItWasConcludedGivesNothingUp() {
        compare(8, 160, 144);
        assertFalse(compare(1_000, 160, 144));
        assertTrue(rule.applies());
    }

    @Test
    void afterItWasGivenUpAWholeWindowIsNeeded() {
        compare(8, 160, 144);
        compare(8, 144, 160);
        assertFalse(rule.applies());
        assertFalse(compare(LastBlockRule.WINDOW - 1, 160, 144));
        assertTrue(compare(1, 160, 144));
        assertFalse(compare(LastBlockRule.WINDOW - 1, 144, 160));
        assertTrue(compare(1, 144, 160));
        assertFalse(rule.applies());
    }
}
