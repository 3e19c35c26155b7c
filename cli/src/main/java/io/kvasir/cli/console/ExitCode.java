package io.kvasir.cli.console;

/** What the exit codes of every command mean; the help texts name the same numbers. */
public final class ExitCode {
    /** The command did its work and found nothing wrong. */
    public static final int OK = 0;

    /** The command did its work and the answer is no: a check failed, requests failed. */
    public static final int NEGATIVE = 1;

    /** The command line is wrong. */
    public static final int USAGE = 2;

    /** The command could not work: port in use, file missing, engine unreachable. */
    public static final int FAILED = 3;

    private ExitCode() {}
}
