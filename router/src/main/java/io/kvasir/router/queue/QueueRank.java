package io.kvasir.router.queue;

import java.util.concurrent.TimeUnit;

/**
 * How a request stands among those that wait.
 *
 * @param priority its class: a higher one goes first; {@value #LEAST_PRIORITY}..{@value
 *     #MOST_PRIORITY}
 * @param headStartNs how much earlier it counts as having come than it did, within its class; with
 *     {@link io.kvasir.router.settings.QueuePolicy#WSPT} each second counts as once more the weight
 * @param deadlineNs until when it must have been booked, by the queue's clock; {@link #NO_DEADLINE}
 *     for as long as any may wait. Among requests of a class and window the earlier deadline goes
 *     first
 */
public record QueueRank(int priority, long headStartNs, long deadlineNs) {
    /** The deadline of none. */
    public static final long NO_DEADLINE = Long.MAX_VALUE;

    /** Lowest class. */
    public static final int LEAST_PRIORITY = -1_000;

    /** Highest class. */
    public static final int MOST_PRIORITY = 1_000;

    /** Longest head start: an hour. */
    public static final long MOST_HEAD_START_NS = TimeUnit.HOURS.toNanos(1);

    /** That of a request that says nothing. */
    public static final QueueRank USUAL = new QueueRank(0, 0, NO_DEADLINE);

    /** Checks the ranges. */
    public QueueRank {
        if (priority < LEAST_PRIORITY || priority > MOST_PRIORITY) {
            throw new IllegalArgumentException(
                    "priority="
                            + priority
                            + " must be "
                            + LEAST_PRIORITY
                            + ".."
                            + MOST_PRIORITY
                            + "; higher goes first");
        }
        if (headStartNs < 0 || headStartNs > MOST_HEAD_START_NS) {
            throw new IllegalArgumentException(
                    "head start of "
                            + headStartNs
                            + " ns must be 0.."
                            + MOST_HEAD_START_NS
                            + " ns");
        }
    }

    /** Whether the request's own deadline has come. */
    boolean isOver(long nowNs) {
        // compared, as they are sorted: a difference overflows where one is far away
        return deadlineNs != NO_DEADLINE && deadlineNs <= nowNs;
    }
}
