package io.kvasir.registry;

/** What a worker answers. */
public enum ModelType {
    /** {@code /v1/chat/completions}. */
    CHAT,
    /** {@code /v1/completions}. */
    COMPLETIONS,
    /** Prompts, whose blocks another worker fetches. */
    PREFILL,
    /** Generates from blocks that another worker computed. */
    DECODE
}
