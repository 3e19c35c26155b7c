package io.kvasir.nixl.memory;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvLayout.Group;
import io.kvasir.nixl.memory.KvLayout.Order;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;

class KvLayoutTest {
    private static final long BASE = 0x10_0000;

    @Test
    void blockMajorIsOneRegionOfWholeBlocks() {
        final KvLayout layout = KvLayout.of(Order.BLOCK_MAJOR, 10, 4, 256);

        final KvRegion region = layout.regions(BASE).getFirst();

        assertEquals(1, layout.regions(BASE).size());
        assertEquals(1024, region.blockLength());
        assertEquals(BASE + 3 * 1024, region.address(3));
        assertEquals(3 * 4096, layout.bytes());
        assertArrayEquals(new int[] {7, 2}, layout.indices(0, new int[] {7, 2}, 0, 4));
    }

    @Test
    void layerMajorHasARegionForEachLayerAndEachBeginsOnAPage() {
        final KvLayout layout = KvLayout.of(Order.LAYER_MAJOR, 10, 3, 1000);

        final List<KvRegion> regions = layout.regions(KvLayout.Site.host(BASE), 0, 1, 3);

        assertEquals(
                List.of(BASE + 3 * 4096, BASE + 6 * 4096),
                regions.stream().map(KvRegion::base).toList());
        assertEquals("group 0 layer 1", regions.getFirst().name());
        assertArrayEquals(new int[] {17, 12, 27, 22}, layout.indices(0, new int[] {7, 2}, 1, 3));
    }

    @Test
    void keysAndValuesApartHasTwoForEachLayer() {
        final KvLayout layout = KvLayout.of(Order.KEYS_AND_VALUES_APART, 8, 2, 1024);

        assertEquals(
                List.of(
                        "group 0 layer 0 keys",
                        "group 0 layer 0 values",
                        "group 0 layer 1 keys",
                        "group 0 layer 1 values"),
                layout.regions(BASE).stream().map(KvRegion::name).toList());
        assertEquals(512, layout.regions(BASE).getFirst().blockLength());
        assertArrayEquals(new int[] {16 + 5, 24 + 5}, layout.indices(0, new int[] {5}, 1, 2));
    }

    @Test
    void indicesAreThoseOfTheDescriptorsOfAllGroups() {
        final KvLayout layout =
                KvLayout.of(
                        List.of(
                                new Group(Order.KEYS_AND_VALUES_APART, 6, 3, 640),
                                new Group(Order.BLOCK_MAJOR, 9, 2, 320),
                                new Group(Order.LAYER_MAJOR, 4, 5, 72)));
        final Descriptors descriptors = Descriptors.ofBlocks(layout.regions(BASE));
        for (int group = 0; group < 3; group++) {
            final Group shape = layout.groups().get(group);
            final int from = shape.order() == Order.BLOCK_MAJOR ? 0 : 1;
            final int[] blocks = {shape.blocks() - 1, 0, 2};
            final int[] indices = layout.indices(group, blocks, from, shape.layers());
            int i = 0;
            for (KvRegion region :
                    layout.regions(KvLayout.Site.host(BASE), group, from, shape.layers())) {
                assertEquals(group, region.group());
                for (int block : blocks) {
                    assertEquals(region.address(block), descriptors.address(indices[i]));
                    assertEquals(region.blockLength(), descriptors.length(indices[i++]));
                }
            }
            assertEquals(indices.length, i);
        }
    }

    @ParameterizedTest
    @EnumSource(Order.class)
    void regionsNeitherOverlapNorLeaveTheLayout(Order order) {
        final KvLayout layout =
                KvLayout.of(List.of(new Group(order, 5, 3, 1002), new Group(order, 1, 1, 2)));

        long end = BASE;
        for (KvRegion region : layout.regions(BASE)) {
            assertTrue(region.base() >= end, region.name());
            assertEquals(0, region.base() % KvLayout.PAGE);
            end = region.base() + region.length();
        }
        assertTrue(end <= BASE + layout.bytes());
    }

    @ParameterizedTest
    @CsvSource({"0, 1, 8, blocks", "1, 0, 8, layers", "1, 1, 0, layerBlockBytes", "1, 1, 7, even"})
    void whatHasNoLengthIsRefused(int blocks, int layers, long bytes, String named) {
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        KvLayout.of(
                                                Order.KEYS_AND_VALUES_APART, blocks, layers, bytes))
                        .getMessage();

        assertTrue(message.contains(named), message);
    }

    @ParameterizedTest
    @EnumSource(Order.class)
    void whatOverflowsIsRefused(Order order) {
        assertThrows(
                IllegalArgumentException.class,
                () -> KvLayout.of(order, Integer.MAX_VALUE, 1 << 20, 1L << 40));
        assertThrows(IllegalArgumentException.class, () -> KvLayout.of(order, 2, 2, 1L << 62));
        assertThrows(IllegalArgumentException.class, () -> KvLayout.of(List.of()));
    }

    @ParameterizedTest
    @CsvSource({
        "0, 10, 0, 3, 'not 10'",
        "0, -1, 0, 3, 'not -1'",
        "1, 0, 0, 3, 'groups 0..0'",
        "0, 0, 0, 4, 'layers 0..2'",
        "0, 0, 2, 2, 'layers 0..2'",
        "0, 0, -1, 2, 'layers 0..2'"
    })
    void whatDoesNotExistIsNamed(int group, int block, int from, int to, String named) {
        final KvLayout layout = KvLayout.of(Order.LAYER_MAJOR, 10, 3, 64);

        final String message =
                assertThrows(
                                IndexOutOfBoundsException.class,
                                () -> layout.indices(group, new int[] {0, block}, from, to))
                        .getMessage();

        assertTrue(message.contains(named), message);
    }

    @Test
    void someLayersOfWholeBlocksAreRefused() {
        final KvLayout layout = KvLayout.of(Order.BLOCK_MAJOR, 10, 3, 64);

        final String message =
                assertThrows(
                                IndexOutOfBoundsException.class,
                                () -> layout.indices(0, new int[] {0}, 0, 2))
                        .getMessage();

        assertTrue(message.contains("LAYER_MAJOR"), message);
    }

    @Test
    void aPoolInMemoryOfTheCallerBeginsAtItsFirstPage() {
        final KvLayout layout = KvLayout.of(Order.LAYER_MAJOR, 2, 2, 128);
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment memory =
                    arena.allocate(layout.bytes() + 2 * KvLayout.PAGE, KvLayout.PAGE).asSlice(8);

            final KvPool pool = KvPool.in(layout, memory);
            pool.close();

            assertEquals(memory.address() + KvLayout.PAGE - 8, pool.base());
            pool.block(pool.regions().getLast(), 1).fill((byte) 3); // the memory is still there
            assertEquals(4, pool.descriptors().count());
        }
    }

    @Test
    void aPoolInTooLittleMemoryIsRefused() {
        final KvLayout layout = KvLayout.of(Order.LAYER_MAJOR, 2, 2, 128);
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment memory =
                    arena.allocate(layout.bytes() + KvLayout.PAGE, KvLayout.PAGE).asSlice(1);
            final MemorySegment little = memory.asSlice(0, layout.bytes());
            final String message =
                    assertThrows(IllegalArgumentException.class, () -> KvPool.in(layout, little))
                            .getMessage();

            assertTrue(message.contains("takes 8192 bytes"), message);
        }
        final MemorySegment heap = MemorySegment.ofArray(new byte[1 << 20]);
        assertThrows(IllegalArgumentException.class, () -> KvPool.in(layout, heap));
    }
}
