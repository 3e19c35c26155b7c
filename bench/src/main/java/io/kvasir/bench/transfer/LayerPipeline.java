package io.kvasir.bench.transfer;

import io.kvasir.nixl.transfer.Descriptors;
import io.kvasir.nixl.transfer.KvLink;
import io.kvasir.nixl.transfer.KvTransport.Operation;
import io.kvasir.nixl.transfer.LocalBlocks;
import io.kvasir.nixl.transfer.Transfer;
import io.kvasir.nixl.transfer.TransferEngine;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A model's layers, each computed and copied; the computing thread. The prefill side pushes each
 * layer when it is computed, as a transfer of its own. The decode side pulls all layers as one
 * transfer of as many stages, and computes a layer when its stage is complete.
 */
final class LayerPipeline {
    private final TransferEngine engine;
    private final LocalBlocks own;
    private final KvLink link;
    private final int[] places; // of the blocks of a layer
    private final Transfer[] pushes;
    private final byte[][] messages;
    private final Transfer pull = new Transfer();
    private final LayerWork work;

    /**
     * Layers that lie one behind the other at both ends.
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
        own = engine.local(pieces(end.pool().base(), blockBytes, layers * layerBlocks)).join();
        link =
                engine.link(peer.metadata(), pieces(peer.base(), blockBytes, layers * layerBlocks))
                        .join();
        places = ThroughputSweep.places(layerBlocks);
        pushes = new Transfer[layers];
        messages = new byte[layers][];
        for (int layer = 0; layer < layers; layer++) {
            pushes[layer] = new Transfer();
            messages[layer] = ("layer " + layer).getBytes(StandardCharsets.US_ASCII);
        }
    }

    private static Descriptors pieces(long base, long blockBytes, int blocks) {
        return Descriptors.ofBlocks(TransferEnd.blocks(base, blockBytes, blocks));
    }

    /** Every layer computed, nothing copied; nanoseconds. */
    long compute(long steps) {
        final long startNs = System.nanoTime();
        for (int layer = 0; layer < pushes.length; layer++) {
            work.compute(steps);
        }
        return System.nanoTime() - startNs;
    }

    /** Every layer copied, nothing computed. */
    long copy(Operation operation) {
        final long startNs = System.nanoTime();
        if (operation == Operation.WRITE) {
            for (int layer = 0; layer < pushes.length; layer++) {
                push(layer);
            }
            Arrays.stream(pushes).forEach(LayerPipeline::await);
        } else {
            pullAll();
            await(pull);
        }
        return System.nanoTime() - startNs;
    }

    /** First one, then the other. */
    long inTurn(Operation operation, long steps) {
        return compute(steps) + copy(operation);
    }

    /** Layers are copied while others are computed. */
    long pipelined(Operation operation, long steps) {
        final long startNs = System.nanoTime();
        if (operation == Operation.WRITE) {
            for (int layer = 0; layer < pushes.length; layer++) {
                work.compute(steps);
                push(layer);
            }
            Arrays.stream(pushes).forEach(LayerPipeline::await);
        } else {
            pullAll();
            for (int layer = 0; layer < pushes.length; layer++) {
                while (pull.completedStages() <= layer && !pull.state().isEnd()) {
                    Thread.onSpinWait();
                }
                work.compute(steps);
            }
            await(pull);
        }
        return System.nanoTime() - startNs;
    }

    private void push(int layer) {
        final Transfer transfer = pushes[layer].push(own, link);
        add(transfer, layer);
        submit(transfer.endStage(messages[layer]));
    }

    private void pullAll() {
        pull.pull(own, link);
        for (int layer = 0; layer < pushes.length; layer++) {
            add(pull, layer);
            pull.endStage(null);
        }
        submit(pull);
    }

    private void add(Transfer transfer, int layer) {
        for (int place : places) {
            transfer.add(layer * places.length + place, layer * places.length + place);
        }
    }

    private void submit(Transfer transfer) {
        if (!engine.submit(transfer)) {
            throw new IllegalStateException("the engine has no room for a layer");
        }
    }

    private static void await(Transfer transfer) {
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
