package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Optional;

/** A limit of open files that is too small for the class path is one line. */
class OpenFilesTest {
    @TempDir private Path dir;

    private Optional<String> problem(int jars, String limit) throws IOException {
        final Path limits = dir.resolve("limits");
        Files.writeString(
                limits,
                """
                Limit                     Soft Limit           Hard Limit           Units
                Max processes             7                    7                    processes
                Max open files            %-20s %-20s files
                """
                        .formatted(limit, limit));
        return OpenFiles.problem(
                String.join(File.pathSeparator, Collections.nCopies(jars, "/lib/a.jar")), limits);
    }

    @ParameterizedTest
    @CsvSource({"1, 128, 129", "100, 227, 228", "1000, 1024, 1128"})
    void theLimitAndTheNumberWantedAreNamed(int jars, String limit, int wanted) throws IOException {
        assertEquals(
                "the limit of open files (ulimit -n) is "
                        + limit
                        + ", too few for the jars of the program; raise it to "
                        + wanted
                        + " or more",
                problem(jars, limit).orElseThrow());
        assertEquals(Optional.empty(), problem(jars, Integer.toString(wanted)));
    }

    @Test
    void noLimitAndAnUnknownOneAreNoProblem() throws IOException {
        assertEquals(Optional.empty(), problem(1_000, "unlimited"));
        assertEquals(Optional.empty(), OpenFiles.problem("a.jar", dir.resolve("none")));
        assertTrue(OpenFiles.problem("", OpenFiles.LIMITS).isEmpty());
    }
}
