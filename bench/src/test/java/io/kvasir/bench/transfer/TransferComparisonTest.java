package io.kvasir.bench.transfer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

@Tag("integration") // starts processes
class TransferComparisonTest {
    private static final Path COMPILER = Path.of("/usr/bin/cc");
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    @TempDir private Path folder;

    private Path baseline() throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(COMPILER), "skipped: no C compiler: " + COMPILER);
        final Path program = folder.resolve("libnixl_baseline.so");
        final int exitCode =
                new ProcessBuilder(
                                COMPILER.toString(),
                                "-std=c11",
                                "-O2",
                                "-Wall",
                                "-Wextra",
                                "-Wpedantic",
                                "-Werror",
                                "-shared",
                                "-fPIC",
                                "-I" + ROOT.resolve("native/src/main/c"),
                                ROOT.resolve("bench/src/main/c/nixl_baseline.c").toString(),
                                "-ldl",
                                "-o",
                                program.toString())
                        .inheritIO()
                        .start()
                        .waitFor();
        assertEquals(0, exitCode, "nixl_baseline.c does not compile");
        return program;
    }

    @Test
    void bothSidesMeasureTheSameCallsAndSizes() throws Exception {
        final Path library = LoopbackLibrary.unpack(folder);
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        TransferComparison.measure(
                baseline().toString(),
                library.toString(),
                false,
                new TransferComparison.Extent(1, 1, 3, 1 << 16, 1 << 18),
                new PrintStream(out, true, StandardCharsets.UTF_8));
        final List<String> lines = out.toString(StandardCharsets.UTF_8).lines().toList();
        assertTrue(lines.getFirst().startsWith(library + ", 1 turns"), lines.getFirst());
        final List<String> calls =
                List.of(
                        "prepare_a_descriptor",
                        "make_1",
                        "make_16",
                        "make_64",
                        "make_256",
                        "make_1_notified",
                        "release",
                        "post_64_B",
                        "notifications_none",
                        "status_done",
                        "status_running");
        assertEquals("TRANSFERS", names(lines).get(1));
        assertEquals(calls, names(lines.subList(2, 13)));
        assertEquals("COPYING", names(lines).get(14));
        assertEquals(calls, names(lines.subList(15, 26)));
        assertEquals("TRANSPORT", names(lines).get(27));
        assertEquals(calls, names(lines.subList(28, 39)));
        assertEquals(
                List.of("1 x 4096", "64 x 4096", "1 x 16384", "1 x 65536", "1 x 131072"),
                lines.subList(41, lines.size() - 1).stream()
                        .map(line -> line.substring(0, 16).strip())
                        .toList());
        for (String line : lines) {
            assertFalse(line.contains("NaN") || line.contains(" - "), line);
        }
    }

    private static List<String> names(List<String> lines) {
        return lines.stream().map(line -> line.split(" ", -1)[0]).toList();
    }
}
