package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Prometheus' own tool for rules and pages of metrics: the program that {@code PROMTOOL} names,
 * else {@code promtool} on the path, else Debian's package, unpacked once below the build's folder
 * without being installed.
 */
public final class Promtool {
    private static final int PATIENCE_SECONDS = 120;
    private static final List<String> INSTALL =
            List.of(
                    "sh",
                    "-c",
                    "apt-get download -q prometheus && dpkg-deb -x prometheus_*.deb . && rm *.deb");

    private final Path program;

    /**
     * What it said.
     *
     * @param exit 0 where all is well
     * @param text of both outputs
     */
    public record Verdict(int exit, String text) {}

    private Promtool(Path program) {
        this.program = program;
    }

    /**
     * Finds the program, or fetches it.
     *
     * @throws IOException saying why it cannot be had
     */
    public static Promtool find() throws IOException, InterruptedException {
        final Path found = BuildFolder.program("PROMTOOL", "promtool").orElse(null);
        return new Promtool(
                found != null
                        ? found
                        : BuildFolder.install("prometheus", "usr/bin/promtool", INSTALL));
    }

    /**
     * Runs it.
     *
     * @param folder where it runs
     * @param input read by it; null for none
     */
    public Verdict run(Path folder, Path input, String... arguments)
            throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>(List.of(program.toString()));
        command.addAll(List.of(arguments));
        final ProcessBuilder builder =
                new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true);
        if (input != null) {
            builder.redirectInput(input.toFile());
        }
        final Process process = builder.start();
        if (input == null) {
            process.getOutputStream().close();
        }
        final String text =
                new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new IOException(command + " did not end: " + text);
        }
        return new Verdict(process.exitValue(), text);
    }
}
