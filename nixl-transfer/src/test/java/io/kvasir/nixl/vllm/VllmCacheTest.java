package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.vllm.TensorSplit.Source;

import org.junit.jupiter.api.Test;

import java.util.List;

class VllmCacheTest {
    private static final KvRegion A = Golden.region("a", 0, 1 << 20, 10);
    private static final KvRegion B = Golden.region("b", 0, 1 << 21, 10);
    private static final Source WHOLE = new Source(0, BlockSlice.WHOLE, BlockSlice.WHOLE);
    private static final Source PART = new Source(0, new BlockSlice(1, 2), BlockSlice.WHOLE);

    private static VllmAgent agent(String layout, KvRegion... regions) {
        return Golden.agentOf(
                VllmAgentMetadata.of(
                        "engine",
                        new byte[0],
                        List.of(regions),
                        VllmCacheLayout.plain(layout, 32, "CPU_ATTN")),
                "hash");
    }

    private static VllmCache cache(String layout, int blockSize, KvRegion... regions) {
        return new VllmCache(
                List.of(regions),
                VllmCacheLayout.plain(layout, blockSize, "CPU_ATTN"),
                TensorRank.only(2));
    }

    private static void refusedFit(VllmCache cache, VllmAgent agent, Source source, String part) {
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> cache.requireFit(agent, source),
                "engine engine, rank 0",
                part);
    }

    @Test
    void anotherShapeIsRefusedByName() {
        final VllmAgent agent = agent("LBHNC", A, B);
        cache("LBHNC", 32, A, B).requireFit(agent, WHOLE);
        cache("LBHNC", 32, B, A).requireFit(agent, WHOLE); // names are the engine's own business
        refusedFit(cache("LBHNC", 16, A, B), agent, WHOLE, "block_size is 32 there and 16 here");
        refusedFit(cache("LBHNC", 32, A), agent, WHOLE, "number of regions is 2 there and 1 here");
        refusedFit(
                cache("LBHNC", 32, A, Golden.region("b", 1, 1 << 21, 10)),
                agent,
                WHOLE,
                "the group of region b is 0 there and 1 here");
        refusedFit(
                cache("LBNHC", 32, A, B),
                agent,
                WHOLE,
                "kv_cache_layout is LBHNC there and LBNHC here");
        assertThrows(IllegalArgumentException.class, () -> cache("LBHNC", 32));
    }

    @Test
    void partsNeedHeadsThatFollowEachOther() {
        refusedFit(cache("LBHNC", 32, A), agent("LBHNC", A), PART, "is 2048 there and 4096 here");
        refusedFit(
                cache("LBNHC", 32, A),
                agent("LBNHC", A),
                PART,
                "the heads of a rank do not follow each other");
        cache("LBNHC", 32, A).requireFit(agent("LBNHC", A), WHOLE);
        refusedFit(
                cache("LBHNC", 32, A),
                agent("LBHNC", A),
                new Source(0, new BlockSlice(0, 3), BlockSlice.WHOLE),
                "4096 bytes, no 3 equal parts");
    }
}
