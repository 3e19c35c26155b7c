package io.kvasir.nixl.vllm;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * How a vLLM engine lays out its KV cache, as far as a peer must know: two engines copy blocks only
 * where these agree.
 *
 * @param name order of the axes, such as {@code LBHNC}; {@code kv_cache_layout}
 * @param blockSize tokens of a block
 * @param attentionBackend such as {@code CPU_ATTN}
 * @param physicalBlocksPerBlock blocks of the regions that make one block of the scheduler
 * @param contextParallelDecode ranks that share a sequence while decoding; {@code dcp_size}
 * @param contextParallelPrefill ranks that share a sequence while prefilling; {@code pcp_size}
 * @param stateSizes bytes of the two states of state space layers, 0 without such layers; {@code
 *     ssm_sizes}
 * @param embeddingPageLength bytes of a page of per-layer embedding state, if the model has it;
 *     {@code ple_block_len}
 * @param regionMembers layers that share each region; empty where there are none
 * @param packedMembers what lies where in a region's block; empty where there are none
 */
public record VllmCacheLayout(
        String name,
        int blockSize,
        String attentionBackend,
        int physicalBlocksPerBlock,
        int contextParallelDecode,
        int contextParallelPrefill,
        List<Long> stateSizes,
        OptionalLong embeddingPageLength,
        List<List<String>> regionMembers,
        Map<String, PackedMember> packedMembers) {
    private static final List<Long> NO_STATES = List.of(0L, 0L);

    /**
     * A tensor packed into a region together with others.
     *
     * @param offset bytes from the start of a block
     * @param pageLength bytes of it in each block
     */
    public record PackedMember(long offset, long pageLength) {}

    /** Copies the collections; their order stays. */
    public VllmCacheLayout {
        stateSizes = List.copyOf(stateSizes);
        regionMembers = regionMembers.stream().map(List::copyOf).toList();
        packedMembers = Collections.unmodifiableMap(new LinkedHashMap<>(packedMembers));
    }

    /**
     * The plain layout: attention only, one physical block a block, nothing shared or packed.
     *
     * @param name order of the axes
     * @param blockSize tokens of a block
     * @param attentionBackend the backend's name
     * @return the layout
     */
    public static VllmCacheLayout plain(String name, int blockSize, String attentionBackend) {
        return new VllmCacheLayout(
                name,
                blockSize,
                attentionBackend,
                1,
                1,
                1,
                NO_STATES,
                OptionalLong.empty(),
                List.of(),
                Map.of());
    }

    /**
     * Refuses layouts whose blocks are not simply rows of each region.
     *
     * @throws VllmPeerException of kind {@code UNSUPPORTED}, naming the field and its value
     */
    public void requirePlain() {
        require("physical_blocks_per_logical_kv_block", physicalBlocksPerBlock, 1);
        require("dcp_size", contextParallelDecode, 1);
        require("pcp_size", contextParallelPrefill, 1);
        if (stateSizes.stream().anyMatch(size -> size != 0)) {
            throw unsupported("ssm_sizes", stateSizes, "0: layers of attention only");
        }
        if (embeddingPageLength.isPresent()) {
            throw unsupported("ple_block_len", embeddingPageLength.getAsLong(), "null");
        }
        if (!packedMembers.isEmpty()) {
            throw unsupported("packed_member_layouts", packedMembers.keySet(), "none");
        }
    }

    private static void require(String field, int value, int supported) {
        if (value != supported) {
            throw unsupported(field, value, Integer.toString(supported));
        }
    }

    private static VllmPeerException unsupported(String field, Object value, String supported) {
        return new VllmPeerException(
                VllmPeerException.Kind.UNSUPPORTED,
                "blocks of an engine with "
                        + field
                        + "="
                        + value
                        + " cannot be copied here; "
                        + "supported is "
                        + supported);
    }
}
