package io.kvasir.cli.console;

/**
 * A command could not do its work. The message is the one line the user sees: what happened, the
 * value, the option to change.
 */
public final class CommandFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Says what happened in one line. */
    public CommandFailure(String message) {
        super(message);
    }

    /** Says what happened in one line, because of another exception. */
    public CommandFailure(String message, Throwable cause) {
        super(message, cause);
    }
}
