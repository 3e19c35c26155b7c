package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;

import org.junit.jupiter.api.Test;

import java.util.List;

class KvBatchTest {
    private final KvBatch batch = new KvBatch(4);

    private void fill() {
        batch.reset(3, 9, CopyRule.LAST_COPY, true, ApplyListener.NONE);
        batch.addCleared();
        batch.addStored(true, 0, new long[] {1, 2, 77}, new long[] {11, 12}, 2);
        batch.addRemovedTo(-5, 3);
        batch.addRemoved(new long[] {4, 5, 6}, 3);
        batch.addStored(false, -1, new long[] {8}, new long[] {18}, 1);
    }

    @Test
    void operationsAreReadInTheOrderInWhichTheyWereAdded() {
        fill();
        final List<String> expected =
                List.of(
                        "cleared",
                        "stored root [1, 2] 000000000000000b 000000000000000c",
                        "left -5: 3",
                        "removed [4, 5, 6]",
                        "stored behind -1 [8] 0000000000000012");

        assertEquals(expected, EngineBatchDecoderTest.describe(batch));
        assertEquals(5, batch.operations());
        final KvBatch copy = new KvBatch(1);
        copy.copyFrom(batch);
        assertEquals(expected, EngineBatchDecoderTest.describe(copy));
        assertEquals(3, copy.slot());
        assertEquals(9, copy.sequence());
        assertSame(CopyRule.LAST_COPY, copy.copyRule());
        assertTrue(copy.rootStoresRefresh());
    }

    @Test
    void anEmptyBatchHasNoFirstOperation() {
        batch.reset(1, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        assertEquals(-1, batch.first());
    }

    @Test
    void trimmingGivesLargeMemoryBack() {
        batch.reset(1, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        batch.addRemoved(new long[10_000], 10_000);
        assertTrue(batch.capacityWords() > 10_000);
        batch.trim(64);
        assertEquals(64, batch.capacityWords());
        assertEquals(0, batch.operations());
        assertEquals(-1, batch.first());
    }

    @Test
    void countsBeyondTheArraysAreRefused() {
        batch.reset(1, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
        assertThrows(IndexOutOfBoundsException.class, () -> batch.addRemoved(new long[1], 2));
        assertThrows(IllegalArgumentException.class, () -> batch.addRemovedTo(1, -1));
        assertEquals(0, batch.operations());
    }
}
