package io.kvasir.prompt.chat;

/** A prompt as text and as the ids that an engine computes. */
public final class RenderedPrompt {
    private final String text;
    private final int[] tokens;

    RenderedPrompt(String text, int[] tokens) {
        this.text = text;
        this.tokens = tokens;
    }

    /** The text that was tokenized. */
    public String text() {
        return text;
    }

    /** Token ids in order; not copied, owned by the caller. */
    public int[] tokens() {
        return tokens;
    }
}
