package io.kvasir.cli.commands;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

import java.io.PrintWriter;

/** Options every command has, and the two streams it writes to: results out, progress err. */
public final class CommonOptions {
    @Spec(Spec.Target.MIXEE)
    CommandSpec command;

    @Option(
            names = "--debug",
            description = "Print the stack trace of an error and log at debug level.")
    boolean debug;

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help and end.")
    boolean help;

    /** A complaint about the command line, for values that no parser refuses by itself. */
    public ParameterException wrong(String message) {
        return new ParameterException(command.commandLine(), message);
    }

    /** Whether any part of the command line asks for the debug log. */
    public static boolean isDebug(CommandLine.ParseResult parsed) {
        for (CommandLine.ParseResult r = parsed; r != null; r = r.subcommand()) {
            if (r.hasMatchedOption("--debug")) {
                return true;
            }
        }
        return false;
    }

    PrintWriter out() {
        return command.commandLine().getOut();
    }

    PrintWriter err() {
        return command.commandLine().getErr();
    }
}
