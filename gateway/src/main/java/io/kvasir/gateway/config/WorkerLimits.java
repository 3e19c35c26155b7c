package io.kvasir.gateway.config;

import java.util.List;
import java.util.Map;

/**
 * What an engine can take, of one rank; for the limits of load beyond which it is busy.
 *
 * @param kvBlocks blocks of its cache; 0: what it states on its page of metrics
 * @param maxBatchedTokens most tokens of one step; 0 where it is not known
 * @param maxRequests most requests that it runs at once; 0 where it is not known
 */
public record WorkerLimits(long kvBlocks, long maxBatchedTokens, long maxRequests) {
    /** Nothing is said. */
    public static final WorkerLimits UNKNOWN = new WorkerLimits(0, 0, 0);

    private static final String KV_BLOCKS = "kv-blocks";
    private static final String MAX_BATCHED_TOKENS = "max-batched-tokens";
    private static final String MAX_REQUESTS = "max-requests";
    static final List<String> KEYS = List.of(KV_BLOCKS, MAX_BATCHED_TOKENS, MAX_REQUESTS);

    static WorkerLimits of(Map<String, String> values) {
        return new WorkerLimits(
                number(values, KV_BLOCKS),
                number(values, MAX_BATCHED_TOKENS),
                number(values, MAX_REQUESTS));
    }

    private static long number(Map<String, String> values, String key) {
        final String text = values.getOrDefault(key, "0");
        try {
            final long number = Long.parseLong(text);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException e) {
            // refused below
        }
        throw new IllegalArgumentException(key + "=" + text + " is no number of 0 or more");
    }
}
