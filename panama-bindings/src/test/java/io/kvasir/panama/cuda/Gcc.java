package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The C compiler of this machine, for what the tests build themselves. */
final class Gcc {
    private static final long LIMIT_S = 60;
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    private Gcc() {}

    /** What a finished program left; output and errors together. */
    record Result(int exit, String out) {}

    /** Compiles and expects success; ends the test as skipped where there is no gcc. */
    static Path compile(Path output, Path source, String... flags) {
        assumeTrue(isInstalled(), "skipped: gcc cannot be started here");
        final List<String> command = new ArrayList<>();
        command.addAll(List.of("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror"));
        command.add("-I" + ROOT.resolve("native/include"));
        command.addAll(List.of(flags));
        command.addAll(List.of("-o", output.toString(), source.toString()));
        final Result result = run(output.getParent(), command);
        assertTrue(result.exit() == 0, () -> command + "\n" + result.out());
        return output;
    }

    /** A file of the repository. */
    static Path source(String path) {
        return ROOT.resolve(path);
    }

    private static boolean isInstalled() {
        try {
            final Process process =
                    new ProcessBuilder("gcc", "--version")
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .redirectError(ProcessBuilder.Redirect.DISCARD)
                            .start();
            return process.waitFor(LIMIT_S, TimeUnit.SECONDS) && process.exitValue() == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    static Result run(Path folder, List<String> command) {
        try {
            final Path out = Files.createTempFile(folder, "run", ".txt");
            final Process process =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(out.toFile())
                            .start();
            final boolean ended = process.waitFor(LIMIT_S, TimeUnit.SECONDS);
            process.destroyForcibly().waitFor();
            assertTrue(ended, () -> "no end after " + LIMIT_S + " s: " + command);
            return new Result(process.exitValue(), Files.readString(out, StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
