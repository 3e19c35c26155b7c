package io.kvasir.panama.nixl;

/**
 * How an agent runs.
 *
 * @param progressThread whether NIXL drives its backends from a thread of its own; without it the
 *     owner must keep polling, or peers wait for ever
 * @param threadSync locking inside the agent
 * @param progressDelayMicros pause of the progress thread between rounds, in microseconds, at least
 *     0
 * @param captureTelemetry whether transfers are timed
 */
public record NixlAgentConfig(
        boolean progressThread,
        ThreadSync threadSync,
        long progressDelayMicros,
        boolean captureTelemetry) {

    /** A progress thread and one lock: right for an agent that several threads may call. */
    public static final NixlAgentConfig DEFAULT =
            new NixlAgentConfig(true, ThreadSync.STRICT, 100, false);

    /** Locking inside an agent. */
    public enum ThreadSync {
        /** No lock: the caller makes one call at a time. */
        NONE(0),
        /** One lock for everything, held through a transfer that copies on the caller's thread. */
        STRICT(1),
        /** Shared for transfers, exclusive for registration and metadata. */
        READ_WRITE(2);

        private final int code;

        ThreadSync(int code) {
            this.code = code;
        }

        int code() {
            return code;
        }
    }

    /** Checks the values. */
    public NixlAgentConfig {
        if (threadSync == null) {
            throw new IllegalArgumentException("threadSync is null");
        }
        if (progressDelayMicros < 0) {
            throw new IllegalArgumentException(
                    "progressDelayMicros=" + progressDelayMicros + ", must be at least 0");
        }
    }
}
