package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.panama.nixl.NixlProbe;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

class TransferSweepTest {
    private static final Set<NixlMemory> HOST = EnumSet.of(NixlMemory.DRAM);
    private static final long POOL_BYTES = 16 << 10;
    private static final long HOUR = 3_600_000_000_000L;

    @TempDir private Path folder;
    private final ByteArrayOutputStream lines = new ByteArrayOutputStream();

    @BeforeEach
    void nameTheLibrary() throws IOException {
        System.setProperty(NixlProbe.LIBRARY_PROPERTY, Loopback.unpack(folder).toString());
    }

    @AfterEach
    void forgetTheLibrary() {
        System.clearProperty(NixlProbe.LIBRARY_PROPERTY);
    }

    /** Has not what it was asked to have, from the second transfer on. */
    private record WrongFarEnd(OwnRemoteSide right) implements RemoteSide {
        @Override
        public String name() {
            return right.name();
        }

        @Override
        public PoolRange range(NixlMemory memory) {
            return right.range(memory);
        }

        @Override
        public void fill(NixlMemory memory, Cell cell, long seed) {
            right.fill(memory, cell, Math.min(seed, 1));
        }

        @Override
        public void verify(NixlMemory memory, Cell cell, long seed) {
            right.verify(memory, cell, seed);
        }
    }

    private void sweep(long nanos, boolean right) {
        try (Pools near = new Pools(HOST, null, POOL_BYTES);
                Pools far = new Pools(HOST, null, POOL_BYTES);
                NixlEnd end =
                        NixlEnd.open(
                                "test",
                                List.of(near.of(NixlMemory.DRAM), far.of(NixlMemory.DRAM)))) {
            final OwnRemoteSide own = new OwnRemoteSide(end.name(), far);
            new TransferSweep(
                            end,
                            near,
                            right ? own : new WrongFarEnd(own),
                            null,
                            POOL_BYTES,
                            new TimeBudget(nanos),
                            Watchdog.start(Duration.ofNanos(HOUR)))
                    .run(
                            List.of(TransferKind.DRAM_DRAM),
                            new PrintStream(lines, true, StandardCharsets.UTF_8));
        }
    }

    private List<String> cells() {
        return lines.toString(StandardCharsets.UTF_8)
                .lines()
                .filter(line -> line.startsWith("cell "))
                .toList();
    }

    @Test
    void everyCellIsMeasuredBothWays() {
        sweep(HOUR, true);
        assertEquals(6, cells().size());
        assertTrue(
                cells().getLast()
                        .startsWith(
                                "cell kind=dram-dram op=WRITE length_bytes=16384 descriptors=1"
                                        + " repeats=100 "),
                cells().getLast());
    }

    @Test
    void aWrongTransferEndsTheSweepBeforeItsLineIsPrinted() {
        final BenchFailure e = assertThrows(BenchFailure.class, () -> sweep(HOUR, false));
        assertTrue(e.getMessage().startsWith("wrong bytes in DRAM at offset 0"), e.getMessage());
        assertEquals(1, cells().size());
    }

    @Test
    void whatTheTimeDoesNotReachForIsCountedAsLeftOut() {
        sweep(0, true);
        assertEquals(0, cells().size());
        assertTrue(
                lines.toString(StandardCharsets.UTF_8)
                        .contains("left out 6 cells: the time was up"),
                lines.toString(StandardCharsets.UTF_8));
    }
}
