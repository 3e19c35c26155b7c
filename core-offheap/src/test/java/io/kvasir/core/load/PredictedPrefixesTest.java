package io.kvasir.core.load;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PredictedPrefixesTest {
    private static final long TTL = 100;
    private static final long[] PROMPT = {1, 2, 3, 4, 5, 6};

    private final OverlapScores scores = new OverlapScores(4);

    private static PredictedPrefixes prefixes(long maxBlocks, double ratio, int maxVisits) {
        return new PredictedPrefixes(
                new PredictedPrefixesConfig(4, maxBlocks, ratio, maxVisits, TTL));
    }

    private int depth(PredictedPrefixes prefixes, int slot, long... prompt) {
        prefixes.match(prompt, prompt.length, scores);
        return scores.depth(slot);
    }

    @Test
    void aVisitCountsUntilItIsOlderThanTheTtl() {
        try (PredictedPrefixes prefixes = prefixes(100, 0.5, 10)) {
            assertTrue(prefixes.visit(1, PROMPT, 6, 1_000));
            assertEquals(0, prefixes.expire(1_100));
            assertEquals(6, depth(prefixes, 1, PROMPT));
            assertEquals(1, prefixes.expire(1_101));
            assertEquals(0, depth(prefixes, 1, PROMPT));
            assertEquals(0, prefixes.blocks());
            assertEquals(1, prefixes.expired());
        }
    }

    @Test
    void aLaterVisitRefreshesThePrefixThatItShares() {
        try (PredictedPrefixes prefixes = prefixes(100, 0.5, 10)) {
            prefixes.visit(1, PROMPT, 6, 0);
            prefixes.visit(1, new long[] {1, 2, 3, 9}, 4, 60);
            assertEquals(7, prefixes.blocks());
            prefixes.expire(150);
            assertEquals(3, depth(prefixes, 1, PROMPT));
            assertEquals(4, depth(prefixes, 1, 1, 2, 3, 9));
            assertEquals(4, prefixes.blocks());
        }
    }

    @Test
    void aboveTheLimitTheOldestGoDownToTheTarget() {
        try (PredictedPrefixes prefixes = prefixes(10, 0.5, 100)) {
            prefixes.visit(0, new long[] {1, 2, 3, 4}, 4, 0);
            prefixes.visit(1, new long[] {1, 2, 3, 4}, 4, 1);
            prefixes.visit(2, new long[] {7, 8}, 2, 2);
            assertEquals(10, prefixes.blocks());
            prefixes.visit(3, new long[] {9}, 1, 3);
            assertEquals(3, prefixes.blocks());
            assertEquals(2, prefixes.pruned());
            assertEquals(0, depth(prefixes, 1, 1, 2, 3, 4));
            assertEquals(2, depth(prefixes, 2, 7, 8));
        }
    }

    @Test
    void aLoweredLimitHoldsFromTheNextExpiryOnWhateverIsRefused() {
        try (PredictedPrefixes prefixes = prefixes(100, 0.5, 100)) {
            for (int i = 0; i < 10; i++) {
                prefixes.visit(0, new long[] {10L * i, 10L * i + 1, 10L * i + 2}, 3, i);
            }
            prefixes.limits(20, 0.5, TTL);
            assertEquals(0, prefixes.expire(10));
            assertEquals(9, prefixes.blocks());
            assertEquals(7, prefixes.pruned());
            prefixes.limits(1, 0.5, TTL);
            assertFalse(prefixes.visit(1, PROMPT, 2, 11));
            assertEquals(0, prefixes.blocks());
            assertEquals(10, prefixes.pruned());
        }
    }

    @Test
    void aboveTheLimitTheNewestStaysThoughItAloneIsMoreThanTheTarget() {
        try (PredictedPrefixes prefixes = prefixes(10, 0.5, 100)) {
            prefixes.visit(0, new long[] {1, 2, 3}, 3, 0);
            assertTrue(prefixes.visit(1, new long[] {11, 12, 13, 14, 15, 16, 17, 18}, 8, 1));
            assertEquals(8, prefixes.blocks());
            assertEquals(1, prefixes.visits());
            assertEquals(1, prefixes.pruned());
            assertEquals(8, depth(prefixes, 1, 11, 12, 13, 14, 15, 16, 17, 18));
        }
    }

    @Test
    void oneVisitTooManyDropsTheOldest() {
        try (PredictedPrefixes prefixes = prefixes(100, 0.5, 2)) {
            prefixes.visit(0, PROMPT, 1, 0);
            prefixes.visit(0, PROMPT, 2, 0);
            prefixes.visit(0, new long[] {8}, 1, 0);
            assertEquals(2, prefixes.visits());
            assertEquals(3, prefixes.blocks());
        }
    }

    @Test
    void aClearedSlotHoldsNothingAndItsVisitsAreNotTakenBackTwice() {
        try (PredictedPrefixes prefixes = prefixes(100, 0.5, 10)) {
            prefixes.visit(0, PROMPT, 6, 0);
            prefixes.visit(1, PROMPT, 6, 0);
            assertEquals(1, prefixes.clear(0));
            assertEquals(0, prefixes.clear(0));
            assertEquals(0, depth(prefixes, 0, PROMPT));
            assertEquals(6, depth(prefixes, 1, PROMPT));
            assertEquals(2, prefixes.expire(1_000));
            assertEquals(0, prefixes.blocks());
        }
    }

    @Test
    void aPromptLongerThanTheLimitIsRefusedAndCounted() {
        try (PredictedPrefixes prefixes = prefixes(5, 0.5, 10)) {
            assertFalse(prefixes.visit(0, PROMPT, 6, 0));
            assertEquals(1, prefixes.refused());
            assertEquals(0, prefixes.blocks());
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 1024", "16_400, 1025", "1_048_576, 65_536", "1_073_741_824, 67_108_864"})
    void thereIsRoomForAVisitOf16Blocks(long maxBlocks, int visits) {
        assertEquals(visits, new PredictedPrefixesConfig(4, maxBlocks, 0.5, TTL).maxVisits());
    }

    @Test
    void theUsualSizesFitAnyNumberOfSlots() {
        final PredictedPrefixesConfig usual = PredictedPrefixesConfig.of(4);
        assertEquals(
                new PredictedPrefixesConfig(4, 1 << 20, 0.8, 1 << 16, 120_000_000_000L), usual);
        assertEquals(PredictedPrefixesConfig.of(9), usual.withMaxWorkerSlots(9));
    }

    @Test
    void limitsOutOfRangeAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> prefixes(0, 0.5, 1));
        assertThrows(IllegalArgumentException.class, () -> prefixes(1, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> prefixes(1, 1.1, 1));
        assertThrows(IllegalArgumentException.class, () -> prefixes(1, 0.5, 0));
        try (PredictedPrefixes prefixes = prefixes(5, 0.5, 10)) {
            assertThrows(IndexOutOfBoundsException.class, () -> prefixes.visit(4, PROMPT, 6, 0));
            assertThrows(IndexOutOfBoundsException.class, () -> prefixes.visit(0, PROMPT, 7, 0));
        }
    }

    @Test
    void visitingAndExpiringAllocateNothing() {
        try (PredictedPrefixes prefixes = prefixes(64, 0.5, 16)) {
            final long[] time = {0};
            final long[] prompt = PROMPT.clone();
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            5_000,
                            () -> {
                                time[0] += 30;
                                prompt[5] = time[0];
                                prefixes.visit((int) (time[0] & 3), prompt, 6, time[0]);
                            }));
        }
    }
}
