package io.kvasir.opstreams.alternatives;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.Random;

class CopyingHasherTest {
    @Test
    void hashesAreThoseOfTheRealHasher() {
        final Random random = new Random(Seeds.next("hashesAreThoseOfTheRealHasher"));
        for (int blockSize : new int[] {1, 16, 64, 128}) {
            final int[] tokens = random.ints(blockSize * 20L).toArray();
            final long[] expected = new long[20];
            final long[] actual = new long[20];
            final long seed = random.nextLong();
            BlockHasher.localHashes(tokens, 0, tokens.length, blockSize, seed, expected);
            assertEquals(20, new CopyingHasher(blockSize, seed).localHashes(tokens, actual));
            assertArrayEquals(expected, actual);
        }
    }
}
