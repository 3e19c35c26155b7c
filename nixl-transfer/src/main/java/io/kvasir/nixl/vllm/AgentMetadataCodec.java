package io.kvasir.nixl.vllm;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.ToLongFunction;

/**
 * The msgpack map of {@link VllmAgentMetadata}. Keys that are not known are skipped and counted;
 * keys without which bytes would be read wrongly must be there.
 *
 * <pre>
 *   {engine_id, agent_metadata, kv_caches_base_addr: [region], device_id, num_blocks,
 *    block_lens: [region], block_strides: [region], kv_cache_layout, block_size, ssm_sizes: [2],
 *    attn_backend_name, physical_blocks_per_logical_kv_block, region_num_blocks: [region] or nil,
 *    region_group_ids: [region] or nil, region_names: [region] or nil, region_mem_types: [region],
 *    dcp_size, pcp_size, ple_block_len: int or nil, region_members: [[str]],
 *    packed_member_layouts: {str: [offset, length]}}
 * </pre>
 */
final class AgentMetadataCodec {
    /** First and last version of the connector's protocol whose metadata is understood. */
    static final String KNOWN_PROTOCOLS = "11 to 14";

    private static final int FIELDS = 21;
    private static final String WHAT = "vLLM agent metadata";

    /** What was read, before it is known to be whole. */
    private static final class Columns {
        private String engineId;
        private OpaqueBytes agent;
        private List<Long> bases;
        private Integer deviceId;
        private Integer blocks;
        private List<Long> lengths;
        private List<Long> strides;
        private String layout;
        private Integer blockSize;
        private List<Long> stateSizes;
        private String backend;
        private Integer physicalBlocks;
        private List<Integer> regionBlocks;
        private List<Integer> groups;
        private List<String> names;
        private List<String> memories;
        private int decodeRanks = 1;
        private int prefillRanks = 1;
        private OptionalLong pageLength = OptionalLong.empty();
        private List<List<String>> members = List.of();
        private Map<String, VllmCacheLayout.PackedMember> packed = Map.of();
        private int unknownKeys;
    }

    /**
     * What a message held.
     *
     * @param metadata the metadata
     * @param unknownKeys keys that were skipped
     */
    record Decoded(VllmAgentMetadata metadata, int unknownKeys) {}

    private AgentMetadataCodec() {}

    static byte[] encode(VllmAgentMetadata metadata) {
        final List<KvRegion> regions = metadata.regions();
        final VllmCacheLayout layout = metadata.layout();
        final WireWriter out = new WireWriter().map(FIELDS);
        out.string("engine_id").string(metadata.engineId());
        out.string("agent_metadata").binary(metadata.agent().toArray());
        write(out, "kv_caches_base_addr", regions, KvRegion::base);
        out.string("device_id").integer(metadata.deviceId());
        out.string("num_blocks").integer(metadata.blocks());
        write(out, "block_lens", regions, KvRegion::blockLength);
        write(out, "block_strides", regions, KvRegion::blockStride);
        out.string("kv_cache_layout").string(layout.name());
        out.string("block_size").integer(layout.blockSize());
        out.string("ssm_sizes").array(layout.stateSizes().size());
        layout.stateSizes().forEach(out::integer);
        out.string("attn_backend_name").string(layout.attentionBackend());
        out.string("physical_blocks_per_logical_kv_block");
        out.integer(layout.physicalBlocksPerBlock());
        write(out, "region_num_blocks", regions, KvRegion::blocks);
        write(out, "region_group_ids", regions, KvRegion::group);
        out.string("region_names").strings(regions.stream().map(KvRegion::name).toList());
        out.string("region_mem_types");
        out.strings(regions.stream().map(region -> name(region.memory())).toList());
        out.string("dcp_size").integer(layout.contextParallelDecode());
        out.string("pcp_size").integer(layout.contextParallelPrefill());
        out.string("ple_block_len");
        layout.embeddingPageLength().ifPresentOrElse(out::integer, out::nil);
        out.string("region_members").array(layout.regionMembers().size());
        layout.regionMembers().forEach(out::strings);
        out.string("packed_member_layouts").map(layout.packedMembers().size());
        layout.packedMembers()
                .forEach(
                        (name, member) ->
                                out.string(name)
                                        .array(2)
                                        .integer(member.offset())
                                        .integer(member.pageLength()));
        return out.toByteArray();
    }

