package io.kvasir.pipeline.source;

/**
 * When a slot is loaded again after an error inside the index: at once the first time, then ever
 * more rarely, unless the last error is long ago. Not thread-safe.
 */
final class FailureWatch {
    private long seen;
    private long dueNs;
    private long delayNs;

    /**
     * Whether to load now.
     *
     * @param failures errors so far
     * @return true once for the errors since the last time
     */
    boolean take(long failures, long nowNs) {
        if (failures == seen || (delayNs > 0 && nowNs - dueNs < 0)) {
            return false;
        }
        final boolean longAgo = nowNs - dueNs > RetryTimer.LAST_DELAY_NS;
        seen = failures;
        delayNs =
                delayNs == 0 || longAgo
                        ? RetryTimer.FIRST_DELAY_NS
                        : Math.min(2 * delayNs, RetryTimer.LAST_DELAY_NS);
        dueNs = nowNs + delayNs;
        return true;
    }
}
