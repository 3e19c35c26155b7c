package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Terminal;

import picocli.CommandLine.Option;

import java.io.IOException;

/** Options of commands that show a state once, or again and again. */
final class ShowOptions {
    private static final double SECOND_MS = 1_000;

    @Option(names = "--json", description = "Print one JSON object instead of the text.")
    private boolean json;

    @Option(
            names = "--watch",
            paramLabel = "S",
            description = "Show it again every S seconds; 0 = once.")
    private Double seconds;

    @Option(
            names = "--count",
            paramLabel = "N",
            description = "With --watch: end after showing it N times.")
    private Integer count;

    /** Shows a state. */
    @FunctionalInterface
    interface Showing {
        /** Shows it and gives the exit code that it means. */
        int show() throws IOException, InterruptedException;
    }

    boolean json() {
        return json;
    }

    /**
     * Shows a state as often as these options say; on a terminal each time from the top.
     *
     * @param usualSeconds between two times where the options do not say
     * @return the exit code of the last time
     * @throws CommandFailure if what was shown could not be written and would be shown again
     */
    int repeat(CommonOptions common, double usualSeconds, Showing showing)
            throws IOException, InterruptedException {
        final double pause = seconds == null ? usualSeconds : seconds;
        if (!(pause >= 0 && pause <= Integer.MAX_VALUE)) {
            throw common.wrong("--watch " + pause + " is no number of seconds");
        }
        if (count != null && count < 1) {
            throw common.wrong("--count " + count + " is not a positive number");
        }
        if (count != null && pause == 0) {
            throw common.wrong(
                    "--count "
                            + count
                            + (seconds == null
                                    ? " needs --watch"
                                    : " needs a --watch of more than 0"));
        }
        for (int shown = 1; ; shown++) {
            if (pause > 0 && !json) {
                Terminal.clear(common.out());
            }
            final int exitCode = showing.show();
            if (pause == 0 || (count != null && shown >= count)) {
                return exitCode;
            }
            Terminal.checkTaken(common.out());
            Thread.sleep((long) (pause * SECOND_MS));
        }
    }
}
