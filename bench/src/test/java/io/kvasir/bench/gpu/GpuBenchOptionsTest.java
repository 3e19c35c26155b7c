package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class GpuBenchOptionsTest {
    private static GpuBenchOptions parse(String... arguments) {
        return GpuBenchOptions.parse(List.of(arguments), variable -> null);
    }

    @Test
    void anEndOfTwoIsToldWhereTheyMeetAndWhatToMove(@TempDir Path folder) {
        final GpuBenchOptions options =
                parse("target", "--exchange", folder.toString(), "--kinds", "vram-dram,dram-vram");
        assertEquals(GpuBenchOptions.Mode.TARGET, options.mode());
        assertEquals(List.of(TransferKind.VRAM_DRAM, TransferKind.DRAM_VRAM), options.kinds());
        assertEquals(folder, options.exchange());
        assertEquals(256 << 20, options.poolBytes());
        assertEquals(100, options.limitSeconds());
    }

    @Test
    void theLimitComesFromTheEnvironmentUnlessItIsGiven() {
        final Map<String, String> environment = Map.of(GpuBenchOptions.LIMIT_VARIABLE, "33");
        final GpuBenchOptions copy =
                GpuBenchOptions.parse(List.of("copy", "--bytes", "8192"), environment::get);
        assertEquals(33, copy.limitSeconds());
        assertEquals(8192, copy.poolBytes());
        assertNull(copy.exchange());
        assertEquals(
                44,
                GpuBenchOptions.parse(List.of("copy", "--seconds", "44"), environment::get)
                        .limitSeconds());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "scopy | unknown measurement scopy",
                "copy --kinds dram-dram | copy takes no --kinds",
                "agent | --kinds is missing",
                "agent --kinds dram-disk | not dram-disk",
                "agent --kinds dram-dram,dram-dram | names dram-dram twice",
                "agent --kinds | --kinds has no value",
                "agent --kinds dram-dram --exchange /tmp | --exchange is for two processes",
                "initiator --kinds dram-dram | --exchange is missing",
                "target --kinds dram-dram --exchange /nonexistent/x | /nonexistent/x is no folder",
                "copy --bytes 17 | --bytes=17, must be 4096 to",
                "copy --seconds soon | --seconds=soon, must be 5 to 3600",
                "copy --fast yes | unknown option --fast",
            })
    void wrongArgumentsAreNamed(String arguments, String message) {
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> parse(arguments.split(" ", -1)));
        assertTrue(e.getMessage().contains(message), e.getMessage());
    }
}
