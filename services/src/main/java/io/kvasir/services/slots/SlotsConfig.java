package io.kvasir.services.slots;

import java.time.Duration;
import java.util.Objects;

/**
 * What a slot tracker is started with.
 *
 * @param host address to listen on
 * @param port to listen on; 0 = any free one
 * @param maxWorkers ranks of all workers that can be registered at once
 * @param maxRequests requests of all workers that can run at once
 * @param maxActiveBlocks prompt blocks in use, counted once a worker; what is beyond them counts
 *     for each request
 * @param requestTimeout how long a request counts at most; zero = until it is freed
 */
public record SlotsConfig(
        String host,
        int port,
        int maxWorkers,
        int maxRequests,
        long maxActiveBlocks,
        Duration requestTimeout) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if the timeout is negative; the other limits are checked
     *     where the tables are made
     */
    public SlotsConfig {
        Objects.requireNonNull(host, "host");
        if (requestTimeout.isNegative()) {
            throw new IllegalArgumentException(
                    "requestTimeout must not be negative: " + requestTimeout);
        }
    }

    /** Usual sizes: 4,096 ranks, 65,536 requests that share 4 Mi blocks, five minutes. */
    public static SlotsConfig of(String host, int port) {
        return new SlotsConfig(host, port, 4_096, 65_536, 4L << 20, Duration.ofMinutes(5));
    }

    /** The same with other sizes. */
    public SlotsConfig withSizes(int ranks, int requests, long blocks) {
        return new SlotsConfig(host, port, ranks, requests, blocks, requestTimeout);
    }

    /** The same with another time. */
    public SlotsConfig withRequestTimeout(Duration longest) {
        return new SlotsConfig(host, port, maxWorkers, maxRequests, maxActiveBlocks, longest);
    }
}
