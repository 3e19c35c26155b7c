package io.kvasir.prompt.tokenizer;

/** A prompt whose tokens cannot be known. */
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

    /**
     * A prompt that cannot be encoded.
     *
     * @param kind whose problem it is
     * @param message what is wrong, for the client
     * @param cause null if there is none
     */
    public PromptException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /**
     * A request that an engine would refuse, too.
     *
     * @param message what is wrong, for the client
     * @return an exception of kind INVALID
     */
    public static PromptException invalid(String message) {
        return new PromptException(Kind.INVALID, message, null);
    }

    /**
     * A prompt of too many tokens, in the engine's words.
     *
     * @param maxTokens most that it may have
     * @return an exception of kind LIMIT
     */
    public static PromptException tooLong(int maxTokens) {
        return new PromptException(
                Kind.LIMIT,
                "This model's maximum context length is "
                        + maxTokens
                        + " tokens. However, your prompt has more than "
                        + maxTokens
                        + " tokens. Please reduce the length of the prompt.",
                null);
    }

    /**
     * A prompt that costs more than the gateway spends.
     *
     * @param message what is too much and what the limit is, for the client
     * @return an exception of kind LIMIT
     */
    static PromptException limit(String message) {
        return new PromptException(Kind.LIMIT, message, null);
    }

    /**
     * A prompt whose tokens only the engine knows.
     *
     * @param message why
     * @return an exception of kind UNKNOWN_TOKENS
     */
    public static PromptException unknown(String message) {
        return new PromptException(Kind.UNKNOWN_TOKENS, message, null);
    }

    /** Whose problem it is. */
    public Kind kind() {
        return kind;
    }
}
