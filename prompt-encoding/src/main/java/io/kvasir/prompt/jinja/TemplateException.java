package io.kvasir.prompt.jinja;

/** A template that cannot be compiled, or that failed or refused its input while rendering. */
public final class TemplateException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The side that has to do something about it. */
    public enum Kind {
        /** The template uses something that does not exist or is not implemented. */
        SYNTAX,
        /** An operation failed on the values given. */
        RUNTIME,
        /**
         * The template called {@code raise_exception}: the request is not what the model expects.
         */
        RAISED,
        /** The template needs more than its {@link TemplateLimits}. */
        LIMIT
    }

    private final transient Kind kind;
    private final int line;
    private final String reason;

    TemplateException(Kind kind, int line, String reason) {
        super(line > 0 ? "line " + line + ": " + reason : reason);
        this.kind = kind;
        this.line = line;
        this.reason = reason;
    }

    /** What went wrong. */
    public Kind kind() {
        return kind;
    }

    /** Line in the template, from 1; 0 when unknown. */
    public int line() {
        return line;
    }

    /** The message without the line: for {@link Kind#RAISED} exactly the template's own text. */
    public String reason() {
        return reason;
    }
}
