package io.kvasir.testsupport;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * The real NIXL library for tests: the one that {@code KVASIR_NIXL_LIBRARY} names, else the PyPI
 * wheel, installed once below the build's folder.
 *
 * @param library full path of {@code libnixl_capi.so}; null when it cannot be had
 * @param why what is missing then
 */
public record NixlWheel(Path library, String why) {
    private static final String VARIABLE = "KVASIR_NIXL_LIBRARY";
    private static final String WHEEL = "nixl-cu12==1.5.1";
    private static final String LIBRARY = ".nixl_cu12.mesonpy.libs/libnixl_capi.so";
    private static final int INSTALL_SECONDS = 240;

    /**
     * Finds it, or installs it; the second time there is nothing to do. Several test processes may
     * ask at once.
     *
     * @return the library, or why there is none
     */
    public static NixlWheel get() {
        final String named = System.getenv(VARIABLE);
        if (named != null) {
            return new NixlWheel(Path.of(named), "");
        }
        if (!System.getProperty("os.name").equals("Linux")
                || !System.getProperty("os.arch").equals("amd64")) {
            return new NixlWheel(null, "the wheel is for Linux on x86-64");
        }
        try {
            return install(buildFolder());
        } catch (IOException e) {
            return new NixlWheel(null, e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return new NixlWheel(null, "interrupted");
        }
    }

    /** The target folder of the outermost module. */
    private static Path buildFolder() throws IOException {
        Path folder = Path.of("").toAbsolutePath();
        while (folder.getParent() != null && Files.exists(folder.resolveSibling("pom.xml"))) {
            folder = folder.getParent();
        }
        return Files.createDirectories(folder.resolve("target"));
    }

    private static NixlWheel install(Path target) throws IOException, InterruptedException {
        final Path folder = target.resolve("nixl-cu12");
        final Path library = folder.resolve(LIBRARY);
        try (RandomAccessFile file =
                        new RandomAccessFile(target.resolve("nixl.lock").toFile(), "rw");
                FileLock lock = file.getChannel().lock()) {
            if (!lock.isValid() || Files.exists(library)) {
                return new NixlWheel(library, "");
            }
            final Path log = target.resolve("nixl-install.log");
            final Process pip =
                    new ProcessBuilder(
                                    "python3",
                                    "-m",
                                    "pip",
                                    "install",
                                    "--quiet",
                                    "--no-deps",
                                    "--disable-pip-version-check",
                                    "--target",
                                    folder.toString(),
                                    WHEEL)
                            .redirectErrorStream(true)
                            .redirectOutput(log.toFile())
                            .start();
            final boolean ended = pip.waitFor(INSTALL_SECONDS, TimeUnit.SECONDS);
            pip.destroyForcibly().waitFor();
            return ended && pip.exitValue() == 0 && Files.exists(library)
                    ? new NixlWheel(library, "")
                    : new NixlWheel(
                            null,
                            "pip install "
                                    + WHEEL
                                    + " failed: "
                                    + Files.readString(log, StandardCharsets.UTF_8).strip());
        }
    }

    /**
     * Whether there is one.
     *
     * @return false when {@link #why} says what is missing
     */
    public boolean isThere() {
        return library != null;
    }
}
