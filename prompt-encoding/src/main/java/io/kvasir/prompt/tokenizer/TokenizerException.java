package io.kvasir.prompt.tokenizer;

/** A tokenizer or model directory that cannot be loaded; the message says which part and why. */
public final class TokenizerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /**
     * Describes a failure to load.
     *
     * @param message what was read, what is wrong with it
     * @param cause the underlying failure, or null
     */
    public TokenizerException(String message, Throwable cause) {
        super(message, cause);
    }
}
