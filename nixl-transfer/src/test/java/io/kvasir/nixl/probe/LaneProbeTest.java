package io.kvasir.nixl.probe;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Set;

class LaneProbeTest {
    @Test
    void lanesAreReadFromUcxTables() {
        final String tables =
                """
                [1.2] [h:1 :0]  +--------+---------------------+
                [1.2] [h:1 :0]  | 0..inf | zero-copy | cma/memory |
                [1.2] [h:1 :0]  | 0..8256 | short | tcp/lo |
                """;
        final String result = "a plugin's words\nresult\t2.5\t7.0\n";
        final LaneProbe.Lanes lanes = LaneProbe.read(TransferEnd.Kind.NIXL, result, tables);
        assertEquals(Set.of("cma/memory", "tcp/lo"), lanes.lanes());
        assertEquals(2.5, lanes.gbPerSecond());
        assertEquals(7, lanes.p50Us());
    }

    @Test
    void aResultThatIsNoneIsAFailureWithItsText() {
        final LaneProbe.Lanes lanes = LaneProbe.read(TransferEnd.Kind.NIXL, "no line of ours", "");
        assertEquals("the measurement failed: no result: no line of ours", lanes.describe());
    }

    @Tag("integration") // starts a JVM
    @Test
    void anotherProcessIsMeasuredOverSharedMemory() throws IOException {
        final LaneProbe.Lanes lanes = LaneProbe.measure(TransferEnd.Kind.LOOPBACK);
        assertEquals("", lanes.failure());
        assertEquals("loopback", lanes.transport());
        assertTrue(lanes.gbPerSecond() > 0 && lanes.p50Us() > 0, lanes.describe());
    }
}
