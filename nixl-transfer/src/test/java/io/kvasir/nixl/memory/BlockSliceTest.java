package io.kvasir.nixl.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;

import java.util.List;

class BlockSliceTest {
    private static final KvRegion STRIDED =
            new KvRegion("strided", 0, NixlMemory.DRAM, 3, 1 << 20, 768, 1_024, 4);
    private static final KvRegion DENSE =
            new KvRegion("dense", 1, NixlMemory.DRAM, 3, 1 << 21, 96, 96, 2);

    @Test
    void partsOfEveryBlockFollowEachOther() {
        for (int part = 0; part < 3; part++) {
            final Descriptors descriptors =
                    Descriptors.ofSlices(List.of(STRIDED, DENSE), new BlockSlice(part, 3));
            assertEquals(6, descriptors.count());
            for (int block = 0; block < 4; block++) {
                assertEquals(STRIDED.address(block) + part * 256L, descriptors.address(block));
                assertEquals(256, descriptors.length(block));
            }
            assertEquals(DENSE.address(1) + part * 32L, descriptors.address(5));
            assertEquals(32, descriptors.length(5));
            assertEquals(3, descriptors.device(5));
        }
    }

    @Test
    void theWholeIsTheOnlyPart() {
        final Descriptors descriptors = Descriptors.ofSlices(List.of(STRIDED), BlockSlice.WHOLE);
        assertEquals(STRIDED.address(2), descriptors.address(2));
        assertEquals(768, descriptors.length(2));
    }

    @Test
    void whatIsNoPartIsRefusedByName() {
        refused(() -> new BlockSlice(0, 0), "not 0");
        refused(() -> new BlockSlice(2, 2), "parts 0..1, not 2");
        refused(() -> new BlockSlice(-1, 2), "not -1");
        refused(
                () -> Descriptors.ofSlices(List.of(STRIDED), new BlockSlice(0, 5)),
                "region strided have 768 bytes: no 5 equal parts");
    }

    private static void refused(Runnable call, String part) {
        final String message = assertThrows(IllegalArgumentException.class, call::run).getMessage();
        assertTrue(message.contains(part), message);
    }
}
