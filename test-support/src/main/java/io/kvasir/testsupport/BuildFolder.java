package io.kvasir.testsupport;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Where parts of tests are installed once for all modules. */
final class BuildFolder {
    /** The Python that installs and runs. */
    static final String PYTHON = "python3";

    private static final int INSTALL_SECONDS = 240;

    private BuildFolder() {}

    /** The target folder of the outermost module. */
    static Path get() throws IOException {
        Path folder = Path.of("").toAbsolutePath();
        while (folder.getParent() != null && Files.exists(folder.resolveSibling("pom.xml"))) {
            folder = folder.getParent();
        }
        return Files.createDirectories(folder.resolve("target"));
    }

    /** A program that a variable names, or that is on the path. */
    static Optional<Path> program(String variable, String name) {
        final Map<String, String> environment = System.getenv();
        final String named = environment.get(variable);
        if (named != null) {
            return Optional.of(Path.of(named));
        }
        return Stream.of(environment.getOrDefault("PATH", "").split(":", -1))
                .filter(folder -> !folder.isEmpty())
                .map(folder -> Path.of(folder, name))
                .filter(Files::isExecutable)
                .findFirst();
    }

    /**
     * Installs a Python package without what it depends on, as {@link #install} does.
     *
     * @param name of its folder, for {@code PYTHONPATH}
     * @param file that is there afterwards, relative to its folder
     * @param requirement package and version
     * @return that file
     * @throws IOException with what pip said if it failed
     */
    static Path pip(String name, String file, String requirement)
            throws IOException, InterruptedException {
        return install(
                name,
                file,
                List.of(
                        PYTHON,
                        "-m",
                        "pip",
                        "install",
                        "--quiet",
                        "--no-deps",
                        "--disable-pip-version-check",
                        "--target",
                        ".",
                        requirement));
    }

    /**
     * Installs something below the build folder unless it is there; one process at a time, whole or
     * not at all.
     *
     * @param name of its folder
     * @param file that is there afterwards, relative to its folder
     * @param command run in its folder
     * @return that file
     * @throws IOException saying what failed
     */
    static Path install(String name, String file, List<String> command)
            throws IOException, InterruptedException {
        final Path target = get();
        final Path folder = target.resolve(name);
        final Path installed = folder.resolve(file);
        try (RandomAccessFile lockFile =
                        new RandomAccessFile(target.resolve(name + ".lock").toFile(), "rw");
                FileLock lock = lockFile.getChannel().lock()) {
            if (!lock.isValid() || Files.exists(installed)) {
                return installed;
            }
            final Path made = target.resolve(name + ".new");
            for (Path old : List.of(made, folder)) {
                if (Files.exists(old)) {
                    delete(old); // of one that was interrupted, or of another version
                }
            }
            run(command, Files.createDirectories(made), target.resolve(name + "-install.log"));
            Files.move(made, folder);
            if (!Files.exists(installed)) {
                throw new IOException(String.join(" ", command) + " made no " + file);
            }
            return installed;
        }
    }

    private static void run(List<String> command, Path folder, Path log)
            throws IOException, InterruptedException {
        final Process process =
                new ProcessBuilder(command)
                        .directory(folder.toFile())
                        .redirectErrorStream(true)
                        .redirectOutput(log.toFile())
                        .start();
        final boolean ended = process.waitFor(INSTALL_SECONDS, TimeUnit.SECONDS);
        process.destroyForcibly().waitFor();
        if (!ended || process.exitValue() != 0) {
            throw new IOException(
                    String.join(" ", command)
                            + " failed: "
                            + Files.readString(log, StandardCharsets.UTF_8).strip());
        }
    }

    /** Deletes a folder with all that is in it. */
    static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
