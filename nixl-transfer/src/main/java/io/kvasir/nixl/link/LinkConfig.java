package io.kvasir.nixl.link;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.random.RandomGenerator;

/**
 * Limits and patience of a {@link LinkManager}.
 *
 * @param maxLinks links kept at a time, at least 1
 * @param firstBackoff pause after the first failure, at least 1 ms; doubles with each further one
 * @param backoffCap longest pause, at least {@code firstBackoff}
 * @param jitter part of a pause that is random, 0..1: so that peers of one that was lost do not all
 *     come back at once
 * @param poll how often the manager's own thread checks whether a link is lost, at least 1 µs
 */
public record LinkConfig(
        int maxLinks, Duration firstBackoff, Duration backoffCap, double jitter, Duration poll) {
    private static final int MOST_DOUBLINGS = 40;
    private static final Duration LEAST_BACKOFF = Duration.ofMillis(1);
    private static final Duration LEAST_POLL = Duration.ofNanos(1_000);

    /** 256 links, pauses of 50 ms to 5 s of which half is random, a look each 5 ms. */
    public static final LinkConfig DEFAULT =
            new LinkConfig(
                    256, Duration.ofMillis(50), Duration.ofSeconds(5), 0.5, Duration.ofMillis(5));

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public LinkConfig {
        if (maxLinks < 1) {
            throw new IllegalArgumentException("maxLinks=" + maxLinks + ", at least 1");
        }
        if (firstBackoff.compareTo(LEAST_BACKOFF) < 0 || backoffCap.compareTo(firstBackoff) < 0) {
            throw new IllegalArgumentException(
                    "firstBackoff="
                            + firstBackoff
                            + ", backoffCap="
                            + backoffCap
                            + ": at least 1 ms, and the cap not below the first");
        }
        if (!(jitter >= 0 && jitter <= 1)) {
            throw new IllegalArgumentException("jitter=" + jitter + ", limits are 0..1");
        }
        if (poll.compareTo(LEAST_POLL) < 0) {
            throw new IllegalArgumentException("poll=" + poll + ", at least 1 µs");
        }
    }

    /** At most the longest time that can be waited: 292 years. */
    long pollNs() {
        return TimeUnit.NANOSECONDS.convert(poll);
    }

    /**
     * The pause after failures in a row.
     *
     * @param failures how many, at least 1
     * @param random of the jitter
     * @return nanoseconds
     */
    long backoffNs(int failures, RandomGenerator random) {
        final int doublings = Math.min(failures - 1, MOST_DOUBLINGS);
        final double whole =
                Math.min(
                        (double) TimeUnit.NANOSECONDS.convert(firstBackoff) * (1L << doublings),
                        (double) TimeUnit.NANOSECONDS.convert(backoffCap));
        return (long) (whole * (1 - jitter * random.nextDouble()));
    }
}
