package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.WorkerRole;

import java.util.Locale;

/** Workers that one router chooses among. */
public enum WorkerPool {
    /** Those that answer clients: of the roles both and decode. */
    MAIN,
    /** Those that compute prompts for others: of the role prefill. */
    PREFILL;

    /** The pool of the workers of a role. */
    public static WorkerPool of(WorkerRole role) {
        return role == WorkerRole.PREFILL ? PREFILL : MAIN;
    }

    /** As status, metrics and logs write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }
}