    private static void write(
            WireWriter out, String key, List<KvRegion> regions, ToLongFunction<KvRegion> column) {
        out.string(key).array(regions.size());
        for (KvRegion region : regions) {
            out.integer(column.applyAsLong(region));
        }
    }

    /**
     * Reads a map.
     *
     * @param message vLLM's agent metadata
     * @return what it holds
     * @throws VllmPeerException of kind {@code MALFORMED}, naming the key
     */
    static Decoded decode(byte[] message) {
        final WireReader reader = new WireReader(message, WHAT);
        final Columns columns = new Columns();
        final int fields = reader.mapHeader("the map");
        for (int i = 0; i < fields; i++) {
            readField(reader, reader.string("a key"), columns);
        }
        reader.end();
        return new Decoded(assemble(reader, columns), columns.unknownKeys);
    }

    private static void readField(WireReader reader, String key, Columns out) {
        switch (key) {
            case "engine_id" -> out.engineId = reader.string(key);
            case "agent_metadata" -> out.agent = reader.binary(key);
            case "kv_caches_base_addr" -> out.bases = longs(reader, key);
            case "device_id" -> out.deviceId = reader.integer(key);
            case "num_blocks" -> out.blocks = reader.integer(key);
            case "block_lens" -> out.lengths = longs(reader, key);
            case "block_strides" -> out.strides = longs(reader, key);
            case "kv_cache_layout" -> out.layout = reader.string(key);
            case "block_size" -> out.blockSize = reader.integer(key);
            case "ssm_sizes" -> out.stateSizes = longs(reader, key);
            case "attn_backend_name" -> out.backend = reader.string(key);
            case "physical_blocks_per_logical_kv_block" -> out.physicalBlocks = reader.integer(key);
            case "region_num_blocks" -> out.regionBlocks = integersOrNil(reader, key);
            case "region_group_ids" -> out.groups = integersOrNil(reader, key);
            case "region_names" -> out.names = stringsOrNil(reader, key);
            case "region_mem_types" -> out.memories = stringsOrNil(reader, key);
            case "dcp_size" -> out.decodeRanks = reader.integer(key);
            case "pcp_size" -> out.prefillRanks = reader.integer(key);
            case "ple_block_len" ->
                    out.pageLength =
                            reader.tryNil(key)
                                    ? OptionalLong.empty()
                                    : OptionalLong.of(reader.longInteger(key));
            case "region_members" -> out.members = reader.list(key, () -> stringsOf(reader, key));
            case "packed_member_layouts" -> out.packed = packed(reader, key);
            default -> {
                reader.skip(key);
                out.unknownKeys++;
            }
        }
    }

    private static List<Long> longs(WireReader reader, String key) {
        return reader.list(key, () -> reader.longInteger(key));
    }

    private static List<Integer> integersOrNil(WireReader reader, String key) {
        return reader.tryNil(key) ? null : reader.list(key, () -> reader.integer(key));
    }

    private static List<String> stringsOf(WireReader reader, String key) {
        return reader.list(key, () -> reader.string(key));
    }

    private static List<String> stringsOrNil(WireReader reader, String key) {
        return reader.tryNil(key) ? null : stringsOf(reader, key);
    }

