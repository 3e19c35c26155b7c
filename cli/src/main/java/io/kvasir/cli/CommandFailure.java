package io.kvasir.cli;

/**
 * A command could not do its work. The message is the one line the user sees: what happened, the
 * value, the option to change.
 */
final class CommandFailure extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CommandFailure(String message) {
        super(message);
    }

    CommandFailure(String message, Throwable cause) {
        super(message, cause);
    }
}
