package io.kvasir.registry;

import java.time.Duration;

/** How long a lease may last without a renewal, in every store. Stateless. */
public final class LeaseTtl {
    /** The shortest. */
    public static final Duration LEAST = Duration.ofSeconds(1);

    /** The longest. */
    public static final Duration MOST = Duration.ofHours(1);

    private LeaseTtl() {}

    /**
     * Checks one.
     *
     * @throws IllegalArgumentException if it is out of range
     */
    public static void check(Duration ttl) {
        if (ttl.compareTo(LEAST) < 0 || ttl.compareTo(MOST) > 0) {
            throw new IllegalArgumentException("ttl=" + ttl + ", limits are 1 s..1 h");
        }
    }
}
