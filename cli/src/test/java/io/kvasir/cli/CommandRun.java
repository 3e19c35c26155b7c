package io.kvasir.cli;

import picocli.CommandLine;

import java.io.PrintWriter;
import java.io.StringWriter;

/** One run of the command line inside a test: its exit code and what it wrote. */
public record CommandRun(int exitCode, String out, String err) {
    public static CommandRun of(String... args) {
        final StringWriter out = new StringWriter();
        final CommandRun run = into(new PrintWriter(out), args);
        return new CommandRun(run.exitCode, out.toString(), run.err);
    }

    /** One that writes its results there. */
    public static CommandRun into(PrintWriter out, String... args) {
        final StringWriter err = new StringWriter();
        final String[] words = Kvasir.withHelpAsOption(args);
        final CommandLine kvasir = Kvasir.commandLine(words);
        kvasir.setOut(out).setErr(new PrintWriter(err));
        final int exitCode = kvasir.execute(words);
        return new CommandRun(exitCode, "", err.toString());
    }
}
