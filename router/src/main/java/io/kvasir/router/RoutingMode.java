package io.kvasir.router;

/** How a worker is chosen among the eligible ones. */
public enum RoutingMode {
    /** Cheapest by cached prefix and load; see {@link CostModel}. */
    KV,
    /** Each eligible worker in turn. */
    ROUND_ROBIN,
    /** Uniformly at random among the eligible workers. */
    RANDOM,
    /** The worker that the request names; a request without a pinned worker is refused. */
    DIRECT;

    /**
     * Parses the spelling used in flags, files and headers: {@code kv}, {@code round-robin}, {@code
     * random}, {@code direct}.
     *
     * @param text the spelling, any case, {@code -} or {@code _} between words
     * @return the mode
     * @throws IllegalArgumentException if no mode is spelled so; the message lists the modes
     */
    public static RoutingMode parse(String text) {
        for (RoutingMode mode : values()) {
            if (mode.spelling().equalsIgnoreCase(text.replace('_', '-'))) {
                return mode;
            }
        }
        throw new IllegalArgumentException(
                "unknown routing mode '" + text + "'; one of: kv, round-robin, random, direct");
    }

    /**
     * The spelling used in flags, files, headers and metrics.
     *
     * @return lower case, words joined by {@code -}
     */
    public String spelling() {
        return switch (this) {
            case KV -> "kv";
            case ROUND_ROBIN -> "round-robin";
            case RANDOM -> "random";
            case DIRECT -> "direct";
        };
    }
}
