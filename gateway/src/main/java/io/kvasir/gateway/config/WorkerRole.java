package io.kvasir.gateway.config;

import java.util.Locale;

/** Part of a request that a worker is there for. */
public enum WorkerRole {
    /** Prefill and decode. */
    BOTH,
    /** Computes prompts for workers that decode. */
    PREFILL,
    /** Generates, from blocks of prompts that it fetches from where they were computed. */
    DECODE;

    /** As flags, sources and logs write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * Parses the spelling.
     *
     * @throws IllegalArgumentException if there is no such role; the message lists them
     */
    static WorkerRole parse(String text) {
        for (WorkerRole role : values()) {
            if (role.spelling().equals(text)) {
                return role;
            }
        }
        throw new IllegalArgumentException("role=" + text + "; one of: both, prefill, decode");
    }
}
