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
     * Installs something below the build folder unless it is there; one process at a time.
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
        final Path folder = Files.createDirectories(target.resolve(name));
        final Path installed = folder.resolve(file);
        try (RandomAccessFile lockFile =
                        new RandomAccessFile(target.resolve(name + ".lock").toFile(), "rw");
                FileLock lock = lockFile.getChannel().lock()) {
            if (!lock.isValid() || Files.exists(installed)) {
                return installed;
            }
            final Path log = target.resolve(name + "-install.log");
            final Process process =
                    new ProcessBuilder(command)
                            .directory(folder.toFile())
                            .redirectErrorStream(true)
                            .redirectOutput(log.toFile())
                            .start();
            final boolean ended = process.waitFor(INSTALL_SECONDS, TimeUnit.SECONDS);
            process.destroyForcibly().waitFor();
            if (!ended || process.exitValue() != 0 || !Files.exists(installed)) {
                throw new IOException(
                        String.join(" ", command)
                                + " failed: "
                                + Files.readString(log, StandardCharsets.UTF_8).strip());
            }
            return installed;
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
