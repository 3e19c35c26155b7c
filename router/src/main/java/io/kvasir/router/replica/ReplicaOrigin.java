package io.kvasir.router.replica;

import java.security.SecureRandom;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/**
 * The sender of a message.
 *
 * @param routerId the router's number, unsigned; that of a router which is named otherwise is a
 *     hash of its name
 * @param incarnation which run of that router, a later one having a greater number; {@link
 *     #FOREIGN} of a router that is not Kvasir, and sends neither numbers nor digests
 */
public record ReplicaOrigin(long routerId, long incarnation) {
    /** The incarnation of routers that have none. */
    public static final long FOREIGN = 0;

    /** Random numbers of routers, exact as a double, too. */
    private static final long IDS = (1L << 53) - 2;

    /**
     * Identity of a router that begins now.
     *
     * @param idOrNull its number; null for a random one
     */
    public static ReplicaOrigin ofNewRun(Long idOrNull, Instant now) {
        return new ReplicaOrigin(
                idOrNull == null ? 1 + (new SecureRandom().nextLong() & IDS) : idOrNull,
                ChronoUnit.MICROS.between(Instant.EPOCH, now));
    }

    /** Whether it is not Kvasir. */
    public boolean isForeign() {
        return incarnation == FOREIGN;
    }
}
