package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Map;
import java.util.Optional;

/** What the two ends say to each other. */
class MessagesTest {
    @Test
    void aMessageIsTakenOnce(@TempDir Path folder) {
        final Exchange exchange = new Exchange(folder);
        assertEquals(Optional.empty(), exchange.poll("a"));
        exchange.put("a", "text");
        assertEquals(Optional.of("text"), new Exchange(folder).poll("a"));
        assertEquals(Optional.empty(), exchange.poll("a"));
    }

    @Test
    void anIntroductionReadsAsItWasWritten() {
        final TargetInfo introduction =
                new TargetInfo(
                        12,
                        "00ff",
                        Map.of(
                                NixlMemory.DRAM, new PoolRange(4096, 8192, 0),
                                NixlMemory.VRAM, new PoolRange(1L << 47, 8192, 1)));
        assertEquals(introduction, TargetInfo.parse(introduction.text()));
        assertEquals((byte) 0xff, introduction.metadataBytes()[1]);
    }

    @Test
    void anIntroductionThatIsCutShortOrForeignIsRefused() {
        assertThrows(BenchFailure.class, () -> TargetInfo.parse("pid 3"));
        assertThrows(BenchFailure.class, () -> TargetInfo.parse("hello"));
    }

    @Test
    void anErrandReadsAsItWasWritten() {
        final TargetCommand errand =
                new TargetCommand(
                        TargetCommand.Task.VERIFY, NixlMemory.VRAM, new Cell(4096, 64), 9);
        assertEquals(errand, TargetCommand.parse(errand.text()));
    }

    @Test
    void anErrandBeyondThePoolIsRefused() {
        try (Pools pools = new Pools(EnumSet.of(NixlMemory.DRAM), null, 4096)) {
            final TargetCommand errand =
                    new TargetCommand(
                            TargetCommand.Task.FILL, NixlMemory.DRAM, new Cell(4096, 2), 1);
            final BenchFailure e = assertThrows(BenchFailure.class, () -> errand.run(pools));
            assertTrue(e.getMessage().contains("8192 bytes are more"), e.getMessage());
            final TargetCommand elsewhere =
                    new TargetCommand(
                            TargetCommand.Task.FILL, NixlMemory.VRAM, new Cell(4096, 1), 1);
            assertThrows(BenchFailure.class, () -> elsewhere.run(pools));
        }
    }
}
