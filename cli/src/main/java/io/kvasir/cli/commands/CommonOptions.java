package io.kvasir.cli.commands;

import io.kvasir.registry.HttpAddress;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

import java.io.PrintWriter;
import java.net.URI;
import java.util.function.Supplier;

/** Options every command has, and the two streams it writes to: results out, progress err. */
public final class CommonOptions {
    /** Some thirty years: as nanoseconds within half of the range of a long. */
    static final int MOST_SECONDS = 1_000_000_000;

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
        return made("", maker);
    }

    /**
     * The same.
     *
     * @param before what the complaint has before the refusal, such as the option's name
     */
    <T> T made(String before, Supplier<T> maker) {
        try {
            return maker.get();
        } catch (IllegalArgumentException e) {
            throw wrong(before + e.getMessage());
        }
    }

    /**
     * Checks the values of options.
     *
     * @param before what the complaint has before the refusal, such as the option's name
     * @param check refuses values by an {@link IllegalArgumentException} that says which
     */
    void checked(String before, Runnable check) {
        made(
                before,
                () -> {
                    check.run();
                    return null;
                });
    }

    /**
     * A port to listen on; complains of what can be none.
     *
     * @param port 0 for any free one
     */
    int port(int port) {
        within("--port", port, 0, MOST_PORT);
        return port;
    }

    /**
     * The first of several ports that are counted up from it.
     *
     * @param first 0 for any free ones
     */
    void ports(String option, int first, long count) {
        if (first != 0 && (first < 0 || first + count - 1 > MOST_PORT)) {
            throw wrong(
                    option
                            + " "
                            + first
                            + " is not within 0.."
                            + MOST_PORT
                            + (count == 1 ? "" : " with all " + count + " ports from it on"));
        }
    }

    /** Complains of a whole number that is less than that. */
    void atLeast(String option, long value, long least) {
        if (value < least) {
            throw wrong(option + " " + value + " must be at least " + least);
        }
    }

    /** Complains of a whole number that is out of range; both ends belong to it. */
    void within(String option, long value, long least, long most) {
        if (value < least || value > most) {
            throw wrong(option + " " + value + " is not within " + least + ".." + most);
        }
    }

    /** The same of any number; both ends are whole. */
    void within(String option, double value, double least, double most) {
        if (!(value >= least && value <= most)) {
            throw wrong(
                    option
                            + " "
                            + text(option, value)
                            + " is not within "
                            + (long) least
                            + ".."
                            + (long) most);
        }
    }

    /** Complains of 0, of what is below it, and of what is no finite number. */
    void positive(String option, double value) {
        if (!(value > 0) || Double.isInfinite(value)) {
            throw wrong(option + " " + text(option, value) + " must be positive and finite");
        }
    }

    /** Complains of what is below 0, and of what is no finite number. */
    void notNegative(String option, double value) {
        if (!(value >= 0) || Double.isInfinite(value)) {
            throw wrong(option + " " + text(option, value) + " must be 0 or more, and finite");
        }
    }

    /** Complains of a name that has nothing but blanks. */
    void notBlank(String option, String name) {
        if (name.isBlank()) {
            throw wrong(option + " is empty");
        }
    }

    private String text(String option, double value) {
        return isGiven(option) ? given(option) : Double.toString(value);
    }

    /** Complains of what is no address of HTTP that can be connected to. */
    void http(String option, URI url) {
        final String problem = HttpAddress.problemOrNull(url);
        if (problem != null) {
            throw wrong(option + " " + url + " " + problem);
        }
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
