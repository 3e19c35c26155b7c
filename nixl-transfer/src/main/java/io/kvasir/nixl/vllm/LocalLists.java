package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.transport.KvTransport;

import java.util.HashMap;
import java.util.Map;

/**
 * Prepared lists of a cache here, one for each part of its blocks that some engine's rank fills.
 */
final class LocalLists {
    private final KvTransport transport;
    private final VllmBlocks blocks;
    private final Map<BlockSlice, Long> lists = new HashMap<>();

    LocalLists(KvTransport transport, VllmCache cache) {
        this.transport = transport;
        this.blocks = cache.blocks();
    }

    long list(BlockSlice slice) {
        return lists.computeIfAbsent(slice, s -> transport.prepare(null, blocks.descriptors(s)));
    }

    void close() {
        lists.values().forEach(transport::releaseList);
        lists.clear();
    }
}
