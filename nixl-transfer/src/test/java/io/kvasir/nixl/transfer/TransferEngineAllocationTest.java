package io.kvasir.nixl.transfer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nixl.transfer.KvLayout.Order;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Path;

class TransferEngineAllocationTest {
    private static final int BLOCKS = 64;
    private static final KvLayout LAYOUT = KvLayout.of(Order.LAYER_MAJOR, BLOCKS, 4, 1024);

    @Test
    void aTransferFromItsFillingToItsEndAllocatesNothing() throws IOException {
        final Path folder = Loopbacks.folder();
        final LoopbackTransport decode = new LoopbackTransport("decode", Loopbacks.config(folder));
        try (LoopbackTransport prefill =
                        new LoopbackTransport("prefill", Loopbacks.config(folder));
                KvPool own = KvPool.share(LAYOUT, decode);
                KvPool other = KvPool.share(LAYOUT, prefill);
                TransferEngine engine =
                        new TransferEngine(
                                decode,
                                new TransferConfig(16, 8, 1 << 20, 16 << 10, 64),
                                System::nanoTime,
                                (peer, message) -> {})) {
            decode.register(own.regions());
            prefill.register(other.regions());
            final var local = engine.local(own.descriptors());
            final var link = engine.link(prefill.metadata(), other.descriptors());
            engine.doWork();
            final Transfer transfer = new Transfer();
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            2_000, () -> pull(engine, transfer, local.join(), link.join())));
            assertEquals(Transfer.State.DONE, transfer.state());
            assertEquals(4, transfer.completedStages());
        }
        Loopbacks.deleteEmpty(folder);
    }

    /** All blocks of one layer after the other. */
    private static void pull(
            TransferEngine engine, Transfer transfer, LocalBlocks own, KvLink link) {
        transfer.pull(own, link);
        for (int layer = 0; layer < 4; layer++) {
            for (int block = 0; block < BLOCKS; block++) {
                transfer.add(layer * BLOCKS + block, layer * BLOCKS + BLOCKS - 1 - block);
            }
            transfer.endStage(null);
        }
        if (!engine.submit(transfer)) {
            throw new IllegalStateException("no room for one transfer");
        }
        while (!transfer.state().isEnd()) {
            engine.doWork();
        }
    }
}
