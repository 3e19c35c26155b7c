package io.kvasir.prompt.jinja;

/** An operation that failed on its values; the evaluator adds the line. */
final class ValueException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final boolean raised;

    ValueException(String message) {
        this(message, false);
    }

    /** {@code raised} marks the template's own {@code raise_exception}. */
    ValueException(String message, boolean raised) {
        super(message, null, false, false);
        this.raised = raised;
    }

    boolean raised() {
        return raised;
    }
}
