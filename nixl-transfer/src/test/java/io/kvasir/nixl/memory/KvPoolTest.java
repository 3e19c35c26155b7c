package io.kvasir.nixl.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;

class KvPoolTest {
    private static final KvLayout LAYOUT = KvLayout.of(KvLayout.Order.LAYER_MAJOR, 4, 2, 256);
    private static final long ROOM = LAYOUT.bytes() + KvLayout.PAGE;

    @Test
    void memoryKnownByItsAddressIsAPool() {
        final ByteBuffer buffer =
                ByteBuffer.allocateDirect((int) ROOM).order(ByteOrder.nativeOrder());
        final long address = MemorySegment.ofBuffer(buffer).address();

        final KvPool pool = KvPool.at(LAYOUT, address, buffer.capacity());

        final KvRegion region = pool.regions().get(1);
        buffer.putLong((int) (region.address(3) - address), 42);
        assertEquals(42, pool.block(region, 3).get(ValueLayout.JAVA_LONG, 0));
        assertEquals(0, pool.base() % KvLayout.PAGE);
        assertEquals(KvLayout.Site.host(pool.base()), pool.site());
    }

    @Test
    void aMappedFileIsAPool(@TempDir Path folder) throws IOException {
        try (FileChannel file =
                        FileChannel.open(
                                folder.resolve("pool"),
                                StandardOpenOption.CREATE,
                                StandardOpenOption.READ,
                                StandardOpenOption.WRITE);
                Arena arena = Arena.ofConfined()) {
            final MemorySegment memory =
                    file.map(FileChannel.MapMode.READ_WRITE, 0, LAYOUT.bytes(), arena);
            final KvPool pool = KvPool.in(LAYOUT, memory);
            pool.block(pool.regions().getFirst(), 0).fill((byte) 7);
            assertEquals(memory.address(), pool.base());
            assertEquals(7, memory.get(ValueLayout.JAVA_BYTE, 255));
        }
    }

    @Test
    void tooLittleMemoryIsRefusedWithBothSizes() {
        final long length = LAYOUT.bytes() - 1;
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> KvPool.at(LAYOUT, KvLayout.PAGE, length))
                        .getMessage();
        assertTrue(message.contains("takes " + LAYOUT.bytes()), message);
        assertTrue(message.contains("given: " + length), message);
    }

    @Test
    void aPeersPoolOnAGpuHasItsKindOfMemoryAndDevice() {
        final KvLayout.Site site = new KvLayout.Site(NixlMemory.VRAM, 3, 1 << 21);
        final List<KvRegion> regions = LAYOUT.regions(site);
        assertEquals(2, regions.size());
        for (KvRegion region : regions) {
            assertEquals(NixlMemory.VRAM, region.memory());
            assertEquals(3, region.device());
        }
        assertEquals(1 << 21, regions.getFirst().base());
        assertEquals(NixlMemory.VRAM, Descriptors.ofBlocks(regions).memory());
        assertEquals(regions.subList(1, 2), LAYOUT.regions(site, 0, 1, 2));
    }
}
