package io.kvasir.opstreams.report;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Another project's index, replayed by a program of its own: {@code PROGRAM replay NAME --ops FILE}
 * and {@code PROGRAM mem NAME --ops FILE} print one JSON object each.
 *
 * @param program the file to run
 * @param name what it calls the index
 */
record PeerProgram(Path program, String name) {
    private static final Pattern APPLY = Pattern.compile("\"evblock_cpu_ns\":([0-9.]+)");
    private static final Pattern QUERY =
            Pattern.compile("\"q_nopreempt\":\\{[^}]*\"mean\":([0-9.]+)");
    private static final Pattern WRONG = Pattern.compile("\"mismatch\":([0-9]+)");
    private static final Pattern BYTES = Pattern.compile("\"heap_per_pair\":([0-9.]+)");

    /**
     * What a replay took.
     *
     * @param applyNs thread CPU time per block of an event
     * @param queryNs mean wall time of a query without loss of the core
     * @param wrong answers that were not the stream's
     */
    record Costs(double applyNs, double queryNs, long wrong) {}

    /**
     * Replays a stream in a process of its own.
     *
     * @throws IOException if it does not end with 0 or prints something else
     * @throws InterruptedException if the calling thread was interrupted; the process is ended
     */
    Costs replay(Path stream) throws IOException, InterruptedException {
        final String printed = run("replay", stream);
        return new Costs(
                number(APPLY, printed), number(QUERY, printed), (long) number(WRONG, printed));
    }

    /**
     * Heap bytes per (worker, block) pair after all events of a stream.
     *
     * @throws IOException if it does not end with 0 or prints something else
     * @throws InterruptedException if the calling thread was interrupted; the process is ended
     */
    double bytesPerPair(Path stream) throws IOException, InterruptedException {
        return number(BYTES, run("mem", stream));
    }

    private String run(String mode, Path stream) throws IOException, InterruptedException {
        final List<String> command =
                List.of(program.toString(), mode, name, "--ops", stream.toString());
        final Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader out = process.inputReader()) {
            final String printed = String.join("\n", out.lines().toList());
            final int code = process.waitFor();
            if (code != 0) {
                throw new IOException(String.join(" ", command) + " ended with " + code);
            }
            return printed;
        } finally {
            process.destroy();
        }
    }

    private double number(Pattern field, String printed) throws IOException {
        final Matcher matcher = field.matcher(printed);
        if (!matcher.find()) {
            throw new IOException(program + " did not print " + field + " but: " + printed);
        }
        return Double.parseDouble(matcher.group(1));
    }
}
