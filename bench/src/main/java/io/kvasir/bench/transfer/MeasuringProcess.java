package io.kvasir.bench.transfer;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A program that prints one line of words for each thing that it measured. */
final class MeasuringProcess {
    private MeasuringProcess() {}

    /**
     * Runs one to its end.
     *
     * @param command program and arguments
     * @param environment variables to set
     * @return the words of each line
     * @throws IOException if it cannot be started or fails
     */
    static List<String[]> run(List<String> command, Map<String, String> environment)
            throws IOException, InterruptedException {
        final ProcessBuilder builder =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(environment);
        final Process process = builder.start();
        final List<String[]> lines = new ArrayList<>();
        try (var reader = process.inputReader(StandardCharsets.US_ASCII)) {
            reader.lines().forEach(line -> lines.add(line.split(" ", -1)));
        }
        final int exitCode = process.waitFor();
        if (exitCode != 0) {
            throw new IOException("exit code " + exitCode + " of " + command);
        }
        return lines;
    }
}
