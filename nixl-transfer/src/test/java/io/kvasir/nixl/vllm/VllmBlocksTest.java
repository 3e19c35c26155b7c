package io.kvasir.nixl.vllm;

import static io.kvasir.nixl.vllm.Refusals.refused;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.nixl.memory.BlockSlice;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.protocol.handoff.RemoteBlocks;

import org.junit.jupiter.api.Test;

import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

class VllmBlocksTest {
    private static final KvRegion A = Golden.region("a", 0, 1 << 20, 10);
    private static final KvRegion B = Golden.region("b", 1, 1 << 21, 4);
    private static final KvRegion C = Golden.region("c", 0, 1 << 22, 10);

    private static RemoteBlocks blocks(List<List<Integer>> groups) {
        return new RemoteBlocks(groups, true);
    }

    private static VllmAgent agent(VllmCacheLayout layout, KvRegion... regions) {
        return Golden.agentOf(
                VllmAgentMetadata.of("engine", new byte[0], List.of(regions), layout), "hash");
    }

    @Test
    void indicesPointAtTheBlocksOfTheRecordedServer() {
        final VllmAgent agent = Golden.agent();
        final VllmBlocks blocks = VllmBlocks.of(agent);
        final Descriptors list = blocks.descriptors(BlockSlice.WHOLE);
        final RemoteBlocks held = Golden.params().remoteBlocks().orElseThrow();
        final int[] indices = blocks.indices("r", held);
        assertEquals(16, indices.length);
        for (int i = 0; i < indices.length; i++) {
            final KvRegion region = agent.metadata().regions().get(i / 8);
            assertEquals(region.base() + 8_192L * (1 + i % 8), list.address(indices[i]));
            assertEquals(8_192, list.length(indices[i]));
        }
    }

    @Test
    void eachRegionTakesTheBlocksOfItsGroup() {
        final VllmBlocks blocks = VllmBlocks.of(List.of(A, B, C));
        final RemoteBlocks held = blocks(List.of(List.of(9, 2), List.of(3)));
        assertArrayEquals(new int[] {9, 2, 13, 23, 16}, blocks.indices("r", held));
        assertArrayEquals(new int[] {13}, blocks.indices("r", held, 1, 2));
        assertArrayEquals(new int[] {13, 23, 16}, blocks.indices("r", held, 1, 3));
        assertArrayEquals(new int[0], blocks.indices("r", held, 3, 3));
        final Descriptors list = blocks.descriptors(BlockSlice.WHOLE);
        assertEquals(C.address(9), list.address(23));
        assertEquals(B.address(3), list.address(13));
    }

    @Test
    void blocksOutOfRangeAreRefusedByName() {
        final VllmBlocks blocks = VllmBlocks.of(List.of(A, B, C));
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> blocks.indices("req-7", blocks(List.of(List.of(1), List.of(4)))),
                "request req-7",
                "block 4 of group 1",
                "region b has blocks 0..3");
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> blocks.indices("req-7", blocks(List.of(List.of(-1), List.of(1)))),
                "block -1 of group 0");
        refused(
                VllmPeerException.Kind.BAD_BLOCKS,
                () -> blocks.indices("req-7", blocks(List.of(List.of(1)))),
                "1 groups, the cache has 2");
        assertThrows(
                IndexOutOfBoundsException.class,
                () -> blocks.indices("r", blocks(List.of(List.of(), List.of())), 1, 4));
    }

    @Test
    void layoutsThatWouldBeReadWronglyAreRefused() {
        final Map<String, VllmCacheLayout.PackedMember> packed =
                Map.of("m", new VllmCacheLayout.PackedMember(0, 1));
        refusedLayout(2, 1, 1, List.of(0L), OptionalLong.empty(), Map.of(), "physical_blocks");
        refusedLayout(1, 2, 1, List.of(0L), OptionalLong.empty(), Map.of(), "dcp_size=2");
        refusedLayout(1, 1, 2, List.of(0L), OptionalLong.empty(), Map.of(), "pcp_size=2");
        refusedLayout(1, 1, 1, List.of(0L, 8L), OptionalLong.empty(), Map.of(), "ssm_sizes");
        refusedLayout(1, 1, 1, List.of(), OptionalLong.of(4), Map.of(), "ple_block_len=4");
        refusedLayout(1, 1, 1, List.of(), OptionalLong.empty(), packed, "packed_member_layouts");
    }

    private static void refusedLayout(
            int physical,
            int decodeRanks,
            int prefillRanks,
            List<Long> states,
            OptionalLong page,
            Map<String, VllmCacheLayout.PackedMember> packed,
            String named) {
        final VllmCacheLayout layout =
                new VllmCacheLayout(
                        "L",
                        16,
                        "B",
                        physical,
                        decodeRanks,
                        prefillRanks,
                        states,
                        page,
                        List.of(),
                        packed);
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> VllmBlocks.of(agent(layout, A)),
                named,
                "supported is");
    }

    @Test
    void mixedMemoryAndEndlessListsAreRefused() {
        final VllmCacheLayout layout = VllmCacheLayout.plain("L", 16, "B");
        final KvRegion gpu = new KvRegion("g", 0, NixlMemory.VRAM, 0, 4_096, 1, 1, 1);
        refused(
                VllmPeerException.Kind.UNSUPPORTED,
                () -> VllmBlocks.of(agent(layout, A, gpu)),
                "region a in DRAM",
                "region g in VRAM");
        final KvRegion endless =
                new KvRegion("x", 0, NixlMemory.DRAM, 0, 4_096, 1, 1, VllmBlocks.MAX_DESCRIPTORS);
        refused(
                VllmPeerException.Kind.CAPACITY,
                () -> VllmBlocks.of(agent(layout, A, endless)),
                "engine announces",
                Integer.toString(VllmBlocks.MAX_DESCRIPTORS));
    }
}
