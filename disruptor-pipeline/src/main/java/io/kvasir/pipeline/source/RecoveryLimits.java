package io.kvasir.pipeline.source;

import java.util.concurrent.TimeUnit;

/**
 * How an {@link EventPlane} asks local indexers.
 *
 * @param atOnce most workers that are asked at the same time
 * @param tries tries of one query until the worker's view is degraded, and asked for ever more
 *     rarely
 * @param firstBackoffNs time between the first tries; twice as long with each one
 * @param patienceNs longest time without a message of an answer
 * @param answerNs longest time of an answer, from the query to its end
 * @param stagedWords 8-byte words that unfinished dumps may take, all together
 * @param heldBytes bytes of live messages that may wait for answers, all together
 * @param tailCheckNs time without an event after which a worker is asked whether one is missing
 */
record RecoveryLimits(
        int atOnce,
        int tries,
        long firstBackoffNs,
        long patienceNs,
        long answerNs,
        long stagedWords,
        long heldBytes,
        long tailCheckNs) {
    private static final int MOST_DOUBLINGS = 4;

    static final RecoveryLimits DEFAULT =
            new RecoveryLimits(
                    16,
                    8,
                    TimeUnit.MILLISECONDS.toNanos(200),
                    TimeUnit.SECONDS.toNanos(30),
                    TimeUnit.MINUTES.toNanos(5),
                    32L << 20,
                    64L << 20,
                    TimeUnit.SECONDS.toNanos(30));

    /** Time of silence before a check: longer where nothing has answered of late. */
    long tailCheckNs(int unanswered) {
        return tailCheckNs << Math.min(unanswered, MOST_DOUBLINGS);
    }

    /** Time between two tries. */
    long backoffNs(int failedTries) {
        return firstBackoffNs << Math.min(failedTries - 1, tries);
    }
}
