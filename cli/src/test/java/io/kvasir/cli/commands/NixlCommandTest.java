package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.Kvasir;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlProbe;
import io.kvasir.testsupport.NixlWheel;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

@Tag("integration")
class NixlCommandTest {
    @Test
    void sharedMemoryIsMeasuredWithoutNixl() throws Exception {
        final CommandRun run =
                CommandRun.of(
                        "nixl",
                        "bench",
                        "--transport",
                        "loopback",
                        "--block-bytes",
                        "16384,65536",
                        "--blocks",
                        "1,16",
                        "--millis",
                        "20",
                        "--json");
        assertEquals(ExitCode.OK, run.exitCode(), run.err());
        final JsonNode root = Json.MAPPER.readTree(run.out());
        assertEquals("loopback", root.path("transport").asText());
        assertEquals("read", root.path("operation").asText());
        assertEquals(4, root.path("sizes").size());
        for (JsonNode size : root.path("sizes")) {
            assertTrue(size.path("requests").asLong() >= 3, size.toString());
            assertTrue(size.path("gb_per_s").asDouble() > 0, size.toString());
        }
    }

    @Test
    void theTableNamesTransportAndSizes() {
        final CommandRun run =
                CommandRun.of(
                        "nixl",
                        "bench",
                        "--transport",
                        "loopback",
                        "--operation",
                        "write",
                        "--block-bytes",
                        "16384",
                        "--blocks",
                        "8",
                        "--millis",
                        "5");
        assertEquals(ExitCode.OK, run.exitCode(), run.err());
        assertTrue(run.out().startsWith("loopback write"), run.out());
        assertTrue(run.out().contains("16384 B"), run.out());
    }

    @Test
    void withoutNixlTheDoctorSaysWhatIsMissing() throws Exception {
        assumeTrue(
                !(NixlProbe.probe() instanceof Available),
                "skipped: NIXL is installed: " + NixlProbe.probe().describe());
        final CommandRun run = CommandRun.of("nixl", "doctor");
        assertEquals(ExitCode.NEGATIVE, run.exitCode(), run.err());
        assertTrue(run.out().startsWith("nixl      NIXL is not available: "), run.out());
        assertTrue(run.out().contains("pip install"), run.out());
        assertTrue(run.out().contains("looked at "), run.out());
        assertTrue(run.out().contains("cuda      "), run.out());
        assertTrue(run.out().contains("transfer  loopback: pulling 64 blocks"), run.out());
        final JsonNode root =
                Json.MAPPER.readTree(
                        CommandRun.of("nixl", "doctor", "--no-transfer", "--json").out());
        assertEquals(false, root.at("/nixl/usable").asBoolean());
        assertTrue(!root.at("/nixl/attempts").isEmpty(), root.toString());
    }

    @Test
    void numbersBelowOneAreAWrongCommandLine() {
        assertEquals(ExitCode.USAGE, CommandRun.of("nixl", "bench", "--blocks", "0").exitCode());
        assertEquals(ExitCode.USAGE, CommandRun.of("nixl").exitCode());
    }

    @Test
    void withNixlTheDoctorNamesBackendsLanesAndSpeed(@TempDir Path folder) throws Exception {
        final NixlWheel wheel = NixlWheel.get();
        assumeTrue(wheel.isThere(), "skipped: no NIXL: " + wheel.why());
        final Path out = folder.resolve("out.json");
        final ProcessBuilder builder =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                Kvasir.class.getName(),
                                "nixl",
                                "doctor",
                                "--json")
                        .redirectOutput(out.toFile())
                        .redirectError(ProcessBuilder.Redirect.DISCARD);
        builder.environment().put(NixlProbe.LIBRARY_VARIABLE, wheel.library().toString());
        final Process process = builder.start();
        assertTrue(process.waitFor(120, TimeUnit.SECONDS), "no end after 120 s");
        final JsonNode root = Json.MAPPER.readTree(out.toFile());
        assertEquals(ExitCode.OK, process.exitValue(), root.toString());
        assertTrue(root.at("/nixl/usable").asBoolean(), root.toString());
        assertTrue(root.at("/backends/UCX").asText().startsWith("opens"), root.toString());
        assertTrue(!root.at("/backends/GDS").asText().startsWith("opens"), root.toString());
        assertTrue(!root.at("/transfer/lanes").isEmpty(), root.toString());
        assertTrue(root.at("/transfer/gb_per_s").asDouble() > 0, root.toString());
    }
}
