package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Scripts refuse wrong arguments with one line and exit code 2, before they make anything. */
class ScriptArgumentsTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    @TempDir private Path elsewhere;

    @ParameterizedTest
    @CsvSource({
        "cli/src/test/real-engines/install-vllm.sh, , usage: install-vllm.sh DIR",
        "cli/src/test/real-engines/install-vllm.sh, --help, usage: install-vllm.sh DIR",
        "cli/src/test/real-engines/install-vllm.sh, a b, usage: install-vllm.sh DIR",
        "cli/src/test/real-engines/install-sglang.sh, , usage: install-sglang.sh DIR",
        "cli/src/test/real-engines/install-sglang.sh, --help, usage: install-sglang.sh DIR",
        "cli/src/test/real-engines/install-sglang.sh, a b, usage: install-sglang.sh DIR",
        ".ci/run, --help, usage: .ci/run",
        "bench/run, events many, bench: events takes whole numbers from 1",
        "bench/run, events 1 0, bench: events takes whole numbers from 1",
        "nixl-transfer/gpu/run.sh, --nonsense, gpu: unknown option --nonsense"
    })
    void wrongArgumentsAreRefused(String script, String argumentsOrNull, String said)
            throws IOException, InterruptedException {
        final List<String> words = new ArrayList<>(List.of(ROOT.resolve(script).toString()));
        if (argumentsOrNull != null) {
            words.addAll(List.of(argumentsOrNull.split(" ", -1)));
        }
        final Process process =
                new ProcessBuilder(words)
                        .directory(elsewhere.toFile())
                        .redirectErrorStream(true)
                        .start();
        final String out =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(2, process.waitFor(), out);
        assertTrue(out.startsWith(said), out);
        assertEquals(1, out.lines().count(), out);
        try (var files = Files.list(elsewhere)) {
            assertEquals(List.of(), files.toList());
        }
    }
}
