package io.kvasir.core.hash;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BlockHasherAllocationTest {
    private final int[] tokens = new int[2_048];
    private final long[] hashes = new long[512];

    @ParameterizedTest
    @CsvSource({"4, 1337", "16, 1337", "16, 99", "32, 99", "64, 1337", "128, 99"})
    void hashingAllocatesNothing(int blockSize, long seed) {
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        1_000,
                        () -> {
                            final int blocks =
                                    BlockHasher.localHashes(
                                            tokens, 0, 2_048, blockSize, seed, hashes);
                            BlockHasher.sequenceHashes(hashes, blocks, hashes);
                        }));
    }
}
