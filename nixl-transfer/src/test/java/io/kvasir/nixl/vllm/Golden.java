package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.VerbatimJson;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** Recorded messages of a vLLM server, and made ones that resemble them. */
final class Golden {
    private Golden() {}

    static byte[] bytes(String name) {
        try (InputStream file = Golden.class.getResourceAsStream("/vllm/" + name)) {
            return file.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static HandshakeCodec.Answer answer() {
        return HandshakeCodec.parseAnswer(bytes("payload.bin"), "recorded");
    }

    static KvTransferParams params() {
        return new KvTransferParams(VerbatimJson.parse(bytes("params.json")));
    }

    static VllmAgent agent() {
        return agentOf(
                AgentMetadataCodec.decode(answer().metadata().toArray()).metadata(),
                answer().compatibilityHash());
    }

    static VllmAgent agentOf(VllmAgentMetadata metadata, String hash) {
        return new VllmAgent(hash, 0, 0, metadata, 0, 1_000, 0);
    }

    /**
     * An engine that shares the model between several ranks, each known by the engine's name and
     * its number.
     */
    static VllmEngine engine(String engineId, int ranks, IntFunction<List<KvRegion>> regions) {
        return new VllmEngine(
                engineId,
                ranks,
                IntStream.range(0, ranks)
                        .mapToObj(
                                rank ->
                                        new VllmAgent(
                                                "hash",
                                                0,
                                                rank,
                                                metadata(
                                                        engineId,
                                                        engineId + rank,
                                                        regions.apply(rank)
                                                                .toArray(KvRegion[]::new)),
                                                0,
                                                1_000,
                                                0))
                        .toList());
    }

    /** What a prefill on such an engine hands on. */
    static KvTransferParams params(String engineId, String requestId, int ranks) {
        return new KvTransferParams(
                params(engineId, requestId, "[[4,2]]", "")
                        .json()
                        .edit()
                        .set("tp_size", ranks)
                        .apply());
    }

    static KvRegion region(String name, int group, long base, int blocks) {
        return new KvRegion(name, group, NixlMemory.DRAM, 0, base, 4_096, 4_096, blocks);
    }

    static VllmAgentMetadata metadata(String engineId, KvRegion... regions) {
        return metadata(engineId, engineId, regions);
    }

    /** With the name that a scripted transport will know the agent by. */
    static VllmAgentMetadata metadata(String engineId, String agent, KvRegion... regions) {
        return VllmAgentMetadata.of(
                engineId,
                agent.getBytes(StandardCharsets.UTF_8),
                List.of(regions),
                VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN"));
    }

    static KvTransferParams params(String engineId, String requestId, String blocks, String more) {
        return new KvTransferParams(
                VerbatimJson.parse(
                        """
                        {"do_remote_prefill":true,"remote_engine_id":"%s","remote_request_id":"%s",\
                        "remote_block_ids":%s,"remote_host":"127.0.0.1","remote_port":5600,\
                        "tp_size":1%s}\
                        """
                                .formatted(engineId, requestId, blocks, more)));
    }
}
