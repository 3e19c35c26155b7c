package io.kvasir.sim.config;

import java.time.Duration;
import java.util.Objects;

/**
 * How an engine takes part in hand-offs of blocks. Durations are on the engine's clock and not
 * divided by the speed-up, the time of a transfer is.
 *
 * @param role what the engine is meant for; with {@link SimRole#BOTH} the rest means nothing
 * @param protocol how it agrees with others
 * @param sidePort port of a prefill engine at which others pull its blocks, for SGLang the
 *     bootstrap port; 0 takes a free one
 * @param lease how long a prefill's blocks are held for a decode that does not come
 * @param patience how long a decode waits for an answer from the side port, and with SGLang for the
 *     prefill to end; then its request fails
 * @param bytesPerSecond rate at which a rank receives blocks, one transfer after the other
 * @param bytesPerToken size of the keys and values of a token in transfers
 * @param strict whether a decode fails when the blocks that it pulled were not those of its prompt,
 *     instead of answering with another text as real engines do
 * @param bytes real keys and values that move and are checked, equal on both engines
 */
public record HandoffConfig(
        SimRole role,
        SimHandoff protocol,
        int sidePort,
        Duration lease,
        Duration patience,
        double bytesPerSecond,
        long bytesPerToken,
        boolean strict,
        KvBytes bytes) {
    /** An engine without hand-offs. */
    public static final HandoffConfig NONE =
            new HandoffConfig(
                    SimRole.BOTH,
                    SimHandoff.VLLM,
                    0,
                    Duration.ofSeconds(30),
                    Duration.ofSeconds(5),
                    25e9,
                    128 << 10,
                    false,
                    KvBytes.NONE);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the value and its limit
     */
    public HandoffConfig {
        Objects.requireNonNull(role, "role");
        Objects.requireNonNull(protocol, "protocol");
        Objects.requireNonNull(bytes, "bytes");
        if (sidePort < 0) {
            throw new IllegalArgumentException("sidePort=" + sidePort + " must be at least 0");
        }
        notNegative("lease", lease);
        notNegative("patience", patience);
        if (!(bytesPerSecond > 0)) {
            throw new IllegalArgumentException(
                    "bytesPerSecond=" + bytesPerSecond + " must be positive");
        }
        if (bytesPerToken < 0) {
            throw new IllegalArgumentException(
                    "bytesPerToken=" + bytesPerToken + " must be at least 0");
        }
    }

    private static void notNegative(String name, Duration value) {
        if (value.isNegative()) {
            throw new IllegalArgumentException(name + "=" + value + " must be at least 0");
        }
    }

    /**
     * The hand-off of an engine with default times.
     *
     * @param role what it is meant for
     * @param protocol how it agrees with others
     * @return a configuration with a free side port
     */
    public static HandoffConfig of(SimRole role, SimHandoff protocol) {
        final Edit edit = new Edit(NONE);
        edit.role = role;
        edit.protocol = protocol;
        return edit.build();
    }

    /**
     * Changes the side port.
     *
     * @param value 0 or a port
     * @return a copy
     */
    public HandoffConfig withSidePort(int value) {
        final Edit edit = new Edit(this);
        edit.sidePort = value;
        return edit.build();
    }

    /**
     * Changes the lease.
     *
     * @param value not negative
     * @return a copy
     */
    public HandoffConfig withLease(Duration value) {
        final Edit edit = new Edit(this);
        edit.lease = value;
        return edit.build();
    }

    /**
     * Changes the patience.
     *
     * @param value not negative
     * @return a copy
     */
    public HandoffConfig withPatience(Duration value) {
        final Edit edit = new Edit(this);
        edit.patience = value;
        return edit.build();
    }

    /**
     * Changes the rate of transfers.
     *
     * @param value bytes per second, positive
     * @return a copy
     */
    public HandoffConfig withBytesPerSecond(double value) {
        final Edit edit = new Edit(this);
        edit.bytesPerSecond = value;
        return edit.build();
    }

    /**
     * Changes the size of a token.
     *
     * @param value bytes, not negative
     * @return a copy
     */
    public HandoffConfig withBytesPerToken(long value) {
        final Edit edit = new Edit(this);
        edit.bytesPerToken = value;
        return edit.build();
    }

    /**
     * Changes what wrong blocks lead to.
     *
     * @param value whether the request fails
     * @return a copy
     */
    public HandoffConfig withStrict(boolean value) {
        final Edit edit = new Edit(this);
        edit.strict = value;
        return edit.build();
    }

    /**
     * Gives blocks real bytes, which a decode checks before it generates.
     *
     * @param value equal on both engines
     * @return a copy
     */
    public HandoffConfig withBytes(KvBytes value) {
        final Edit edit = new Edit(this);
        edit.bytes = value;
        return edit.build();
    }

    /** A copy in which single values can be changed. */
    private static final class Edit {
        private SimRole role;
        private SimHandoff protocol;
        private int sidePort;
        private Duration lease;
        private Duration patience;
        private double bytesPerSecond;
        private long bytesPerToken;
        private boolean strict;
        private KvBytes bytes;

        private Edit(HandoffConfig from) {
            role = from.role;
            protocol = from.protocol;
            sidePort = from.sidePort;
            lease = from.lease;
            patience = from.patience;
            bytesPerSecond = from.bytesPerSecond;
            bytesPerToken = from.bytesPerToken;
            strict = from.strict;
            bytes = from.bytes;
        }

        private HandoffConfig build() {
            return new HandoffConfig(
                    role,
                    protocol,
                    sidePort,
                    lease,
                    patience,
                    bytesPerSecond,
                    bytesPerToken,
                    strict,
                    bytes);
        }
    }
}
