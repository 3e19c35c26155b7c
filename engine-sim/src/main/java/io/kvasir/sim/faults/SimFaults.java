package io.kvasir.sim.faults;

import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.SidePort;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.PullStage;

import java.io.IOException;
import java.time.Duration;

/**
 * Faults on demand. Any thread; each call takes effect before it returns, those that count requests
 * from the next request on.
 */
public final class SimFaults {
    private final StepLoop loop;
    private final InjectedFaults injected;
    private final SidePort sidePort;

    /**
     * Makes the faults of an engine.
     *
     * @param sidePort null for an engine that offers no blocks
     */
    public SimFaults(StepLoop loop, InjectedFaults injected, SidePort sidePort) {
        this.loop = loop;
        this.injected = injected;
        this.sidePort = sidePort;
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
        injected.fail(status, count);
    }

    /**
     * Cuts the connection of the next streamed answers after about half of their tokens.
     *
     * @param count streams; replaces what was left of a former call
     */
    public void disconnectMidStream(int count) {
        injected.cut(count);
    }

    /**
     * Lets the next prefills for other engines go wrong.
     *
     * @param fault how
     * @param count prefills; replaces what was left of a former call
     */
    public void handoffs(HandoffFault fault, int count) {
        injected.set(fault, count);
    }

    /**
     * Lets the next pulls of this decode engine stand still for a while.
     *
     * @param stage where; each stage has its own count and duration
     * @param duration on the engine's clock
     * @param count pulls; replaces what was left of a former call
     */
    public void stallPulls(PullStage stage, Duration duration, int count) {
        injected.stall(stage, duration, count);
    }

    /**
     * Opens or closes the side port of a prefill engine; closing it cuts its connections.
     *
     * @param open whether it shall be open
     * @throws IllegalStateException if the engine has no side port or cannot bind it again
     */
    public void sidePort(boolean open) {
        if (sidePort == null) {
            throw new IllegalStateException("no side port; only prefill engines have one");
        }
        if (!open) {
            sidePort.close();
            return;
        }
        try {
            sidePort.open();
        } catch (IOException e) {
            throw new IllegalStateException("cannot bind the side port " + sidePort.port(), e);
        }
    }
}
