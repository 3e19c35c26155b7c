package io.kvasir.sim;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Faults on demand. Any thread; each call takes effect before it returns, those that count requests
 * from the next request on.
 */
public final class SimFaults {
    private final StepLoop loop;
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger cuts = new AtomicInteger();
    private volatile int failureStatus = 503;

    SimFaults(StepLoop loop) {
        this.loop = loop;
    }

    /**
     * Loses the next event messages of every rank on the wire: they are numbered and kept for
     * replay, but not sent.
     *
     * @param count messages per rank, on top of those still to be lost
     */
    public void dropEvents(int count) {
        loop.ask(
                () -> {
                    for (int r = 0; r < loop.ranks(); r++) {
                        loop.rank(r).dropMessages(count);
                    }
                    return true;
                });
    }

    /**
     * Restarts the engine: new block names, empty pools, event numbers from 0 on the same ports, an
     * empty replay buffer; connections of requests in flight are cut.
     *
     * @throws java.util.concurrent.CompletionException if the event ports cannot be bound again
     */
    public void restart() {
        loop.ask(
                () -> {
                    loop.restart();
                    return true;
                });
    }

    /**
     * Lets the engine compute nothing for a while; it still accepts requests.
     *
     * @param duration on the engine's clock, from now on
     */
    public void stall(Duration duration) {
        loop.ask(
                () -> {
                    loop.stall(duration.toNanos());
                    return true;
                });
    }

    /**
     * Answers the next completion requests with an error.
     *
     * @param status HTTP status, 400..599
     * @param count requests; replaces what was left of a former call
     * @throws IllegalArgumentException if the status is not an error
     */
    public void failRequests(int status, int count) {
        if (status < 400 || status > 599) {
            throw new IllegalArgumentException("status=" + status + " must be 400..599");
        }
        failureStatus = status;
        failures.set(count);
    }

    /**
     * Cuts the connection of the next streamed answers after about half of their tokens.
     *
     * @param count streams; replaces what was left of a former call
     */
    public void disconnectMidStream(int count) {
        cuts.set(count);
    }

    /** Status with which this request fails, or 0. */
    int nextFailure() {
        return take(failures) ? failureStatus : 0;
    }

    /** Whether this stream is cut. */
    boolean nextCut() {
        return take(cuts);
    }

    private static boolean take(AtomicInteger left) {
        return left.get() > 0 && left.getAndUpdate(n -> Math.max(0, n - 1)) > 0;
    }
}
