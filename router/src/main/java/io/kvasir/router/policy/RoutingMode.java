package io.kvasir.router.policy;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** How a worker is chosen among the eligible ones. */
public enum RoutingMode {
    /** Cheapest by cached prefix and load; see {@link CostModel}. */
    KV,
    /** Each eligible worker in turn. */
    ROUND_ROBIN,
    /** Uniformly at random among the eligible workers. */
    RANDOM,
    /** Of two at random the one with fewer requests, then with less load. */
    POWER_OF_TWO,
    /**
     * The one with the least load, whatever it holds of the prompt: blocks to prefill and blocks in
     * use.
     */
    LEAST_LOADED,
    /** The one with the fewest requests. */
    LEAST_CONNECTIONS,
    /**
     * The one that the request's session, or without one the first block of its prompt, is hashed
     * to, among those that run no more than their share of the requests: {@code
     * RouterSettings.HASH_LOAD_FACTOR}.
     */
    CONSISTENT_HASH,
    /** The worker that the request names; a request without a pinned worker is refused. */
    DIRECT;

    private final String spelling = name().toLowerCase(Locale.ROOT).replace('_', '-');

    /**
     * Parses the spelling used in flags, files and headers: the name in small letters, with dashes.
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
                "unknown routing mode '"
                        + text
                        + "'; one of: "
                        + Arrays.stream(values())
                                .map(RoutingMode::spelling)
                                .collect(Collectors.joining(", ")));
    }

    /**
     * The spelling used in flags, files, headers and metrics.
     *
     * @return lower case, words joined by {@code -}
     */
    public String spelling() {
        return spelling;
    }
}
