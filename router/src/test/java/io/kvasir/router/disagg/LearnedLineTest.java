package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.Random;

class LearnedLineTest {
    private final LearnedLine line = new LearnedLine();

    private void learn(int samples, double fixed, double perToken) {
        for (int i = 0; i < samples; i++) {
            final double tokens = 100 + 37 * (i % 11);
            line.learn(tokens, fixed + perToken * tokens);
        }
    }

    @Test
    void aLineIsFoundFromItsPoints() {
        learn(8, 0.01, 0.002);
        assertTrue(line.isKnown());
        assertEquals(0.01 + 2, line.seconds(1000), 1e-9);
        assertEquals(0.002, line.secondsPerToken(), 1e-12);
    }

    @Test
    void fewSamplesSayNothing() {
        learn(7, 0.01, 0.002);
        assertFalse(line.isKnown());
        assertTrue(Double.isNaN(line.seconds(1)));
        assertTrue(Double.isNaN(line.secondsPerToken()));
    }

    @Test
    void aChangeIsLearnedAndTheOldForgotten() {
        learn(1000, 0.01, 0.002);
        learn(400, 0.05, 0.0005);
        assertEquals(0.05 + 0.5, line.seconds(1000), 0.01);
    }

    @Test
    void promptsOfOneLengthGiveATimePerToken() {
        for (int i = 0; i < 20; i++) {
            line.learn(500, 1);
        }
        assertEquals(2, line.seconds(1000), 1e-9);
    }

    @Test
    void whatTakesNoLongerWithMoreTokensIsConstant() {
        for (int i = 0; i < 20; i++) {
            line.learn(100 * i, 1 - 0.01 * i);
        }
        assertEquals(0, line.secondsPerToken());
        assertTrue(line.seconds(5000) > 0.5);
    }

    @Test
    void noTokensAtAllGiveAConstant() {
        for (int i = 0; i < 20; i++) {
            line.learn(0, 0.25);
        }
        assertEquals(0.25, line.seconds(1_000_000), 1e-9);
    }

    @Test
    void samplesThatCannotBeAreIgnored() {
        learn(20, 0.01, 0.002);
        final double before = line.seconds(1000);
        line.learn(Double.NaN, 1);
        line.learn(1, Double.NaN);
        line.learn(-1, 1);
        line.learn(1, -1);
        line.learn(Double.POSITIVE_INFINITY, 1);
        line.learn(1, Double.POSITIVE_INFINITY);
        assertEquals(before, line.seconds(1000));
    }

    @Test
    void noSampleMakesATimeNegative() {
        final Random random = new Random(Seeds.next("noSampleMakesATimeNegative"));
        for (int i = 0; i < 20_000; i++) {
            line.learn(random.nextInt(100_000), random.nextExponential());
            if (line.isKnown()) {
                assertTrue(line.seconds(random.nextInt(1_000_000)) >= 0);
                assertTrue(line.secondsPerToken() >= 0);
            }
        }
    }
}
