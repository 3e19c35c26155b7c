package io.kvasir.router;

import io.kvasir.testsupport.Eventually;

import java.util.Set;
import java.util.stream.Collectors;

/**
 * What routers of tests before have left to end, before the threads or memory of all are compared.
 */
public final class FormerRouters {
    private static final String OF_THE_JVM = "kvasir-lease-cleaner"; // comes with the first lease

    private FormerRouters() {}

    /**
     * Waits until the threads of all routers have ended, and given their memory back with that: a
     * close waits a second for a thread, and leaves it the memory if it takes longer.
     */
    public static void awaitEnd() {
        Eventually.holds(() -> "the end of " + threads(), () -> threads().isEmpty());
    }

    /** Threads of routers that are there now. */
    static Set<Thread> threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("kvasir-"))
                .filter(thread -> !thread.getName().equals(OF_THE_JVM))
                .collect(Collectors.toSet());
    }
}
