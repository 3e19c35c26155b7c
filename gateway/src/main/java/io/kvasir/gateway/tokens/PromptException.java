package io.kvasir.gateway.tokens;

/** A chat request whose tokens cannot be known. */
public final class PromptException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Whose problem it is. */
    public enum Kind {
        /** The request is wrong or the model's template refuses it; an engine answers 400, too. */
        INVALID,
        /** The request may be right, but its tokens are not known here, as with images. */
        UNKNOWN_TOKENS,
        /** The gateway does not spend what the prompt would cost. */
        LIMIT
    }

    private final transient Kind kind;

    PromptException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    static PromptException invalid(String message) {
        return new PromptException(Kind.INVALID, message, null);
    }

    /** In the engine's words. */
    static PromptException tooLong(int maxTokens) {
        return new PromptException(
                Kind.LIMIT,
                "This model's maximum context length is "
                        + maxTokens
                        + " tokens. However, your prompt has more than "
                        + maxTokens
                        + " tokens. Please reduce the length of the prompt.",
                null);
    }

    static PromptException unknown(String message) {
        return new PromptException(Kind.UNKNOWN_TOKENS, message, null);
    }

    /** Whose problem it is. */
    public Kind kind() {
        return kind;
    }
}
