package io.kvasir.opstreams.report;

import io.kvasir.opstreams.kvops.Indexes;
import io.kvasir.opstreams.kvops.ReplayMode;
import io.kvasir.opstreams.kvops.ReplayPlan;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What a report covers.
 *
 * @param streams files to replay, at least one
 * @param forks processes per stream, mode and index
 * @param indexes what is measured; the first is compared with the others
 * @param modes how streams are replayed
 * @param warmUpSeconds most time for the warm-up of each process
 * @param jvmOptions further options of the measured JVMs
 * @param out folder for the page
 * @param commit what was measured, for people
 */
record ReportOptions(
        List<Path> streams,
        int forks,
        List<String> indexes,
        List<ReplayMode> modes,
        double warmUpSeconds,
        List<String> jvmOptions,
        Path out,
        String commit) {
    static final String USAGE =
            "usage: bench/run report STREAM.kvops... [--forks N (3)] [--index NAME,NAME (all)]"
                    + " [--mode M,M (inorder,beside)] [--warm-up-seconds S (30)]"
                    + " [--jvm-option OPT]... [--out DIR] [--commit TEXT]";

    private static final int FORKS = 3;

    /**
     * Reads a command line.
     *
     * @throws IllegalArgumentException saying what is wrong with it
     */
    static ReportOptions parse(List<String> args) {
        final List<Path> streams = new ArrayList<>();
        final List<String> jvmOptions = new ArrayList<>();
        double warmUpSeconds = ReplayPlan.WARM_UP_SECONDS;
        int forks = FORKS;
        List<String> indexes = Indexes.names();
        List<ReplayMode> modes = List.of(ReplayMode.INORDER, ReplayMode.BESIDE);
        Path out = Path.of("bench", "target", "report");
        String commit = "unknown";
        for (int i = 0; i < args.size(); i++) {
            final String word = args.get(i);
            if (!word.startsWith("--")) {
                streams.add(Path.of(word));
                continue;
            }
            if (i + 1 == args.size()) {
                throw new IllegalArgumentException(word + " needs a value");
            }
            final String value = args.get(++i);
            switch (word) {
                case "--forks" -> forks = number(word, value);
                case "--index" ->
                        indexes =
                                Arrays.stream(value.split(",", -1)).map(Indexes::checked).toList();
                case "--mode" ->
                        modes =
                                Arrays.stream(value.split(",", -1))
                                        .map(ReportOptions::mode)
                                        .toList();
                case "--warm-up-seconds" -> warmUpSeconds = seconds(word, value);
                case "--jvm-option" -> jvmOptions.add(value);
                case "--out" -> out = Path.of(value);
                case "--commit" -> commit = value;
                default -> throw new IllegalArgumentException("unknown option " + word);
            }
        }
        if (streams.isEmpty()) {
            throw new IllegalArgumentException("no stream given");
        }
        return new ReportOptions(
                streams, forks, indexes, modes, warmUpSeconds, jvmOptions, out, commit);
    }

    private static int number(String option, String value) {
        try {
            return Integer.parseInt(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " " + value + " is no number", e);
        }
    }

    /** Reads a time in seconds, which {@link ReplayPlan} checks. */
    static double seconds(String option, String value) {
        try {
            return Double.parseDouble(value);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(option + " " + value + " is no number", e);
        }
    }

    private static ReplayMode mode(String name) {
        for (ReplayMode mode : ReplayMode.values()) {
            if (mode.label().equals(name.toLowerCase(Locale.ROOT))) {
                return mode;
            }
        }
        throw new IllegalArgumentException(
                "no mode is named " + name + "; there are inorder, events, beside, openloop");
    }
}
