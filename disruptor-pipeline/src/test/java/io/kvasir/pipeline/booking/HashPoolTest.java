package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

class HashPoolTest {
    private static long[] hashes(int count, long base) {
        final long[] hashes = new long[count];
        Arrays.setAll(hashes, i -> base + i);
        return hashes;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 63, 64, 65, 128, 640})
    void whatIsTakenIsReadBack(int count) {
        final HashPool pool = new HashPool(640);
        for (int round = 0; round < 20; round++) {
            final long[] hashes = hashes(count, round * 1_000L);
            final int chunk = pool.take(hashes, count);
            final long[] out = new long[count];
            pool.copy(chunk, count, out);
            assertArrayEquals(hashes, out);
            pool.give(chunk, count);
        }
    }

    @Test
    void aChainThatDoesNotFitTakesNothing() {
        final HashPool pool = new HashPool(192);
        final int first = pool.take(hashes(65, 0), 65); // two of three chunks
        assertEquals(HashPool.NONE, pool.take(hashes(65, 0), 65));
        final int second = pool.take(hashes(64, 0), 64);
        assertNotEquals(HashPool.NONE, second);
        assertEquals(HashPool.NONE, pool.take(hashes(1, 0), 1));
        pool.give(HashPool.NONE, 64);
        assertEquals(HashPool.NONE, pool.take(hashes(1, 0), 1));
        pool.give(first, 65);
        pool.give(second, 64);
        assertNotEquals(HashPool.NONE, pool.take(hashes(192, 0), 192));
        assertEquals(HashPool.NONE, new HashPool(0).take(hashes(1, 0), 1));
    }

    /** Chains carry their owner's mark: two owners of one chunk would overwrite each other's. */
    @Test
    void threadsNeverShareAChunk() throws Exception {
        final HashPool pool = new HashPool(20 * HashPool.CHUNK_HASHES);
        final long seed = Seeds.next("threadsNeverShareAChunk");
        final List<Future<?>> threads = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(4)) {
            for (int t = 0; t < 4; t++) {
                final int thread = t;
                threads.add(executor.submit(() -> takeAndGive(pool, new Random(seed + thread))));
            }
            for (Future<?> thread : threads) {
                thread.get();
            }
        }
        final int all = 20 * HashPool.CHUNK_HASHES;
        assertNotEquals(HashPool.NONE, pool.take(hashes(all, 0), all), "a chunk was lost");
    }

    private static void takeAndGive(HashPool pool, Random random) {
        for (int i = 0; i < 20_000; i++) {
            final int count = 1 + random.nextInt(6 * HashPool.CHUNK_HASHES);
            final long[] hashes = hashes(count, random.nextLong());
            final int chunk = pool.take(hashes, count);
            if (chunk != HashPool.NONE) {
                final long[] out = new long[count];
                pool.copy(chunk, count, out);
                assertArrayEquals(hashes, out);
                pool.give(chunk, count);
            }
        }
    }
}
