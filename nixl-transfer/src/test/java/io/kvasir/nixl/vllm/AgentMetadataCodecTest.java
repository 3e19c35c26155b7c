package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.value.ImmutableMapValue;
import org.msgpack.value.Value;
import org.msgpack.value.ValueFactory;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Random;

class AgentMetadataCodecTest {
    private static byte[] recorded() {
        return Golden.answer().metadata().toArray();
    }

    /** The recorded map with one key changed; null removes it. */
    private static byte[] with(String key, Value value) throws IOException {
        final ImmutableMapValue map =
                MessagePack.newDefaultUnpacker(recorded()).unpackValue().asMapValue();
        final Map<Value, Value> fields = new LinkedHashMap<>(map.map());
        if (value == null) {
            fields.remove(ValueFactory.newString(key));
        } else {
            fields.put(ValueFactory.newString(key), value);
        }
        try (MessageBufferPacker packer = MessagePack.newDefaultBufferPacker()) {
            packer.packValue(ValueFactory.newMap(fields));
            return packer.toByteArray();
        }
    }

    @Test
    void aRecordedServerIsReadFieldByField() {
        final AgentMetadataCodec.Decoded decoded = AgentMetadataCodec.decode(recorded());
        final VllmAgentMetadata metadata = decoded.metadata();
        assertEquals(0, decoded.unknownKeys());
        assertEquals("5a4df294-8d02-426b-967e-f1b6cf609ca7", metadata.engineId());
        assertEquals(457, metadata.agent().length());
        assertEquals(0, metadata.deviceId());
        assertEquals(64, metadata.blocks());
        assertEquals(
                List.of(
                        new KvRegion(
                                "model.layers.0.self_attn.attn",
                                0,
                                NixlMemory.DRAM,
                                0,
                                94_412_226_307_968L,
                                8_192,
                                8_192,
                                64),
                        new KvRegion(
                                "model.layers.1.self_attn.attn",
                                0,
                                NixlMemory.DRAM,
                                0,
                                94_412_226_832_256L,
                                8_192,
                                8_192,
                                64)),
                metadata.regions());
        assertEquals(VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN"), metadata.layout());
    }

    @Test
    void aRecordedServerIsWrittenByteForByte() {
        final byte[] message = recorded();
        assertArrayEquals(message, AgentMetadataCodec.decode(message).metadata().encode());
    }

    @Test
    void everyFieldSurvivesARoundTrip() {
        final VllmCacheLayout layout =
                new VllmCacheLayout(
                        "BLHNC",
                        16,
                        "FLASH_ATTN",
                        4,
                        2,
                        3,
                        List.of(512L, 1L << 33),
                        OptionalLong.of(77),
                        List.of(List.of("a", "b"), List.of()),
                        Map.of("m", new VllmCacheLayout.PackedMember(128, 64)));
        final VllmAgentMetadata metadata =
                new VllmAgentMetadata(
                        "engine",
                        OpaqueBytes.of(new byte[70_000]),
                        3,
                        9,
                        List.of(
                                new KvRegion("r0", 0, NixlMemory.VRAM, 3, 1L << 46, 5, 8, 9),
                                new KvRegion("r1", 2, NixlMemory.VRAM, 3, 1L << 47, 6, 6, 100)),
                        layout);
        assertEquals(metadata, AgentMetadataCodec.decode(metadata.encode()).metadata());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "engine_id",
                "agent_metadata",
                "kv_caches_base_addr",
                "device_id",
                "num_blocks",
                "block_lens",
                "block_strides",
                "kv_cache_layout",
                "block_size",
                "ssm_sizes",
                "attn_backend_name",
                "physical_blocks_per_logical_kv_block",
                "region_mem_types"
            })
    void aMissingKeyIsNamedTogetherWithTheKnownProtocols(String key) throws IOException {
        final byte[] message = with(key, null);
        refused(
                VllmPeerException.Kind.MALFORMED,
                () -> AgentMetadataCodec.decode(message),
                "key " + key + " is missing",
                "protocols 11 to 14");
    }

    @Test
    void optionalColumnsHaveDefaults() throws IOException {
        for (String key : List.of("region_num_blocks", "region_group_ids", "region_names")) {
            for (Value absent : Arrays.asList(null, ValueFactory.newNil())) {
                final VllmAgentMetadata metadata =
                        AgentMetadataCodec.decode(with(key, absent)).metadata();
                assertEquals(64, metadata.regions().get(1).blocks());
                assertEquals(0, metadata.regions().get(1).group());
                assertEquals(
                        key.equals("region_names") ? "region 1" : "model.layers.1.self_attn.attn",
                        metadata.regions().get(1).name());
            }
        }
    }

    @Test
    void unknownKeysAreSkippedAndCounted() throws IOException {
        final Value nested =
                ValueFactory.newArray(ValueFactory.emptyMap(), ValueFactory.newString("x"));
        final AgentMetadataCodec.Decoded decoded =
                AgentMetadataCodec.decode(with("of_a_later_version", nested));
        assertEquals(1, decoded.unknownKeys());
        assertEquals(AgentMetadataCodec.decode(recorded()).metadata(), decoded.metadata());
    }

    @Test
    void columnsOfAnotherLengthAndUnknownMemoryAreRefused() throws IOException {
        final byte[] columns =
                with("block_lens", ValueFactory.newArray(ValueFactory.newInteger(1)));
        refused(
                VllmPeerException.Kind.MALFORMED,
                () -> AgentMetadataCodec.decode(columns),
                "block_lens has 1 entries for 2 regions");
        final Value tape = ValueFactory.newString("TAPE");
        final byte[] memory = with("region_mem_types", ValueFactory.newArray(tape, tape));
        refused(
                VllmPeerException.Kind.MALFORMED,
                () -> AgentMetadataCodec.decode(memory),
                "TAPE",
                "DRAM and VRAM");
        final Value zero = ValueFactory.newInteger(0);
        final byte[] lengths = with("block_lens", ValueFactory.newArray(zero, zero));
        refused(
                VllmPeerException.Kind.MALFORMED,
                () -> AgentMetadataCodec.decode(lengths),
                "blockLength cannot be 0");
    }

    @Test
    void anAgentHasOneDeviceAndARegion() {
        final KvRegion first = Golden.region("r0", 0, 4_096, 2);
        assertThrows(IllegalArgumentException.class, () -> Golden.metadata("engine"));
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        Golden.metadata(
                                "engine",
                                first,
                                new KvRegion("r1", 0, NixlMemory.VRAM, 1, 4_096, 1, 1, 1)));
    }

    @Test
    void damagedMessagesAreMalformedAndNothingElse() {
        final long seed = Long.getLong("seed", 20_261_121L);
        final Random random = new Random(seed);
        final byte[] message = recorded();
        for (int i = 0; i < 50_000; i++) {
            final byte[] damaged = Arrays.copyOf(message, random.nextInt(message.length + 1));
            for (int hits = random.nextInt(8); hits > 0 && damaged.length > 0; hits--) {
                damaged[random.nextInt(damaged.length)] = (byte) random.nextInt();
            }
            try {
                AgentMetadataCodec.decode(damaged);
            } catch (VllmPeerException e) {
                assertEquals(VllmPeerException.Kind.MALFORMED, e.kind(), "seed " + seed);
            }
        }
    }
}
