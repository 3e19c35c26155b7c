package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BatchDescriptorTest {
    @ParameterizedTest
    @CsvSource({
        "STORED, 0, 2",
        "STORED, 3, 8",
        "REMOVED, 0, 1",
        "REMOVED, 3, 4",
        "REMOVED_TO, 3, 2",
        "CLEARED, 0, 1",
        "REFILL, 1, 1"
    })
    void anOperationEndsWithItsLastHash(KvBatch.Kind kind, int count, int length) {
        assertEquals(length, BatchDescriptor.length(kind, count));
    }

    @ParameterizedTest
    @CsvSource({"0, 2", "3, 5"})
    void localHashesFollowTheEngineHashes(int count, int offset) {
        assertEquals(1, BatchDescriptor.PARENT_OFFSET);
        assertEquals(2, BatchDescriptor.STORED_HASHES_OFFSET);
        assertEquals(1, BatchDescriptor.REMOVED_HASHES_OFFSET);
        assertEquals(offset, BatchDescriptor.localHashesOffset(count));
    }
}
