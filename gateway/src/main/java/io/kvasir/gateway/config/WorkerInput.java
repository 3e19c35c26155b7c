package io.kvasir.gateway.config;

import java.util.Locale;

/** What a worker is sent of a prompt. */
public enum WorkerInput {
    /** The client's text and messages: the engine tokenizes. */
    TEXT,
    /** Token ids, over {@code /v1/completions}: the gateway tokenizes. */
    TOKENS;

    /** As flags, sources and logs write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * Parses the spelling.
     *
     * @throws IllegalArgumentException if there is no such input; the message lists them
     */
    static WorkerInput parse(String text) {
        for (WorkerInput input : values()) {
            if (input.spelling().equals(text)) {
                return input;
            }
        }
        throw new IllegalArgumentException("input=" + text + "; one of: text, tokens");
    }
}
