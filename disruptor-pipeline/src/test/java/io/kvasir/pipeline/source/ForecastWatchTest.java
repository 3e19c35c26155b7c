package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.SplittableRandom;

/** When forecasts of cache hits count as wrong, and when as right again. */
class ForecastWatchTest {
    private static final int BLOCK = 16;

    private long nowNs;
    private final ForecastWatch watch = new ForecastWatch(BLOCK, () -> nowNs);

    private void compare(int times, int believed, int stated, boolean alone) {
        for (int i = 0; i < times; i++) {
            nowNs += 1_000_000;
            watch.compare(believed, stated, alone);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "160, 0, true, 8",
        "0, 160, true, 16",
        "160, 0, false, 24",
        "0, 160, false, 24",
        "160, 144, true, 8",
        "144, 160, true, 16"
    })
    void forecastsAreWrongFromSoManyOn(int believed, int stated, boolean alone, int times) {
        compare(times - 1, believed, stated, alone);
        assertFalse(watch.isWrong());
        compare(1, believed, stated, alone);
        assertTrue(watch.isWrong());
        assertTrue(watch.why().contains(times + " of the last " + times), watch.why());
    }

    @ParameterizedTest
    @CsvSource({"160, 160", "160, 145", "145, 160", "150, 159", "0, 0", "15, 0", "0, 15"})
    void lessThanABlockIsNoDifference(int believed, int stated) {
        compare(1_000, believed, stated, true);
        compare(1_000, believed, stated, false);
        assertFalse(watch.isWrong());
    }

    /** SGLang that drafts with EAGLE computes two tokens of a prompt that it has whole. */
    @Test
    void oneTokenIsNoDifferenceWhereABlockIsOneToken() {
        final ForecastWatch ofTokens = new ForecastWatch(1, () -> nowNs);
        for (int i = 0; i < 1_000; i++) {
            ofTokens.compare(79, 78, true);
            ofTokens.compare(78, 79, false);
            ofTokens.compare(1, 0, true);
        }
        assertFalse(ofTokens.isWrong());
        for (int i = 0; i < 8; i++) {
            assertFalse(ofTokens.isWrong());
            ofTokens.compare(79, 77, true);
        }
        assertTrue(ofTokens.isWrong());
    }

    @Test
    void whatAnEngineNeverStatesIsNeverJudged() {
        assertFalse(watch.isWrong());
        assertNull(watch.why());
        nowNs = Long.MAX_VALUE;
        assertFalse(watch.expire());
    }

    /** Sequential load: 2 of 40 follow-ups met an index that was one event behind. */
    @Test
    void aRequestNowAndThenThatOvertakesAnEventIsNoMatter() {
        final SplittableRandom random = new SplittableRandom(7);
        for (int i = 0; i < 100_000; i++) {
            compare(1, random.nextInt(20) == 0 ? 0 : 160, 160, true);
            assertFalse(watch.isWrong(), "after " + i);
        }
    }

    @Test
    void neighboursThatEvictAreNoMatterWhereRequestsThatWereAloneAreRight() {
        compare(16, 160, 160, true);
        compare(1_000, 160, 0, false);
        assertFalse(watch.isWrong());
        nowNs += ForecastWatch.KEPT_NS; // those tell nothing of now
        compare(32, 160, 0, false);
        assertTrue(watch.isWrong());
    }

    @Test
    void promptsOfWhichNothingCouldBeCachedHideNothing() {
        for (int i = 0; i < 8; i++) {
            assertFalse(watch.isWrong());
            compare(1, 160, 0, true);
            compare(1_000, 0, 0, true);
        }
        assertTrue(watch.isWrong());
    }

    @Test
    void fifteenRightOnesOfSixteenEndIt() {
        compare(8, 160, 0, true);
        compare(10, 160, 160, true);
        compare(2, 160, 0, true);
        compare(14, 160, 160, true);
        assertTrue(watch.isWrong());
        compare(1, 160, 160, true);
        assertFalse(watch.isWrong());
        compare(7, 160, 0, true); // and it is judged anew
        assertFalse(watch.isWrong());
    }

    @Test
    void aBusyWorkerComesBackByRequestsThatWereNotAlone() {
        compare(8, 160, 0, true);
        compare(31, 160, 160, false);
        assertTrue(watch.isWrong());
        compare(1, 160, 160, false);
        assertFalse(watch.isWrong());
        compare(32, 160, 0, false);
        assertTrue(watch.isWrong());
        compare(8, 160, 0, false);
        compare(23, 160, 160, false);
        assertTrue(watch.isWrong());
        compare(1, 160, 160, false);
        assertFalse(watch.isWrong());
    }

    @Test
    void whatHasNotBeenComparedForLongIsForgotten() {
        compare(8, 160, 0, true);
        nowNs += ForecastWatch.KEPT_NS - 1;
        assertFalse(watch.expire());
        compare(1_000, 0, 0, true); // tells nothing
        assertTrue(watch.isWrong());
        assertTrue(watch.expire());
        assertFalse(watch.isWrong());
        assertFalse(watch.expire());
    }

    @Test
    void eachJudgementIsWorthOneResync() {
        assertFalse(watch.wantsResync());
        compare(8, 160, 0, true);
        assertTrue(watch.wantsResync());
        watch.resynced();
        compare(8, 160, 0, true);
        assertFalse(watch.wantsResync());
        watch.unanswered();
        assertTrue(watch.wantsResync());
        watch.forget();
        assertFalse(watch.wantsResync());
        watch.unanswered();
        assertFalse(watch.wantsResync());
    }

    @Test
    void hostileNumbersAreNumbers() {
        compare(50, Integer.MAX_VALUE, 0, true);
        assertTrue(watch.isWrong());
        watch.forget();
        compare(50, 0, Integer.MAX_VALUE, true);
        assertTrue(watch.isWrong());
        assertEquals(watch.why(), watch.why());
    }
}
