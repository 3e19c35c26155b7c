package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.NixlTransport;
import io.kvasir.nixl.vllm.PrefillLease;
import io.kvasir.nixl.vllm.TensorRank;
import io.kvasir.nixl.vllm.VllmAgent;
import io.kvasir.nixl.vllm.VllmCache;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmHandshake;
import io.kvasir.nixl.vllm.VllmPrefillPeer;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlLibrary;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.RemoteBlocks;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/**
 * One rank of a decode engine, as far as it pulls blocks of vLLM servers: an agent, and a cache for
 * one prompt that takes its form from the first server that it meets.
 */
final class PullingRank implements AutoCloseable {
    private static final long PATIENCE_NS = TimeUnit.MINUTES.toNanos(1);
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);

    private final TensorRank rank;
    private final int blocks;
    private final Arena arena = Arena.ofShared();
    private final KvTransport transport;
    private MemorySegment memory;
    private VllmCache cache;
    private VllmPrefillPeer peer;

    /** A rank with room for so many blocks. */
    PullingRank(NixlLibrary library, TensorRank rank, int blocks) {
        this.rank = rank;
        this.blocks = blocks;
        this.transport =
                NixlTransport.create(
                        library,
                        UUID.randomUUID().toString(),
                        NixlAgentConfig.DEFAULT,
                        "UCX",
                        Map.of());
    }

    /** Shakes hands with the server of a prefill, and connects if this is the first of it. */
    VllmEngine meet(KvTransferParams params) {
        final VllmEngine engine = new VllmHandshake().ask(params, rank);
        if (peer == null) {
            allocateLike(engine);
            peer = new VllmPrefillPeer(transport, cache, VllmPrefillPeer.Options.DEFAULT);
        }
        peer.connect(engine);
        return engine;
    }

    private void allocateLike(VllmEngine engine) {
        final VllmAgent first = engine.ranks().getFirst();
        final List<KvRegion> theirs = first.metadata().regions();
        final int heads =
                new TensorRank(first.tensorRank(), engine.tensorSize(), rank.kvHeads()).heads();
        final long length = theirs.getFirst().blockLength() / heads * rank.heads();
        memory = arena.allocate(length * blocks * theirs.size(), 4096);
        final List<KvRegion> regions = new ArrayList<>();
        for (KvRegion region : theirs) {
            regions.add(
                    new KvRegion(
                            region.name(),
                            region.group(),
                            NixlMemory.DRAM,
                            0,
                            memory.address() + regions.size() * length * blocks,
                            length,
                            length,
                            blocks));
        }
        transport.register(regions);
        cache = new VllmCache(regions, first.metadata().layout(), rank);
    }

    PrefillLease hold(KvTransferParams params) {
        meet(params);
        return peer.hold(params, System.nanoTime());
    }

    /** The first blocks of the cache, as many as the prefill has. */
    int[] places(PrefillLease lease) {
        final List<Integer> own = IntStream.range(0, lease.blocks().count()).boxed().toList();
        return cache.blocks().indices(lease.requestId(), new RemoteBlocks(List.of(own), true));
    }

    VllmPrefillPeer peer() {
        return peer;
    }

    /** Pulls all blocks of a lease into the cache. */
    void pull(PrefillLease lease) {
        memory.fill((byte) 0);
        final long startNs = System.nanoTime();
        final long[] requests = peer.pull(lease.requestId(), places(lease), startNs);
        for (long request : requests) {
            transport.post(request);
        }
        for (long request : requests) {
            Progress progress = transport.status(request);
            while (progress == Progress.RUNNING) {
                assertTrue(System.nanoTime() - startNs < PATIENCE_NS, "the pull ends");
                LockSupport.parkNanos(PAUSE_NS);
                progress = transport.status(request);
            }
            assertEquals(Progress.DONE, progress);
            peer.pullEnded(lease.requestId(), progress, System.nanoTime());
            assertTrue(transport.release(request));
        }
        System.out.printf(
                "rank %d of %d pulled %d blocks from %d ranks in %d us%n",
                rank.rank(),
                rank.size(),
                lease.blocks().count(),
                requests.length,
                (System.nanoTime() - startNs) / 1_000);
    }

    /** The bytes of some heads of the first blocks of a layer, block by block. */
    byte[] heads(int layer, int firstBlocks, int fromHead, int toHead) {
        final KvRegion region = cache.regions().get(layer);
        final int head = Math.toIntExact(region.blockLength() / rank.heads());
        final int length = (toHead - fromHead) * head;
        final byte[] bytes = new byte[firstBlocks * length];
        for (int block = 0; block < firstBlocks; block++) {
            MemorySegment.copy(
                    memory,
                    ValueLayout.JAVA_BYTE,
                    region.address(block)
                            - memory.address()
                            + (long) (fromHead - rank.firstHead()) * head,
                    bytes,
                    block * length,
                    length);
        }
        return bytes;
    }

    int layers() {
        return cache.regions().size();
    }

    @Override
    public void close() {
        if (peer != null) {
            peer.close();
        }
        transport.close();
        arena.close();
    }
}
