package io.kvasir.bench.transfer;

import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.probe.TransferEnd.Manner;
import io.kvasir.nixl.probe.TransferPeer;
import io.kvasir.nixl.transport.KvTransport.Operation;

import org.agrona.concurrent.BusySpinIdleStrategy;

import java.io.IOException;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;

/**
 * One process of {@link Pipelining}: measures all cases over one transport.
 *
 * <pre>
 *   case OPERATION LAYER_BYTES COPY/COMPUTE COMPUTE_NS COPY_NS IN_TURN_NS PIPELINED_NS HIDDEN    medians
 * </pre>
 */
final class PipeliningRun {
    private static final List<Double> SHARES = List.of(0.25, 0.5, 0.9);
    private static final int COPIES = 15; // before the length of a layer's computation is set
    private static final int WARM_UP_ROUNDS = 2;
    private static final long WARM_UP_NS =
            1_000_000_000; // of pulls and of pushes, before their cases
    private static final long WARM_UP_STEPS = 1000;

    private final TransferEngine engine;
    private final TransferEnd end;
    private final TransferPeer peer;
    private final int rounds;
    private final PrintStream out;
    private final LayerWork work;

    private PipeliningRun(
            TransferEngine engine,
            TransferEnd end,
            TransferPeer peer,
            LayerWork work,
            int rounds,
            PrintStream out) {
        this.work = work;
        this.engine = engine;
        this.end = end;
        this.peer = peer;
        this.rounds = rounds;
        this.out = out;
    }

    /**
     * Measures in this process, and a peer that it starts.
     *
     * @param args kind of transport, rounds, layers, bytes of a block, then blocks of a layer for
     *     each case
     */
    public static void main(String[] args) throws IOException {
        final int[] layerBlocks = Arrays.stream(args).skip(4).mapToInt(Integer::parseInt).toArray();
        measure(
                TransferEnd.Kind.valueOf(args[0]),
                Integer.parseInt(args[1]),
                Integer.parseInt(args[2]),
                Long.parseLong(args[3]),
                layerBlocks,
                System.out);
    }

    static void measure(
            TransferEnd.Kind kind,
            int rounds,
            int layers,
            long blockBytes,
            int[] layerBlocks,
            PrintStream out)
            throws IOException {
        final long bytes = blockBytes * layers * Arrays.stream(layerBlocks).max().orElseThrow();
        final LayerWork work = new LayerWork();
        try (TransferEnd end = TransferEnd.open(kind, bytes, Manner.QUIET);
                TransferPeer peer = TransferPeer.start(kind, bytes, Manner.QUIET);
                TransferEngine engine =
                        TransferEngine.start(
                                end.transport(),
                                TransferConfig.DEFAULT,
                                new BusySpinIdleStrategy(),
                                (sender, message) -> {},
                                thrown -> System.err.println("the transfer engine: " + thrown))) {
            final PipeliningRun run = new PipeliningRun(engine, end, peer, work, rounds, out);
            for (int blocks : layerBlocks) {
                run.measure(layers, blocks, blockBytes);
            }
        }
    }

    private void measure(int layers, int layerBlocks, long blockBytes) {
        final LayerPipeline pipeline =
                new LayerPipeline(
                        engine,
                        end,
                        new PeerMemory(peer.base(), peer.metadata()),
                        layers,
                        layerBlocks,
                        blockBytes,
                        work);
        for (Operation operation : List.of(Operation.WRITE, Operation.READ)) {
            final long startNs = System.nanoTime();
            while (System.nanoTime() - startNs < WARM_UP_NS) {
                pipeline.pipelined(operation, WARM_UP_STEPS);
            }
            for (double share : SHARES) {
                final double copyNs = median(COPIES, () -> pipeline.copy(operation));
                final long steps = work.steps(copyNs / share / layers);
                measure(pipeline, operation, steps, layerBlocks * blockBytes, share);
            }
        }
        pipeline.close();
    }

    /** All four ways in turn, so that what disturbs one disturbs the others. */
    private void measure(
            LayerPipeline pipeline,
            Operation operation,
            long steps,
            long layerBytes,
            double share) {
        for (int round = 0; round < WARM_UP_ROUNDS; round++) {
            pipeline.inTurn(operation, steps);
            pipeline.pipelined(operation, steps);
        }
        final double[][] times = new double[5][rounds];
        for (int round = 0; round < rounds; round++) {
            times[0][round] = pipeline.compute(steps);
            times[1][round] = pipeline.copy(operation);
            times[2][round] = pipeline.inTurn(operation, steps);
            times[3][round] = pipeline.pipelined(operation, steps);
            times[4][round] = 1 - (times[3][round] - times[0][round]) / times[1][round];
        }
        out.printf(
                Locale.ROOT,
                "case %s %d %.2f %.0f %.0f %.0f %.0f %.4f%n",
                operation,
                layerBytes,
                share,
                Samples.median(times[0]),
                Samples.median(times[1]),
                Samples.median(times[2]),
                Samples.median(times[3]),
                Samples.median(times[4]));
    }

    private static double median(int rounds, LongSupplier way) {
        final double[] times = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            times[round] = way.getAsLong();
        }
        return Samples.median(times);
    }
}
