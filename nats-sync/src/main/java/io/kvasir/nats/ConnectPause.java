package io.kvasir.nats;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Pauses between tries to connect, or to do what a connection is for: 200 ms after the first one,
 * twice as long after each further one, at most 2 s, each with ±25 % of jitter. A refused TLS
 * handshake costs both sides more than a refused connection, and both are refused for as long as
 * nothing is changed. One thread.
 */
public final class ConnectPause {
    private static final long FIRST_NS = Duration.ofMillis(200).toNanos();
    private static final long MOST_NS = Duration.ofSeconds(2).toNanos();

    private final Sleeper sleeper;
    private long middleNs; // of the next one

    /** How a pause is spent. */
    public interface Sleeper {
        /** Returns after it. */
        void sleep(long ns) throws InterruptedException;
    }

    /** Nothing was tried yet. */
    public ConnectPause() {
        this(TimeUnit.NANOSECONDS::sleep);
    }

    /** The same where pauses are spent in a way of the caller's. */
    public ConnectPause(Sleeper sleeper) {
        this.sleeper = sleeper;
        middleNs = FIRST_NS;
    }

    /** It has worked: the next pause is the first one again. */
    public void connected() {
        middleNs = FIRST_NS;
    }

    /**
     * Waits after a try that has failed.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile
     */
    public void await() throws InterruptedException {
        final long ns = middleNs;
        middleNs = Math.min(MOST_NS, 2 * ns);
        sleeper.sleep(around(ns));
    }

    private static long around(long ns) {
        return ns - ns / 4 + ThreadLocalRandom.current().nextLong(ns / 2 + 1);
    }

    /**
     * The pauses of the client, which makes a lost connection again by itself. Any thread.
     *
     * @param rounds how often all servers were tried since it was lost
     */
    static Duration afterRounds(long rounds) {
        long ns = FIRST_NS;
        for (long i = 1; i < rounds && ns < MOST_NS; i++) {
            ns *= 2;
        }
        return Duration.ofNanos(around(Math.min(MOST_NS, ns)));
    }
}
