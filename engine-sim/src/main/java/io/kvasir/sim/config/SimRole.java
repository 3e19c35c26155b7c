package io.kvasir.sim.config;

/** Which part of a request an engine is meant for. */
public enum SimRole {
    /** Prompts and answers; knows nothing of hand-offs. */
    BOTH,
    /** Prompts whose blocks another engine pulls; a vLLM engine serves whole requests, too. */
    PREFILL,
    /** Answers to prompts whose blocks it pulls; a vLLM engine serves whole requests, too. */
    DECODE
}
