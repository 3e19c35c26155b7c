package io.kvasir.bench.transfer;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.transport.KvTransport.Operation;

import java.nio.charset.StandardCharsets;

/**
 * A model's layers, each computed and copied; the computing thread. All layers are one transfer of
 * as many stages. The prefill side pushes: it opens a stage when it has computed the layer, and the
 * peer is notified when it has them all. The decode side pulls, and computes a layer when its stage
 * is complete.
 */
final class LayerPipeline {
    private static final byte[] ALL_THERE = "all layers".getBytes(StandardCharsets.US_ASCII);

    private final TransferEngine engine;
    private final LocalBlocks own;
    private final KvLink link;
    private final int[] indices; // of the blocks of a layer
    private final int layers;
    private final Transfer transfer = new Transfer();
    private final LayerWork work;

    /**
     * Layers that lie one after the other at both ends.
     *
     * @param layerBlocks blocks of each layer
     */
    LayerPipeline(
            TransferEngine engine,
            TransferEnd end,
            PeerMemory peer,
            int layers,
            int layerBlocks,
            long blockBytes,
            LayerWork work) {
        this.engine = engine;
        this.work = work;
        this.layers = layers;
        own = engine.local(descriptors(end.pool().base(), blockBytes, layers * layerBlocks)).join();
        link =
                engine.link(
                                peer.metadata(),
                                descriptors(peer.base(), blockBytes, layers * layerBlocks))
                        .join();
        indices = ThroughputSweep.indices(layerBlocks);
    }

    private static Descriptors descriptors(long base, long blockBytes, int blocks) {
        return Descriptors.ofBlocks(TransferEnd.blocks(base, blockBytes, blocks));
    }

    /** Every layer computed, nothing copied; nanoseconds. */
    long compute(long steps) {
        final long startNs = System.nanoTime();
        for (int layer = 0; layer < layers; layer++) {
            work.compute(steps);
        }
        return System.nanoTime() - startNs;
    }

    /** Every layer copied, nothing computed. */
    long copy(Operation operation) {
        final long startNs = System.nanoTime();
        submit(operation);
        transfer.openStages(layers);
        await();
        return System.nanoTime() - startNs;
    }

    /** First one, then the other. */
    long inTurn(Operation operation, long steps) {
        return compute(steps) + copy(operation);
    }

    /** Layers are copied while others are computed. */
    long pipelined(Operation operation, long steps) {
        final long startNs = System.nanoTime();
        submit(operation);
        for (int layer = 0; layer < layers; layer++) {
            while (operation == Operation.READ
                    && transfer.completedStages() <= layer
                    && !transfer.state().isEnd()) {
                Thread.onSpinWait();
            }
            work.compute(steps);
            transfer.openStages(layer + 1);
        }
        await();
        return System.nanoTime() - startNs;
    }

    /** Layer by layer; a push is gated. */
    private void submit(Operation operation) {
        final boolean push = operation == Operation.WRITE;
        if (push) {
            transfer.push(own, link).gated();
        } else {
            transfer.pull(own, link);
        }
        for (int layer = 0; layer < layers; layer++) {
            for (int index : indices) {
                transfer.add(layer * indices.length + index, layer * indices.length + index);
            }
            transfer.endStage(push && layer == layers - 1 ? ALL_THERE : null);
        }
        if (!engine.submit(transfer)) {
            throw new IllegalStateException("the engine has no room for a transfer");
        }
    }

    private void await() {
        while (!transfer.state().isEnd()) {
            Thread.onSpinWait();
        }
        if (transfer.state() != Transfer.State.DONE) {
            throw new IllegalStateException(transfer.state() + ": " + transfer.failure());
        }
    }

    /** Gives the lists back. */
    void close() {
        engine.unlink(link).join();
        engine.call(
                        transport -> {
                            transport.releaseList(own.list());
                            return null;
                        })
                .join();
    }
}
