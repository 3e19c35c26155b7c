package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.transport.KvTransport;

import org.agrona.CloseHelper;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Prepared lists of a cache here, one for each part of its blocks that some engine's rank fills.
 */
final class LocalLists implements AutoCloseable {
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

    /**
     * Forgets them, the others too where one cannot be.
     *
     * @throws io.kvasir.nixl.transport.KvTransportException if a request of one is not released
     */
    @Override
    public void close() {
        final List<AutoCloseable> all = new ArrayList<>();
        lists.values().forEach(list -> all.add(() -> transport.releaseList(list)));
        lists.clear();
        CloseHelper.closeAll(all);
    }
}
