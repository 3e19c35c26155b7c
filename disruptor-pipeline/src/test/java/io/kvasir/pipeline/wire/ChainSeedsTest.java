package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;

class ChainSeedsTest {
    private static final long ABSENT = -7;

    @Test
    void whatWasPutIsFound() {
        final ChainSeeds seeds = new ChainSeeds(1 << 16);
        assertEquals(ABSENT, seeds.get(5, ABSENT));
        final Random random = new Random(Seeds.next("ChainSeedsTest"));
        final Map<Long, Long> model = new HashMap<>();
        for (int i = 0; i < 20_000; i++) {
            final long key = random.nextInt(30_000) - 15_000L;
            final long value = random.nextLong();
            if (key != 1) { // shares its place with 0
                seeds.put(key, value);
                model.put(key, value);
            }
        }
        model.forEach((key, value) -> assertEquals(value, seeds.get(key, ABSENT)));
        seeds.clear();
        model.forEach((key, value) -> assertEquals(ABSENT, seeds.get(key, ABSENT)));
    }

    @Test
    void memoryIsBoundedAndTheLatestHalfIsKept() {
        final ChainSeeds seeds = new ChainSeeds(1_000);
        for (long key = 1; key <= 100_000; key++) {
            seeds.put(key, -key);
        }
        int found = 0;
        for (long key = 1; key <= 100_000; key++) {
            found += seeds.get(key, ABSENT) == -key ? 1 : 0;
        }
        assertTrue(found >= 500 && found <= 1_000, "found=" + found);
    }

    @Test
    void whatIsUsedIsKept() {
        final ChainSeeds seeds = new ChainSeeds(1_000);
        seeds.put(42, 4_242);
        for (long key = 1_000; key < 50_000; key++) {
            seeds.put(key, key);
            if (key % 300 == 0) {
                assertEquals(4_242, seeds.get(42, ABSENT));
            }
        }
    }

    @Test
    void aSizeTooSmallIsRefused() {
        assertThrows(IllegalArgumentException.class, () -> new ChainSeeds(1));
    }
}
