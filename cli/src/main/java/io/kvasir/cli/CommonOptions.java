package io.kvasir.cli;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

import java.io.PrintWriter;

/** Options every command has, and the two streams it writes to: results out, progress err. */
final class CommonOptions {
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
    ParameterException wrong(String message) {
        return new ParameterException(command.commandLine(), message);
    }

    PrintWriter out() {
        return command.commandLine().getOut();
    }

    PrintWriter err() {
        return command.commandLine().getErr();
    }
}
