package io.kvasir.pipeline.wire;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.index.CopyRule;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.Test;

class DecoderAllocationTest {
    @Test
    void textBlocksAreDecodedWithoutAllocating() {
        final byte[] payload =
                batch(
                        stored(range(1, 64), null, range(1, 1_024), 16, "medium", "GPU"),
                        removed(range(1, 64), "medium", "GPU"));
        final EngineBatchDecoder decoder = new EngineBatchDecoder(16);
        final KvBatch out = new KvBatch();
        final Runnable decode =
                () -> {
                    out.reset(0, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
                    decoder.decode(payload, 0, payload.length, out);
                };

        assertEquals(0, Allocations.bytesPerRound(2_000, decode));
        assertEquals(2, out.operations());
    }
}
