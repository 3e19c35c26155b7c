package io.kvasir.bench.transfer;

import io.kvasir.nixl.engine.KvLink;
import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.probe.TransferPeer;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/**
 * A pull of 4 KiB blocks from another process, from its filling to its end: over NIXL where it is
 * there, else over shared memory. Questions answered: what does the engine add to the transport,
 * and does a posted transfer allocate ({@code gc.alloc.rate.norm})?
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "--enable-native-access=ALL-UNNAMED"})
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class TransferBenchmark {
    private static final int BLOCK_BYTES = 4 << 10;

    /** Blocks of a transfer. */
    @Param({"1", "64"})
    public int blocks;

    private TransferEnd end;
    private TransferPeer peer;
    private TransferEngine engine;
    private LocalBlocks own;
    private KvLink link;
    private long remoteList;
    private int[] indices;
    private final Transfer transfer = new Transfer();

    /** Starts the other process and connects; the engine runs on the measuring thread. */
    @Setup
    public void open() throws IOException {
        final TransferEnd.Kind kind = TransferEnd.best();
        final long bytes = (long) blocks * BLOCK_BYTES;
        end = TransferEnd.open(kind, bytes);
        peer = TransferPeer.start(kind, bytes);
        engine =
                new TransferEngine(
                        end.transport(),
                        TransferConfig.DEFAULT,
                        System::nanoTime,
                        (sender, message) -> {});
        indices = ThroughputSweep.indices(blocks);
        final Descriptors ownDescriptors = descriptors(end.pool().base());
        final Descriptors peerDescriptors = descriptors(peer.base());
        final CompletableFuture<LocalBlocks> local = engine.local(ownDescriptors);
        final CompletableFuture<KvLink> linked = engine.link(peer.metadata(), peerDescriptors);
        engine.doWork();
        own = local.join();
        link = linked.join();
        remoteList = end.transport().prepare(link.peer(), peerDescriptors);
    }

    private Descriptors descriptors(long base) {
        return Descriptors.ofBlocks(TransferEnd.blocks(base, BLOCK_BYTES, blocks));
    }

    /** Ends both. */
    @TearDown
    public void close() throws IOException {
        engine.close();
        peer.close();
        end.close();
    }

    /** Made, posted, polled and released by the caller. */
    @Benchmark
    public Progress transport() {
        final KvTransport transport = end.transport();
        final long request =
                transport.request(
                        Operation.READ, own.list(), indices, remoteList, indices, blocks, null);
        Progress progress = transport.post(request);
        while (progress == Progress.RUNNING) {
            progress = transport.status(request);
        }
        if (progress == Progress.FAILED || !transport.release(request)) {
            throw new IllegalStateException("a pull failed");
        }
        return progress;
    }

    /** Filled, submitted and driven to its end. */
    @Benchmark
    public Transfer.State engine() {
        transfer.pull(own, link);
        for (int index : indices) {
            transfer.add(index, index);
        }
        if (!engine.submit(transfer)) {
            throw new IllegalStateException("no room for one transfer");
        }
        while (!transfer.state().isEnd()) {
            engine.doWork();
        }
        if (transfer.state() != Transfer.State.DONE) {
            throw new IllegalStateException(transfer.failure());
        }
        return transfer.state();
    }
}
