package io.kvasir.bench.gpu;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.Gcc;
import io.kvasir.testsupport.NixlWheel;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Whole runs in JVMs of their own: GPU memory through the stand-ins for the driver and for NIXL in
 * one process, host memory through a real NIXL in two.
 */
@Tag("integration")
class GpuBenchTest {
    private static final int SIGTERM_EXIT = 143;

    /** Six cells each way: descriptors of 4, 16 and 64 KiB. */
    private static final long SMALL = 64 << 10;

    @TempDir private Path folder;

    private Map<String, String> environment(Path cuda, Path nixl) {
        final Map<String, String> environment = new HashMap<>();
        environment.put("KVASIR_CUDA_LIBRARY", cuda.toString());
        environment.put("KVASIR_NIXL_LIBRARY", nixl.toString());
        environment.put("NIXL_LOG_LEVEL", "FATAL");
        return environment;
    }

    private Path fakeCuda() {
        assumeTrue(Gcc.isInstalled(), "skipped: gcc cannot be started here");
        return Gcc.compileFakeCuda(folder.resolve("libfake_cuda.so"));
    }

    private static Path realNixl() {
        final NixlWheel wheel = NixlWheel.get();
        assumeTrue(wheel.isThere(), () -> "skipped: " + wheel.why());
        return wheel.library();
    }

    private Path nothing() {
        return folder.resolve("nothing.so");
    }

    private Path exchange() throws IOException {
        return Files.createDirectory(folder.resolve("exchange"));
    }

    @Test
    void copiesAreMeasuredInAllDirections() throws Exception {
        try (BenchProcess bench =
                BenchProcess.start(
                        folder,
                        environment(fakeCuda(), nothing()),
                        "copy",
                        "--bytes",
                        Long.toString(SMALL))) {
            assertEquals(0, bench.exit(), bench.text());
            assertEquals(15, bench.cells(), bench.text());
            for (String copy :
                    new String[] {
                        "h2d host=pageable",
                        "h2d host=registered",
                        "d2h host=pageable",
                        "d2h host=registered",
                        "d2d host=-"
                    }) {
                assertTrue(bench.text().contains("cell copy=" + copy + " bytes=65536 "), copy);
            }
        }
    }

    @Test
    void allKindsOfMemoryAreMovedInsideOneAgent() throws Exception {
        try (BenchProcess bench =
                BenchProcess.start(
                        folder,
                        environment(fakeCuda(), Loopback.unpack(folder)),
                        "agent",
                        "--kinds",
                        "vram-vram,vram-dram,dram-vram,dram-dram",
                        "--bytes",
                        Long.toString(SMALL))) {
            assertEquals(0, bench.exit(), bench.text());
            assertEquals(2L * 4 * Cell.sweep(SMALL).size(), bench.cells(), bench.text());
            assertTrue(
                    bench.text()
                            .contains(
                                    "cell kind=dram-vram op=WRITE length_bytes=4096"
                                            + " descriptors=16"),
                    bench.text());
        }
    }

    @Test
    void whatIsMissingIsNamedWithExitCodeThree() throws Exception {
        final Map<String, String> environment = environment(nothing(), nothing());
        try (BenchProcess copy = BenchProcess.start(folder, environment, "copy");
                BenchProcess agent =
                        BenchProcess.start(folder, environment, "agent", "--kinds", "dram-dram")) {
            assertEquals(3, copy.exit(), copy.text());
            assertTrue(
                    copy.text().startsWith("gpu-bench: needs: CUDA is not available: "),
                    copy.text());
            assertEquals(3, agent.exit(), agent.text());
            assertTrue(
                    agent.text().startsWith("gpu-bench: needs: NIXL is not available: "),
                    agent.text());
        }
    }

    @Test
    void wrongArgumentsAreNamedWithExitCodeTwo() throws Exception {
        try (BenchProcess bench = BenchProcess.start(folder, Map.of(), "agent")) {
            assertEquals(2, bench.exit(), bench.text());
            assertTrue(bench.text().startsWith("gpu-bench: --kinds is missing"), bench.text());
        }
    }

    @Test
    void aTargetThatCannotStartTellsItsInitiatorWhy() throws Exception {
        final String exchange = exchange().toString();
        final Path loopback = Loopback.unpack(folder);
        final String[] end = {"--exchange", exchange, "--kinds", "dram-vram", "--bytes", "65536"};
        try (BenchProcess target =
                        BenchProcess.start(
                                folder, environment(nothing(), loopback), with("target", end));
                BenchProcess initiator =
                        BenchProcess.start(
                                folder,
                                environment(fakeCuda(), loopback),
                                with("initiator", end))) {
            assertEquals(3, target.exit(), target.text());
            assertEquals(1, initiator.exit(), initiator.text());
            assertTrue(
                    initiator
                            .text()
                            .contains("failed: the target failed: needs: CUDA is not available"),
                    initiator.text());
        }
    }

    @Test
    void aWaitThatLastsTooLongIsEndedAndNamed() throws Exception {
        try (BenchProcess initiator =
                BenchProcess.start(
                        folder,
                        environment(nothing(), Loopback.unpack(folder)),
                        "initiator",
                        "--exchange",
                        exchange().toString(),
                        "--kinds",
                        "dram-dram",
                        "--seconds",
                        "5")) {
            assertEquals(1, initiator.exit(), initiator.text());
            assertTrue(
                    initiator.text().contains("gpu-bench: failed: no end after 4 s, in: "),
                    initiator.text());
        }
    }

    @Test
    void twoProcessesMeasureHostMemoryOverARealNixl() throws Exception {
        final Map<String, String> environment = environment(nothing(), realNixl());
        final String[] end = {
            "--exchange", exchange().toString(), "--kinds", "dram-dram", "--bytes", "65536"
        };
        try (BenchProcess target = BenchProcess.start(folder, environment, with("target", end));
                BenchProcess initiator =
                        BenchProcess.start(folder, environment, with("initiator", end))) {
            assertEquals(0, initiator.exit(), initiator.text() + target.text());
            assertEquals(2L * Cell.sweep(SMALL).size(), initiator.cells(), initiator.text());
            target.terminate();
            assertEquals(SIGTERM_EXIT, target.exit(), target.text());
            assertTrue(!target.text().contains("gpu-bench"), target.text());
        }
    }

    @Test
    void aKilledTargetEndsTheInitiatorWithWhatFailed() throws Exception {
        final Map<String, String> environment = environment(nothing(), realNixl());
        final String[] end = {"--exchange", exchange().toString(), "--kinds", "dram-dram"};
        try (BenchProcess target = BenchProcess.start(folder, environment, with("target", end));
                BenchProcess initiator =
                        BenchProcess.start(folder, environment, with("initiator", end))) {
            initiator.awaitLine("cell ");
            target.kill();
            assertEquals(1, initiator.exit(), initiator.text());
            assertTrue(
                    initiator.text().contains("gpu-bench: failed: the target, process ")
                            || initiator.text().contains("as it does when the peer is gone"),
                    initiator.text());
        }
    }

    private static String[] with(String mode, String... end) {
        final String[] all = new String[end.length + 1];
        all[0] = mode;
        System.arraycopy(end, 0, all, 1, end.length);
        return all;
    }
}
