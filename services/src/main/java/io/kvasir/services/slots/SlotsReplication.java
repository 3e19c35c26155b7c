package io.kvasir.services.slots;

import io.kvasir.router.replica.ReplicaLink;

import java.time.Duration;
import java.util.Objects;

/**
 * How a slot tracker shares its requests with others over the same workers.
 *
 * @param link to the others; closed with the service
 * @param idOrNull number of this tracker among them; null for a random one
 * @param digest time between two digests of the own requests, by which others find what they lost;
 *     at least 10 ms
 * @param lease silence after which another tracker's requests count no more; longer, and some 24
 *     days at most
 * @param maxRequests requests of all others together that are counted
 */
public record SlotsReplication(
        ReplicaLink link, Long idOrNull, Duration digest, Duration lease, int maxRequests) {
    /** Shortest time between digests. */
    public static final Duration SHORTEST = Duration.ofMillis(10);

    /** Longest lease. */
    public static final Duration LONGEST = Duration.ofMillis(Integer.MAX_VALUE);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public SlotsReplication {
        Objects.requireNonNull(link, "link");
        if (digest.compareTo(SHORTEST) < 0
                || lease.compareTo(digest) <= 0
                || lease.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "digest="
                            + digest
                            + ", lease="
                            + lease
                            + ": a digest takes at least "
                            + SHORTEST
                            + ", a lease longer than that and at most "
                            + LONGEST);
        }
        if (maxRequests < 1) {
            throw new IllegalArgumentException(
                    "maxRequests=" + maxRequests + " of other trackers is not above 0");
        }
    }

    /** Usual times and sizes: a digest a second, ten seconds, 65,536 requests. */
    public static SlotsReplication of(ReplicaLink link) {
        return new SlotsReplication(
                link, null, Duration.ofSeconds(1), Duration.ofSeconds(10), 65_536);
    }
}
