package io.kvasir.testsupport;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The C compiler of this machine, for what tests build themselves. */
public final class Gcc {
    private static final long LIMIT_S = 60;
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    private Gcc() {}

    /**
     * What a finished program left.
     *
     * @param exit its exit code
     * @param out output and errors together
     */
    public record Result(int exit, String out) {}

    /**
     * Whether there is one; a test that needs it is skipped otherwise.
     *
     * @return whether {@code gcc --version} runs
     */
    public static boolean isInstalled() {
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

    /**
     * Compiles with all warnings as errors and {@code native/include} on the path.
     *
     * @param output the file to make
     * @param source one C file
     * @param flags further ones
     * @return {@code output}
     * @throws AssertionError if it does not compile
     */
    public static Path compile(Path output, Path source, String... flags) {
        final List<String> command = new ArrayList<>();
        command.addAll(List.of("gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror"));
        command.add("-I" + ROOT.resolve("native/include"));
        command.addAll(List.of(flags));
        command.addAll(List.of("-o", output.toString(), source.toString()));
        final Result result = run(output.getParent(), command);
        if (result.exit() != 0) {
            throw new AssertionError(command + "\n" + result.out());
        }
        return output;
    }

    /**
     * Compiles the stand-in for the CUDA driver, {@code panama-bindings/src/test/c/fake_cuda.c}.
     *
     * @param output the library to make
     * @param flags further ones
     * @return {@code output}
     * @throws AssertionError if it does not compile
     */
    public static Path compileFakeCuda(Path output, String... flags) {
        final List<String> all = new ArrayList<>(List.of("-shared", "-fPIC", "-pthread"));
        all.addAll(List.of(flags));
        return compile(
                output,
                source("panama-bindings/src/test/c/fake_cuda.c"),
                all.toArray(String[]::new));
    }

    /**
     * A file of the repository.
     *
     * @param path from its root
     * @return the file
     */
    public static Path source(String path) {
        return ROOT.resolve(path);
    }

    /**
     * Runs a program to its end.
     *
     * @param folder for its output
     * @param command program and arguments
     * @return what it left
     * @throws AssertionError if it does not end within a minute
     */
    public static Result run(Path folder, List<String> command) {
        try {
            final Path out = Files.createTempFile(folder, "run", ".txt");
            final Process process =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(out.toFile())
                            .start();
            final boolean ended = process.waitFor(LIMIT_S, TimeUnit.SECONDS);
            process.destroyForcibly().waitFor();
            if (!ended) {
                throw new AssertionError("no end after " + LIMIT_S + " s: " + command);
            }
            return new Result(process.exitValue(), Files.readString(out, StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
