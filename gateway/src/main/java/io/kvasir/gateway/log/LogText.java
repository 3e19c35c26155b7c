package io.kvasir.gateway.log;

import io.kvasir.pipeline.log.LineText;

/** Makes text of clients, workers and files, and failures that have such, fit for the log. */
public final class LogText {
    private static final int MAX_CAUSES = 8;

    private LogText() {}

    /**
     * Escapes and cuts a text; see {@link LineText#of}.
     *
     * @param text null is written as such
     */
    public static String of(String text) {
        return LineText.of(text);
    }

    /**
     * What stands for a failure in the log: its stack trace and those of its causes, with their
     * messages made fit.
     */
    public static Throwable of(Throwable failure) {
        return of(failure, MAX_CAUSES);
    }

    private static Throwable of(Throwable failure, int depth) {
        final Throwable cause = failure.getCause();
        return new LoggedFailure(
                failure, cause == null || depth == 0 ? null : of(cause, depth - 1));
    }

    private static final class LoggedFailure extends Throwable {
        private static final long serialVersionUID = 1L;

        LoggedFailure(Throwable failure, Throwable cause) {
            super(LogText.of(failure.toString()), cause, false, true);
            setStackTrace(failure.getStackTrace());
        }
    }
}
