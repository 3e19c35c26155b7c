package io.kvasir.prompt.chat;

/**
 * By whose rules a chat becomes a prompt: engines hand the same request to a template in forms of
 * their own.
 */
public enum PromptRules {
    /** Those of vLLM, version 0.32. */
    VLLM,

    /** Those of SGLang, version 0.5.23. */
    SGLANG
}
