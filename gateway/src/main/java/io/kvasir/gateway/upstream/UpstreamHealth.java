package io.kvasir.gateway.upstream;

import java.util.Locale;
import java.util.function.Supplier;

/**
 * Whether one server can be used: a circuit breaker. Time comes with the calls; thread-safe.
 *
 * <pre>
 *   UNKNOWN --probe ok, or known--> UP --many different requests fail--> EJECTED
 *   UP, TRIAL, EJECTED --refused, or silent to probes--> DOWN
 *   DOWN --probes ok--> TRIAL --several answers--> UP
 *   EJECTED --hold over, probe ok--> TRIAL --many different requests fail--> EJECTED
 * </pre>
 *
 * A refused connection, or several probes in a row that fail, show that the server is not there. An
 * answer of any kind, and any byte of one, shows that it is. Whether its answers are good is judged
 * by their rate and by different requests, as one request may be what fails everywhere; refusals
 * for load are no faults.
 */
public final class UpstreamHealth {
    /** State of the breaker. */
    public enum State {
        /** Not contacted yet; may be used. */
        UNKNOWN,
        /** Answers. */
        UP,
        /** Not there: not to be used until probes succeed. */
        DOWN,
        /** Lives, but fails requests: left out for a while unless most others are left out too. */
        EJECTED,
        /** Probes succeeded; the faults that eject it need not be many of its answers. */
        TRIAL;

        /** As status and metrics write it. */
        public String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private final Supplier<BreakerRules> rules;
    private final FaultWindow window;
    private State state = State.UNKNOWN;
    private long ejectedNs;
    private int answersInTrial;
    private int probeFaults; // in a row
    private int silentProbes; // of these, in a row
    private int probeSuccesses;
    private String lastError;
    private volatile boolean received;

    /**
     * @param rules asked each time
     */
    UpstreamHealth(Supplier<BreakerRules> rules) {
        this.rules = rules;
        this.window = new FaultWindow(rules.get().windowNs());
    }

    /** Something came from the server; cheap enough for every chunk. */
    void received() {
        if (!received) {
            received = true;
        }
    }

    /** A request got an answer that is no fault. */
    synchronized void answered(long nowNs) {
        received = true;
        window.length(rules.get().windowNs());
        window.good(nowNs);
        if (state == State.UNKNOWN
                || (state == State.TRIAL && ++answersInTrial >= rules.get().successes())) {
            state = State.UP;
        }
    }

    /** The same engine has answered before, under another description. */
    synchronized void knownToAnswer() {
        if (state == State.UNKNOWN) {
            state = State.UP;
        }
    }

    /**
     * A request failed on a server that is there.
     *
     * @param request the same for requests that say the same
     * @return true if this ejected the server
     */
    synchronized boolean faulted(long request, String description, long nowNs) {
        final BreakerRules now = rules.get();
        lastError = description;
        window.length(now.windowNs());
        window.fault(request, nowNs);
        if (!isInUse()
                || window.faults() < now.faults()
                || (state != State.TRIAL && !window.faultsAreAtLeast(now.faultPercent()))) {
            return false;
        }
        state = State.EJECTED;
        ejectedNs = nowNs;
        return true;
    }

    /**
     * A connection was refused.
     *
     * @return true if this took the server out of use
     */
    synchronized boolean refused(String description) {
        lastError = description;
        return down();
    }

    /**
     * A probe of {@code GET /health} succeeded.
     *
     * @return the state before, where this changed it; else null
     */
    synchronized State probed(long nowNs) {
        probeFaults = 0;
        silentProbes = 0;
        final State before = state;
        switch (state) {
            case UNKNOWN -> state = State.UP;
            case DOWN -> {
                if (++probeSuccesses < rules.get().probeSuccesses()) {
                    return null;
                }
                beginTrial(nowNs);
            }
            case EJECTED -> {
                if (nowNs - ejectedNs < rules.get().holdNs()) {
                    return null;
                }
                beginTrial(nowNs);
            }
            case UP, TRIAL -> {
                return null;
            }
        }
        return before;
    }

    private void beginTrial(long nowNs) {
        state = State.TRIAL;
        answersInTrial = 0;
        window.clear(nowNs);
    }

    /**
     * A probe failed.
     *
     * @param fault anything but a refused connection must happen several times in a row
     * @return true if this took the server out of use
     */
    synchronized boolean probeFailed(UpstreamFault fault, String description) {
        if (fault.isOwn()) {
            return false; // the server was not asked
        }
        lastError = description;
        if (fault == UpstreamFault.STATUS) {
            silentProbes = 0; // what answers lives, and may finish what it has
        } else {
            if (received) {
                received = false; // it has sent something since the last probe failed, so it lives
                probeFaults = 0;
                silentProbes = 0;
            }
            silentProbes++;
        }
        probeFaults++;
        return (fault == UpstreamFault.CONNECT || probeFaults >= rules.get().probeFaults())
                && down();
    }

    /**
     * Whether so many probes in a row got no answer, without a byte of any other one in between,
     * that the server must be taken for dead.
     */
    synchronized boolean isSilent() {
        return silentProbes >= rules.get().probeFaults();
    }

    private boolean down() {
        probeSuccesses = 0;
        if (state == State.DOWN) {
            return false;
        }
        state = State.DOWN;
        return true;
    }

    private boolean isInUse() {
        return state != State.DOWN && state != State.EJECTED;
    }

    /** The state at this moment. */
    public synchronized State state() {
        return state;
    }

    synchronized boolean usable() {
        return isInUse();
    }

    /** What failed last, null if nothing ever did. */
    public synchronized String lastError() {
        return lastError;
    }
}
