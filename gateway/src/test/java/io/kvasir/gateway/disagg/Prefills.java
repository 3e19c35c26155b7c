package io.kvasir.gateway.disagg;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.vllm.VllmAgent;
import io.kvasir.nixl.vllm.VllmAgentMetadata;
import io.kvasir.nixl.vllm.VllmCacheLayout;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** Answers of prefill workers, and engines as their side channels introduce them. */
final class Prefills {
    private Prefills() {}

    static KvTransferParams params(String engineId, String requestId, int port) {
        return json(
                """
                {"do_remote_prefill":true,"remote_engine_id":"%s","remote_request_id":"%s",\
                "remote_block_ids":[[4,2]],"remote_host":"127.0.0.1","remote_port":%d,"tp_size":1}\
                """
                        .formatted(engineId, requestId, port));
    }

    static KvTransferParams json(String text) {
        return new KvTransferParams(VerbatimJson.parse(text));
    }

    /** What a rank publishes; of a scripted transport the agent's metadata is its name. */
    static VllmAgentMetadata metadata(String engineId, byte[] agent) {
        return VllmAgentMetadata.of(
                engineId,
                agent,
                List.of(new KvRegion("layer", 0, NixlMemory.DRAM, 0, 1 << 20, 4_096, 4_096, 10)),
                VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN"));
    }

    static VllmEngine engine(String engineId) {
        return engine(engineId, engineId.getBytes(StandardCharsets.UTF_8));
    }

    static VllmEngine engine(String engineId, byte[] agent) {
        return VllmEngine.of(new VllmAgent("hash", 0, 0, metadata(engineId, agent), 0, 1_000, 0));
    }
}
