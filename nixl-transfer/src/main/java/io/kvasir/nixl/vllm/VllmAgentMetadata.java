package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.KvRegion;

import java.util.List;

/**
 * What one rank of a vLLM engine tells peers of itself: vLLM's {@code NixlAgentMetadata}. The wire
 * form is a msgpack map with one column for each field of a region; here a region is a {@link
 * KvRegion}.
 *
 * @param engineId identifier of the engine, new with every start
 * @param agent the NIXL agent's own metadata, for {@link
 *     io.kvasir.nixl.transport.KvTransport#connect}
 * @param deviceId device of all regions
 * @param blocks number of blocks that the engine announces for its cache; regions have their own
 * @param regions where the blocks lie, in the engine's order
 * @param layout how the cache is laid out
 */
public record VllmAgentMetadata(
        String engineId,
        OpaqueBytes agent,
        int deviceId,
        int blocks,
        List<KvRegion> regions,
        VllmCacheLayout layout) {
    /**
     * Copies the list.
     *
     * @throws IllegalArgumentException if there is no region or one is on another device
     */
    public VllmAgentMetadata {
        regions = List.copyOf(regions);
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("engine " + engineId + " has no region");
        }
        for (KvRegion region : regions) {
            if (region.device() != deviceId) {
                throw new IllegalArgumentException(
                        "region "
                                + region.name()
                                + " is on device "
                                + region.device()
                                + ", the agent on "
                                + deviceId
                                + "; an agent announces one device");
            }
        }
    }

    /**
     * Describes an own cache; device and number of blocks are those of the first region.
     *
     * @param engineId new with every start
     * @param agent own {@link io.kvasir.nixl.transport.KvTransport#metadata}
     * @param regions at least one
     * @param layout how the cache is laid out
     * @return the metadata
     * @throws IllegalArgumentException if there is no region or devices differ
     */
    public static VllmAgentMetadata of(
            String engineId, byte[] agent, List<KvRegion> regions, VllmCacheLayout layout) {
        if (regions.isEmpty()) {
            throw new IllegalArgumentException("engine " + engineId + " has no region");
        }
        final KvRegion first = regions.getFirst();
        return new VllmAgentMetadata(
                engineId, OpaqueBytes.of(agent), first.device(), first.blocks(), regions, layout);
    }

    /**
     * Writes vLLM's form.
     *
     * @return a msgpack map with all fields of protocol 14
     */
    public byte[] encode() {
        return AgentMetadataCodec.encode(this);
    }
}
