package io.kvasir.pipeline.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;

import org.junit.jupiter.api.Test;

import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Set;

class SpareBatchesTest {
    private final SpareBatches spares = new SpareBatches(8, 32);

    @Test
    void batchesThatAreGivenAreTakenAgain() {
        final Set<KvBatch> seen = Collections.newSetFromMap(new IdentityHashMap<>());
        for (int i = 0; i < 10 * SpareBatches.SPARES; i++) {
            final KvBatch batch = spares.take();
            seen.add(batch);
            spares.give(batch);
        }
        assertTrue(seen.size() <= SpareBatches.SPARES, () -> seen.size() + " batches");
    }

    @Test
    void noMoreAreKeptThanThereIsRoomFor() {
        final Set<KvBatch> first = new HashSet<>();
        for (int i = 0; i < 3 * SpareBatches.SPARES; i++) {
            first.add(new KvBatch(8));
        }
        first.forEach(spares::give);
        int known = 0;
        for (int i = 0; i < 3 * SpareBatches.SPARES; i++) {
            known += first.contains(spares.take()) ? 1 : 0;
        }
        assertEquals(SpareBatches.SPARES, known);
    }

    @Test
    void aLargeBatchGivesItsMemoryBackAndAllLetGoOfTheirListener() {
        final KvBatch batch = spares.take();
        batch.reset(3, 7, CopyRule.PHYSICAL, false, new ApplyListener() {});
        batch.addRemoved(new long[100], 100);
        spares.give(batch);
        assertEquals(32, batch.capacityWords());
        assertSame(ApplyListener.NONE, batch.listener());
        assertFalse(batch.first() >= 0);
    }
}
