package io.kvasir.nixl.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Group;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;

import java.util.HexFormat;
import java.util.List;

/** Records lie as the drawing says; the bytes are those that version 1 has always had. */
class PeerRecordDescriptorTest {
    private static String hex(PeerMemory memory) {
        return HexFormat.of()
                .formatHex(new PeerRecord("p-0", 17, 3, new byte[] {1, 2}, memory, "m").encode());
    }

    @Test
    void aPoolIsASiteAndGroups() {
        final KvLayout layout = KvLayout.of(List.of(new Group(Order.LAYER_MAJOR, 16, 4, 1024)));
        assertEquals(
                "4b56434401000000c796a19b010003000000702d300200080000001100000000"
                        + "000000030008000000030000000000000004000200000001020500010000006d"
                        + "0600220000000000000000002000000000000001000000011000000004000000"
                        + "0004000000000000",
                hex(new PeerMemory.Pool(layout, 8192)));
    }

    @Test
    void regionsHaveNames() {
        final KvRegion region = new KvRegion("l0", 1, NixlMemory.VRAM, 5, 4096, 100, 128, 7);
        assertEquals(
                "4b564344010000009d3884b4010003000000702d300200080000001100000000"
                        + "000000030008000000030000000000000004000200000001020500010000006d"
                        + "07002d0000000100000002006c30010000000105000000001000000000000064"
                        + "00000000000000800000000000000007000000",
                hex(new PeerMemory.Regions(List.of(region))));
    }

    @Test
    void lengthsAreThoseOfTheDrawing() {
        assertEquals(12, PeerRecordDescriptor.FIELDS_OFFSET);
        assertEquals(6, PeerRecordDescriptor.FIELD_HEADER_LENGTH);
        assertEquals(13, PeerRecordDescriptor.SITE_LENGTH);
        assertEquals(17, PeerRecordDescriptor.GROUP_LENGTH);
        assertEquals(39, PeerRecordDescriptor.REGION_LENGTH);
    }
}
