package io.kvasir.cli.commands;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

import java.io.PrintWriter;
import java.util.function.Supplier;

/** Options every command has, and the two streams it writes to: results out, progress err. */
public final class CommonOptions {
    private static final int MOST_PORT = 65535;

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

    /** Whether the command line itself has an option. */
    boolean isGiven(String option) {
        return command.commandLine().getParseResult().hasMatchedOption(option);
    }

    /** The text of an option of the command line itself, as it was given; empty if it was not. */
    String given(String option) {
        return isGiven(option)
                ? command.commandLine()
                        .getParseResult()
                        .matchedOption(option)
                        .originalStringValues()
                        .getLast()
                : "";
    }

    /**
     * What is made of the values of options, which complains of the command line where one of them
     * is out of range.
     *
     * @param maker refuses values by an {@link IllegalArgumentException} that says which
     */
    <T> T made(Supplier<T> maker) {
        try {
            return maker.get();
        } catch (IllegalArgumentException e) {
            throw wrong(e.getMessage());
        }
    }

    /**
     * A port to listen on; complains of what can be none.
     *
     * @param port 0 for any free one
     */
    int port(int port) {
        if (port < 0 || port > MOST_PORT) {
            throw wrong("--port " + port + " is not within 0.." + MOST_PORT);
        }
        return port;
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