    private static Map<String, VllmCacheLayout.PackedMember> packed(WireReader reader, String key) {
        final int count = reader.mapHeader(key);
        final Map<String, VllmCacheLayout.PackedMember> members = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            final String name = reader.string(key);
            if (reader.arrayHeader(key) != 2) {
                throw reader.malformed(key + " of " + name + " is no pair", null);
            }
            members.put(
                    name,
                    new VllmCacheLayout.PackedMember(
                            reader.longInteger(key), reader.longInteger(key)));
        }
        return members;
    }

    private static VllmAgentMetadata assemble(WireReader reader, Columns columns) {
        final List<Long> bases = present(reader, "kv_caches_base_addr", columns.bases);
        final int count = bases.size();
        final int blocks = present(reader, "num_blocks", columns.blocks);
        final int device = present(reader, "device_id", columns.deviceId);
        final List<Long> lengths = column(reader, "block_lens", columns.lengths, count);
        final List<Long> strides = column(reader, "block_strides", columns.strides, count);
        final List<String> memories = column(reader, "region_mem_types", columns.memories, count);
        final List<Integer> regionBlocks =
                columnOrEmpty(reader, "region_num_blocks", columns.regionBlocks, count);
        final List<Integer> groups =
                columnOrEmpty(reader, "region_group_ids", columns.groups, count);
        final List<String> names = columnOrEmpty(reader, "region_names", columns.names, count);
        final VllmCacheLayout layout =
                new VllmCacheLayout(
                        present(reader, "kv_cache_layout", columns.layout),
                        present(reader, "block_size", columns.blockSize),
                        present(reader, "attn_backend_name", columns.backend),
                        present(
                                reader,
                                "physical_blocks_per_logical_kv_block",
                                columns.physicalBlocks),
                        columns.decodeRanks,
                        columns.prefillRanks,
                        present(reader, "ssm_sizes", columns.stateSizes),
                        columns.pageLength,
                        columns.members,
                        columns.packed);
        final String engineId = present(reader, "engine_id", columns.engineId);
        final OpaqueBytes agent = present(reader, "agent_metadata", columns.agent);
        try {
            final List<KvRegion> regions = new ArrayList<>(count);
            for (int r = 0; r < count; r++) {
                regions.add(
                        new KvRegion(
                                names.isEmpty() ? "region " + r : names.get(r),
                                groups.isEmpty() ? 0 : groups.get(r),
                                memory(reader, memories.get(r)),
                                device,
                                bases.get(r),
                                lengths.get(r),
                                strides.get(r),
                                regionBlocks.isEmpty() ? blocks : regionBlocks.get(r)));
            }
            return new VllmAgentMetadata(engineId, agent, device, blocks, regions, layout);
        } catch (IllegalArgumentException e) {
            throw reader.malformed(e.getMessage(), e);
        }
    }

    private static <T> T present(WireReader reader, String key, T value) {
        if (value == null) {
            throw reader.malformed(
                    "key "
                            + key
                            + " is missing; known are protocols "
                            + KNOWN_PROTOCOLS
                            + " of vLLM's NIXL connector",
                    null);
        }
        return value;
    }

    private static <T> List<T> column(WireReader reader, String key, List<T> values, int count) {
        return columnOrEmpty(reader, key, present(reader, key, values), count);
    }

    private static <T> List<T> columnOrEmpty(
            WireReader reader, String key, List<T> values, int count) {
        if (values == null) {
            return List.of();
        }
        if (values.size() != count) {
            throw reader.malformed(
                    key + " has " + values.size() + " entries for " + count + " regions", null);
        }
        return values;
    }

    private static String name(NixlMemory memory) {
        return switch (memory) {
            case DRAM -> "DRAM";
            case VRAM -> "VRAM";
            case BLOCK, OBJECT, FILE, UNKNOWN ->
                    throw new IllegalArgumentException(
                            "vLLM names DRAM and VRAM only, not " + memory);
        };
    }

    private static NixlMemory memory(WireReader reader, String name) {
        return switch (name) {
            case "DRAM" -> NixlMemory.DRAM;
            case "VRAM" -> NixlMemory.VRAM;
            default ->
                    throw reader.malformed(
                            "region_mem_types has " + name + "; known are DRAM and VRAM", null);
        };
    }
}
