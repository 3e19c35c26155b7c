package io.kvasir.gateway.testing;

import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.BlockReleaseCounts;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.router.disagg.PrefillBlocks;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Remembers how the blocks of each prefill have ended. */
public final class CountedRelease implements BlockRelease {
    /** What the blocks' end is. */
    public enum End {
        FETCHED,
        FREED
    }

    private final Map<String, Queue<End>> ends = new ConcurrentHashMap<>();

    /** Makes the answer of a prefill that holds blocks of this name. */
    public static String prefilled(String name) {
        return "{\"choices\":[{\"text\":\"a\",\"finish_reason\":\"length\"}],\"kv_transfer_params\":"
                   + "{\"do_remote_prefill\":true,\"do_remote_decode\":false,\"remote_block_ids\":[[9]],"
                   + "\"remote_engine_id\":\"e\",\"remote_request_id\":\""
                + name
                + "\",\"remote_host\":\"127.0.0.1\",\"remote_port\":1},"
                + "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}";
    }

    /** By name: none yet, or how they have ended, as often as they have. */
    public Map<String, Queue<End>> ends() {
        return ends;
    }

    @Override
    public PrefillBlocks.Held hold(KvTransferParams params) {
        final Queue<End> ended = new ConcurrentLinkedQueue<>();
        if (ends.put(params.remoteRequestId().orElseThrow(), ended) != null) {
            throw new IllegalStateException("held twice: " + params.remoteRequestId());
        }
        return new PrefillBlocks.Held() {
            @Override
            public void fetched() {
                ended.add(End.FETCHED);
            }

            @Override
            public void free() {
                ended.add(End.FREED);
            }
        };
    }

    @Override
    public BlockReleaseCounts counts() {
        return new BlockReleaseCounts(0, 0, 0, Map.of(), 0);
    }

    @Override
    public void close() {}
}
