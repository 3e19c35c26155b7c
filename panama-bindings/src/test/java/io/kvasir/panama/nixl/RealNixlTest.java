package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The same bindings against an installed NIXL, in a JVM of its own. */
@Tag("integration")
class RealNixlTest {
    private static final int NULL_CHECKS = 200_000;

    /** Probes, asks for plugins, starts UCX, then lives through many implicit null checks. */
    static final class Main {
        public static void main(String[] args) throws IOException {
            final NixlAvailability answer = NixlProbe.probe();
            System.out.println(answer.describe());
            if (!(answer instanceof NixlAvailability.Available available)) {
                return;
            }
            System.out.println("missing " + available.symbolsMissing());
            System.out.println("again " + NixlProbe.probe().describe().equals(answer.describe()));
            System.out.println("other copy " + probeCopyOf(available.path()).describe());
            final NixlLibrary library = available.library();
            try (NixlAgent agent = library.createAgent("probe", NixlAgentConfig.DEFAULT)) {
                System.out.println("plugins " + agent.availablePlugins());
                System.out.println("ucx " + agent.plugin("UCX"));
                System.out.println("backend " + agent.createBackend("UCX", Map.of()));
                try {
                    agent.createBackend("NO_SUCH_PLUGIN", Map.of());
                } catch (NixlException e) {
                    System.out.println("refused " + e.status().orElseThrow());
                }
            }
            System.out.println("null checks " + nullChecks());
        }

        private static NixlAvailability probeCopyOf(String path) throws IOException {
            final Path copy = Files.createTempDirectory("nixl").resolve("libnixl_capi.so");
            Files.copy(Path.of(path), copy);
            return NixlProbe.probe(
                    Map.of(NixlProbe.LIBRARY_PROPERTY, copy.toString())::get,
                    variable -> null,
                    List.of());
        }

        /** Each dereference of null is a SIGSEGV that the JVM turns into an exception. */
        private static int nullChecks() {
            int caught = 0;
            for (int i = 0; i < NULL_CHECKS; i++) {
                try {
                    caught += length(i < 0 ? "never" : null);
                } catch (NullPointerException e) {
                    caught++;
                }
            }
            return caught;
        }

        private static int length(String text) {
            return text.length();
        }
    }

    @Test
    void anInstalledNixlIsProbedAndItsUcxStartsWithoutTakingTheJvmsSignals(@TempDir Path folder)
            throws Exception {
        final String library = System.getenv(NixlProbe.LIBRARY_VARIABLE);
        final String prefix = System.getenv(NixlProbe.PREFIX_VARIABLE);
        assumeTrue(
                library != null || prefix != null,
                "skipped: no NIXL named by "
                        + NixlProbe.LIBRARY_VARIABLE
                        + " or "
                        + NixlProbe.PREFIX_VARIABLE);
        final ChildProcess.Result result =
                ChildProcess.run(
                        Main.class,
                        List.of(
                                "--enable-native-access=ALL-UNNAMED",
                                "-Djava.io.tmpdir=" + folder,
                                "-XX:-OmitStackTraceInFastThrow"),
                        Map.of("UCX_HANDLE_ERRORS", "bt", "NIXL_LOG_LEVEL", "FATAL"),
                        folder);
        System.out.print(result.out());
        assertEquals(0, result.exit(), result.out() + result.err());
        final List<String> lines = result.out().lines().toList();
        assertTrue(lines.getFirst().startsWith("NIXL "), result.out());
        assertTrue(
                prefix == null || lines.getFirst().matches("NIXL \\d+\\.\\d+\\.\\d+: .*"),
                "the wheel tells its version: " + result.out());
        assertTrue(lines.contains("again true"), result.out());
        assertTrue(
                result.out().contains("another copy of NIXL is loaded in this process: "),
                result.out());
        assertTrue(lines.contains("backend NixlBackend[UCX]"), result.out());
        assertTrue(lines.contains("refused BACKEND"), result.out());
        assertTrue(lines.contains("null checks " + NULL_CHECKS), result.out());
    }
}
