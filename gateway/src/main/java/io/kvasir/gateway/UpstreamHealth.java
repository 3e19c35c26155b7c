package io.kvasir.gateway;

import java.util.Locale;

/**
 * Whether one server can be used: a circuit breaker that opens on faults of requests or probes and
 * closes again by way of a trial. Thread-safe.
 *
 * <pre>
 *   UNKNOWN --probe ok--> UP --fault--> DOWN --probe ok--> TRIAL --answer--> UP
 *                                        ^-----------fault-----'
 * </pre>
 *
 * A refused connection opens it at once; other faults when several come in a row. Refusals for load
 * (429, 503) are no faults.
 */
final class UpstreamHealth {
    /** Faults in a row, other than a refused connection, that open the breaker. */
    static final int FAULTS_IN_A_ROW = 3;

    /** State of the breaker. */
    enum State {
        /** Not contacted yet; may be used. */
        UNKNOWN,
        /** Answers. */
        UP,
        /** Not to be used until a probe succeeds. */
        DOWN,
        /** A probe succeeded; the next fault opens it again at once. */
        TRIAL;

        String spelling() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    private State state = State.UNKNOWN;
    private int requestFaults;
    private int probeFaults;
    private String lastError;

    /** A request ended with an answer. */
    synchronized void answered() {
        requestFaults = 0;
        if (state != State.DOWN) {
            state = State.UP;
        }
    }

    /**
     * A request failed.
     *
     * @return true if this took the server out of use
     */
    synchronized boolean fault(UpstreamFault fault, String description) {
        if (!fault.unhealthy()) {
            return false;
        }
        lastError = description;
        requestFaults++;
        if (state == State.DOWN) {
            return false;
        }
        if (fault == UpstreamFault.CONNECT
                || state == State.TRIAL
                || requestFaults >= FAULTS_IN_A_ROW) {
            state = State.DOWN;
            return true;
        }
        return false;
    }

    /**
     * A probe of {@code GET /health} succeeded.
     *
     * @return true if this is a first contact: at start, or after the server was down
     */
    synchronized boolean probed() {
        probeFaults = 0;
        if (state == State.UNKNOWN) {
            state = State.UP;
            return true;
        }
        if (state == State.DOWN) {
            state = State.TRIAL;
            requestFaults = 0;
            return true;
        }
        return false;
    }

    /**
     * A probe failed.
     *
     * @return true if this took the server out of use
     */
    synchronized boolean probeFailed(UpstreamFault fault, String description) {
        lastError = description;
        probeFaults++;
        if (state == State.DOWN
                || (fault != UpstreamFault.CONNECT && probeFaults < FAULTS_IN_A_ROW)) {
            return false;
        }
        state = State.DOWN;
        return true;
    }

    synchronized State state() {
        return state;
    }

    synchronized boolean usable() {
        return state != State.DOWN;
    }

    /** What failed last, null if nothing ever did. */
    synchronized String lastError() {
        return lastError;
    }
}
