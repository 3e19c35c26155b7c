package io.kvasir.nixl.exchange.zmq;

import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Limits of a {@link SideChannelExchange}.
 *
 * @param heartbeat how often each peer is asked, at least 1 ms; a change is seen that much later
 * @param silence how long a peer may not answer before its records are removed; longer than two
 *     heartbeats
 * @param maxPeers peers that can be known, 1..4096
 */
public record SideChannelConfig(Duration heartbeat, Duration silence, int maxPeers) {
    private static final int MOST_PEERS = 4096;
    private static final Duration LEAST_HEARTBEAT = Duration.ofMillis(1);

    /** Asks each 200 ms, believes in a peer for 2 s, knows 256. */
    public static final SideChannelConfig DEFAULT =
            new SideChannelConfig(Duration.ofMillis(200), Duration.ofSeconds(2), 256);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public SideChannelConfig {
        if (heartbeat.compareTo(LEAST_HEARTBEAT) < 0) {
            throw new IllegalArgumentException("heartbeat=" + heartbeat + ", at least 1 ms");
        }
        if (silence.compareTo(heartbeat) <= 0
                || silence.minus(heartbeat).compareTo(heartbeat) <= 0) {
            throw new IllegalArgumentException(
                    "silence=" + silence + " must be longer than two heartbeats of " + heartbeat);
        }
        if (maxPeers < 1 || maxPeers > MOST_PEERS) {
            throw new IllegalArgumentException(
                    "maxPeers=" + maxPeers + ", limits are 1.." + MOST_PEERS);
        }
    }

    /** At most the longest time that can be measured: 292 years. */
    long heartbeatNs() {
        return TimeUnit.NANOSECONDS.convert(heartbeat);
    }

    /** At most the longest time that can be measured: 292 years. */
    long silenceNs() {
        return TimeUnit.NANOSECONDS.convert(silence);
    }
}
