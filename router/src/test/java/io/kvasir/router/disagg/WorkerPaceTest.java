package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WorkerPaceTest {
    @Test
    void aWorkerOfWhichNothingIsKnownIsLikeTheOthers() {
        assertEquals(1, new WorkerPace().factor());
    }

    @ParameterizedTest
    @CsvSource({"NaN, 1", "0, 1", "-1, 1", "1, NaN", "1, -1", "Infinity, 1", "1, Infinity"})
    void whatIsNoTimeIsIgnored(double expected, double seconds) {
        final WorkerPace pace = new WorkerPace();
        pace.learn(expected, seconds);
        assertEquals(1, pace.factor());
    }

    @Test
    void oneSampleSaysLittleAndManySayAll() {
        final WorkerPace pace = new WorkerPace();
        pace.learn(0.1, 1);
        assertEquals(1 + 9 / 5.0, pace.factor(), 1e-9);
        for (int i = 0; i < 1_000; i++) {
            pace.learn(0.1, 0.3);
        }
        assertEquals(3, pace.factor(), 0.2);
    }

    @Test
    void aLongPromptSaysMoreThanShortOnes() {
        final WorkerPace pace = new WorkerPace();
        for (int i = 0; i < 50; i++) {
            pace.learn(0.01, 0.05); // such as behind a step that was under way
        }
        pace.learn(100, 100);
        assertEquals(1, pace.factor(), 0.02);
    }

    @Test
    void whatWasSlowMayRecover() {
        final WorkerPace pace = new WorkerPace();
        for (int i = 0; i < 100; i++) {
            pace.learn(1, 5);
        }
        assertTrue(pace.factor() > 4);
        for (int i = 0; i < 400; i++) {
            pace.learn(1, 1);
        }
        assertEquals(1, pace.factor(), 0.01);
    }
}
