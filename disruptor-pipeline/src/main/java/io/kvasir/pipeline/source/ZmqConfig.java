package io.kvasir.pipeline.source;

/**
 * Sizes and times of connections to event publishers.
 *
 * @param pollers threads that own the connections
 * @param handshakeMs longest time from the begin of a connect to the end of ZMTP's handshake
 * @param reconnectMs delay before the first further try to connect; it doubles with each
 * @param reconnectMaxMs longest delay between tries
 * @param maxMessageBytes largest message accepted
 * @param waitingMessages live messages of one source that may wait while it is replayed; further
 *     ones are dropped and asked for later
 * @param waitingBytes bytes of them
 * @param receiveBytes bytes of incomplete and waiting messages of all sources together
 * @param replays replays under way at a time
 * @param replayTimeoutMs longest silence of a replay endpoint
 * @param replayAttempts how often a replay is asked for before it is given up
 * @param tailCheckMs time after a connect at which missed newest messages are asked for, 0 = never
 */
public record ZmqConfig(
        int pollers,
        int handshakeMs,
        int reconnectMs,
        int reconnectMaxMs,
        long maxMessageBytes,
        int waitingMessages,
        long waitingBytes,
        long receiveBytes,
        int replays,
        int replayTimeoutMs,
        int replayAttempts,
        int tailCheckMs) {
    private static final int CPUS_PER_POLLER = 8;
    private static final int MAX_DEFAULT_POLLERS = 2;
    private static final long HEAP_SHARE = 8;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of range
     */
    public ZmqConfig {
        atLeastOne("pollers", pollers);
        atLeastOne("handshakeMs", handshakeMs);
        atLeastOne("reconnectMs", reconnectMs);
        atLeastOne("maxMessageBytes", maxMessageBytes);
        atLeastOne("waitingMessages", waitingMessages);
        atLeastOne("waitingBytes", waitingBytes);
        atLeastOne("receiveBytes", receiveBytes);
        atLeastOne("replays", replays);
        atLeastOne("replayTimeoutMs", replayTimeoutMs);
        atLeastOne("replayAttempts", replayAttempts);
        if (reconnectMaxMs < reconnectMs) {
            throw new IllegalArgumentException(
                    "reconnectMaxMs must be reconnectMs or more: "
                            + reconnectMaxMs
                            + ", "
                            + reconnectMs);
        }
        if (tailCheckMs < 0) {
            throw new IllegalArgumentException("tailCheckMs must be 0 or more: " + tailCheckMs);
        }
    }

    private static void atLeastOne(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + " must be 1 or more: " + value);
        }
    }

    /**
     * One poller below 16 processors, else two; an eighth of the heap, at most 256 MiB, for
     * messages that wait.
     */
    public static ZmqConfig defaults() {
        final Runtime machine = Runtime.getRuntime();
        return new ZmqConfig(
                Math.clamp(machine.availableProcessors() / CPUS_PER_POLLER, 1, MAX_DEFAULT_POLLERS),
                2_000,
                100,
                5_000,
                64L << 20,
                65_536,
                32L << 20,
                Math.min(256L << 20, machine.maxMemory() / HEAP_SHARE),
                16,
                2_000,
                3,
                1_000);
    }

    /** The same with another number of threads. */
    public ZmqConfig withPollers(int threads) {
        return new ZmqConfig(
                threads,
                handshakeMs,
                reconnectMs,
                reconnectMaxMs,
                maxMessageBytes,
                waitingMessages,
                waitingBytes,
                receiveBytes,
                replays,
                replayTimeoutMs,
                replayAttempts,
                tailCheckMs);
    }

    /** The same with other times of connecting. */
    public ZmqConfig withConnects(int handshake, int reconnect, int reconnectMax) {
        return new ZmqConfig(
                pollers,
                handshake,
                reconnect,
                reconnectMax,
                maxMessageBytes,
                waitingMessages,
                waitingBytes,
                receiveBytes,
                replays,
                replayTimeoutMs,
                replayAttempts,
                tailCheckMs);
    }

    /** The same with other limits of what is received. */
    public ZmqConfig withLimits(
            long messageBytes, int messagesWaiting, long bytesWaiting, long bytesOfAll) {
        return new ZmqConfig(
                pollers,
                handshakeMs,
                reconnectMs,
                reconnectMaxMs,
                messageBytes,
                messagesWaiting,
                bytesWaiting,
                bytesOfAll,
                replays,
                replayTimeoutMs,
                replayAttempts,
                tailCheckMs);
    }

    /** The same with another number of replays at a time and other times of them. */
    public ZmqConfig withReplays(int atATime, int timeoutMs, int attempts, int tailMs) {
        return new ZmqConfig(
                pollers,
                handshakeMs,
                reconnectMs,
                reconnectMaxMs,
                maxMessageBytes,
                waitingMessages,
                waitingBytes,
                receiveBytes,
                atATime,
                timeoutMs,
                attempts,
                tailMs);
    }
}
