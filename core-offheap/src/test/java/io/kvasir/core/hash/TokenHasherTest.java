package io.kvasir.core.hash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.dynatrace.hash4j.hashing.Hashing;

import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;

class TokenHasherTest {
    private static final long UNTOUCHED = 0x5EED;

    private final TokenHasher hasher = new TokenHasher();

    @ParameterizedTest
    @ValueSource(ints = {16, 32, 64, 1, 15, 17, 48, 61, 128})
    void everyBlockEqualsTheLibrarys(int blockSize) {
        final long testSeed = Seeds.next("everyBlockEqualsTheLibrarys");
        final Random random = new Random(testSeed);
        final int[] tokens = random.ints(3_000).toArray();
        final long[] out = new long[3_001];
        for (int i = 0; i < 300; i++) {
            final int from = random.nextInt(200);
            final int count = random.nextInt(tokens.length - from);
            final long seed = random.nextInt(4) == 0 ? BlockHasher.BASE_SEED : random.nextLong();
            final int expected = count / blockSize;
            out[expected] = UNTOUCHED;
            assertEquals(expected, hasher.localHashes(tokens, from, count, blockSize, seed, out));
            assertEquals(UNTOUCHED, out[expected]);
            for (int block = 0; block < expected; block++) {
                final int at = from + block * blockSize;
                final String what = "blockSize=" + blockSize + ", from=" + at + ", seed=" + seed;
                assertEquals(library(tokens, at, blockSize, seed), out[block], what);
            }
        }
    }

    private static long library(int[] tokens, int from, int blockSize, long seed) {
        final ByteBuffer bytes = ByteBuffer.allocate(4 * blockSize).order(ByteOrder.LITTLE_ENDIAN);
        bytes.asIntBuffer().put(tokens, from, blockSize);
        return Hashing.xxh3_64(seed).hashBytesToLong(bytes.array());
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 32, 64})
    void hashingAllocatesNothing(int blockSize) {
        final int[] tokens = new int[4_096];
        final long[] out = new long[256];
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        2_000, () -> hasher.localHashes(tokens, 0, 4_096, blockSize, 99, out)));
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 32, 64, 17})
    void rangesOutsideTheArraysAreRefused(int blockSize) {
        final int[] tokens = new int[2 * blockSize];
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> hasher.localHashes(tokens, 1, 2 * blockSize, blockSize, 1, new long[2]));
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> hasher.localHashes(tokens, 0, 2 * blockSize, blockSize, 1, new long[1]));
        assertThrows(
                IllegalArgumentException.class,
                () -> hasher.localHashes(tokens, 0, -1, blockSize, 1, new long[1]));
    }

    @Test
    void aBlockSizeThatIsNotPositiveIsRefused() {
        assertThrows(
                IllegalArgumentException.class,
                () -> hasher.localHashes(new int[8], 0, 8, 0, 1, new long[8]));
    }
}
