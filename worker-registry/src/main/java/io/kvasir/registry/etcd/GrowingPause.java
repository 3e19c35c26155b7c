package io.kvasir.registry.etcd;

/** How long to wait before the next try: longer after each failure in a row. One thread. */
final class GrowingPause {
    private static final long FIRST_MS = 200;
    private static final long LONGEST_MS = 5_000;

    private long ms = FIRST_MS;

    /** After a try that failed. */
    long afterFailureMs() {
        final long now = ms;
        ms = Math.min(2 * ms, LONGEST_MS);
        return now;
    }

    /** After one that did not. */
    long afterSuccessMs() {
        ms = FIRST_MS;
        return ms;
    }
}
