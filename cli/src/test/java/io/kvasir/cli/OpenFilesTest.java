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
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** A limit of open files that is too small for the class path is one line. */
class OpenFilesTest {
    @TempDir private Path dir;

    private Optional<String> problem(int jars, String limit) throws IOException {
        return problem(
                String.join(File.pathSeparator, Collections.nCopies(jars, "/lib/a.jar")), limit);
    }

    private Optional<String> problem(String classPath, String limit) throws IOException {
        final Path limits = dir.resolve("limits");
        Files.writeString(
                limits,
                """
                Limit                     Soft Limit           Hard Limit           Units
                Max processes             7                    7                    processes
                Max open files            %-20s %-20s files
                """
                        .formatted(limit, limit));
        return OpenFiles.problem(classPath, limits);
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
    void ofOneJarThoseThatItNamesCountAsWell() throws IOException {
        final Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        final Path jar = dir.resolve("program.jar");
        new JarOutputStream(Files.newOutputStream(jar), manifest).close();
        assertEquals(Optional.empty(), problem(jar.toString(), "129"));
        manifest.getMainAttributes().put(Attributes.Name.CLASS_PATH, "lib/a.jar lib/b.jar");
        new JarOutputStream(Files.newOutputStream(jar), manifest).close();
        assertEquals(Optional.empty(), problem(jar.toString(), "131"));
        final String refusal = problem(jar.toString(), "130").orElseThrow();
        assertTrue(refusal.contains("raise it to 131 or more"), refusal);
    }

    @Test
    void noLimitAndAnUnknownOneAreNoProblem() throws IOException {
        assertEquals(Optional.empty(), problem(1_000, "unlimited"));
        assertEquals(Optional.empty(), OpenFiles.problem("a.jar", dir.resolve("none")));
        assertTrue(OpenFiles.problem("", OpenFiles.LIMITS).isEmpty());
    }
}
