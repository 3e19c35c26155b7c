package io.kvasir.nixl.vllm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nixl.loopback.LoopbackConfig;
import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.protocol.handoff.KvTransferParams;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Heads end up where they belong, whatever the numbers of ranks; through a transport that copies.
 */
class TensorParallelCopyTest {
    private static final int LAYERS = 2;
    private static final int BLOCKS = 4;
    private static final int HEAD_BYTES = 64;
    private static final int[] PULLED = {3, 1}; // of the engine, into blocks 0 and 1 here

    /** A rank's cache in memory that other ends reach. */
    private static final class RankScheduler implements AutoCloseable {
        private final TensorRank rank;
        private final LoopbackTransport transport;
        private final MemorySegment memory;
        private final List<KvRegion> regions = new ArrayList<>();

        private RankScheduler(String name, TensorRank rank, Path folder, Arena arena) {
            this.rank = rank;
            transport =
                    new LoopbackTransport(
                            name + rank.rank(), LoopbackConfig.defaults().withFolder(folder));
            final long length = (long) rank.heads() * HEAD_BYTES;
            memory = arena.allocate((long) LAYERS * BLOCKS * length, 4_096);
            for (int layer = 0; layer < LAYERS; layer++) {
                regions.add(
                        new KvRegion(
                                "layer " + layer,
                                0,
                                NixlMemory.DRAM,
                                0,
                                memory.address() + (long) layer * BLOCKS * length,
                                length,
                                length,
                                BLOCKS));
            }
            transport.register(regions);
        }

        private byte[] head(int layer, int block, int head) {
            final long at =
                    ((long) (layer * BLOCKS + block) * rank.heads() + head - rank.firstHead())
                            * HEAD_BYTES;
            return memory.asSlice(at, HEAD_BYTES).toArray(ValueLayout.JAVA_BYTE);
        }

        private void fill() {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int block = 0; block < BLOCKS; block++) {
                    for (int h = 0; h < rank.heads(); h++) {
                        final long at =
                                ((long) (layer * BLOCKS + block) * rank.heads() + h) * HEAD_BYTES;
                        memory.asSlice(at, HEAD_BYTES)
                                .fill(content(layer, block, rank.firstHead() + h));
                    }
                }
            }
        }

        private VllmAgent agent() {
            return new VllmAgent(
                    "hash",
                    0,
                    rank.rank(),
                    VllmAgentMetadata.of("e", transport.metadata(), regions, layout()),
                    0,
                    1,
                    0);
        }

        @Override
        public void close() {
            transport.close();
        }
    }

    private static VllmCacheLayout layout() {
        return VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN");
    }

    private static byte content(int layer, int block, int head) {
        return (byte) (1 + layer * 100 + block * 20 + head);
    }

    private static List<RankScheduler> ranks(
            String name, int size, int heads, Path folder, Arena arena) {
        final List<RankScheduler> ranks = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            ranks.add(new RankScheduler(name, new TensorRank(rank, size, heads), folder, arena));
        }
        return ranks;
    }

    @ParameterizedTest
    @CsvSource({"1,1,2", "1,2,2", "2,1,2", "4,2,8", "2,4,8", "1,4,2", "4,1,2", "2,4,1"})
    void headsArriveWhereTheyBelong(int here, int there, int heads, @TempDir Path folder) {
        try (Arena arena = Arena.ofConfined()) {
            final List<RankScheduler> engine = ranks("engine ", there, heads, folder, arena);
            engine.forEach(RankScheduler::fill);
            final List<RankScheduler> own = ranks("own ", here, heads, folder, arena);
            own.forEach(rank -> pull(rank, engine));
            final List<String> told = new ArrayList<>();
            engine.forEach(
                    rank ->
                            rank.transport.notifications(
                                    (peer, message) ->
                                            told.add(rank.rank.rank() + " " + text(message))));
            assertEquals(Math.max(here, there), told.size(), told.toString());
            for (int rank = 0; rank < there; rank++) {
                final String expected = rank + " r:" + Math.max(1, here / there);
                final long times = told.stream().filter(expected::equals).count();
                assertEquals(Math.max(1, here / there), times, told.toString());
            }
            own.forEach(RankScheduler::close);
            engine.forEach(RankScheduler::close);
        }
    }

    private static String text(MemorySegment message) {
        return new String(message.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
    }

    private static void pull(RankScheduler own, List<RankScheduler> engine) {
        final VllmCache cache = new VllmCache(own.regions, layout(), own.rank);
        try (VllmPrefillPeer peer =
                new VllmPrefillPeer(own.transport, cache, VllmPrefillPeer.Options.DEFAULT)) {
            peer.connect(
                    new VllmEngine(
                            "e",
                            engine.size(),
                            engine.stream().map(RankScheduler::agent).toList()));
            peer.hold(
                    new KvTransferParams(
                            Golden.params("e", "r", "[[3,1]]", "")
                                    .json()
                                    .edit()
                                    .set("tp_size", engine.size())
                                    .apply()),
                    0);
            final int[] indices = {0, 1, BLOCKS, BLOCKS + 1};
            for (long request : peer.pull("r", indices, 0)) {
                Progress progress = own.transport.post(request);
                while (progress == Progress.RUNNING) {
                    progress = own.transport.status(request);
                }
                peer.pullEnded("r", progress, 0);
                own.transport.release(request);
            }
            assertEquals(0, peer.leases());
        }
        for (int layer = 0; layer < LAYERS; layer++) {
            for (int i = 0; i < PULLED.length; i++) {
                for (int h = 0; h < own.rank.heads(); h++) {
                    final int head = own.rank.firstHead() + h;
                    for (byte b : own.head(layer, i, head)) {
                        assertEquals(content(layer, PULLED[i], head), b);
                    }
                }
            }
        }
    }
}
