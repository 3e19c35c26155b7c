package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.net.ConnectException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

class UpstreamHealthTest {
    private final UpstreamHealth health = new UpstreamHealth();

    @Test
    void aRefusedConnectionTakesItOutAtOnce() {
        assertTrue(health.usable());
        assertTrue(health.fault(UpstreamFault.CONNECT, "refused"));
        assertFalse(health.usable());
        assertEquals("refused", health.lastError());
        assertFalse(health.fault(UpstreamFault.CONNECT, "refused"), "it is out already");
    }

    @Test
    void otherFaultsTakeItOutWhenSeveralComeInARow() {
        assertFalse(health.fault(UpstreamFault.CLOSED, "1"));
        assertFalse(health.fault(UpstreamFault.STATUS, "2"));
        health.answered();
        assertFalse(health.fault(UpstreamFault.TIMEOUT, "1"));
        assertFalse(health.fault(UpstreamFault.TIMEOUT, "2"));
        assertTrue(health.fault(UpstreamFault.TIMEOUT, "3"));
        assertEquals(UpstreamHealth.State.DOWN, health.state());
    }

    @Test
    void refusalsForLoadAreNoFaults() {
        for (int i = 0; i < 100; i++) {
            assertFalse(health.fault(UpstreamFault.BUSY, "429"));
            assertFalse(health.fault(UpstreamFault.LOCAL, "queue"));
        }
        assertTrue(health.usable());
    }

    @Test
    void aProbeOpensATrialWhichTheNextRequestDecides() {
        health.fault(UpstreamFault.CONNECT, "refused");
        assertTrue(health.probed(), "first contact after the fall");
        assertEquals(UpstreamHealth.State.TRIAL, health.state());
        assertTrue(health.usable());
        assertTrue(health.fault(UpstreamFault.CLOSED, "again"), "one fault ends a trial");
        assertTrue(health.probed());
        health.answered();
        assertEquals(UpstreamHealth.State.UP, health.state());
        assertFalse(health.probed(), "known already");
    }

    @Test
    void anAnswerThatWasUnderWayDoesNotBringADeadWorkerBack() {
        health.fault(UpstreamFault.CONNECT, "refused");
        health.answered();
        assertFalse(health.usable());
    }

    @Test
    void probesThatTimeOutNeedToDoSoInARow() {
        assertTrue(health.probed());
        assertFalse(health.probeFailed(UpstreamFault.TIMEOUT, "slow"));
        assertFalse(health.probeFailed(UpstreamFault.TIMEOUT, "slow"));
        assertFalse(health.probed());
        assertFalse(health.probeFailed(UpstreamFault.TIMEOUT, "slow"));
        assertTrue(health.usable());
        assertTrue(health.probeFailed(UpstreamFault.CONNECT, "refused"));
        assertFalse(health.usable());
    }

    @Test
    void failuresOfTheClientAreSortedByTheirCause() {
        assertEquals(
                UpstreamFault.CONNECT,
                UpstreamFault.of(new ExecutionException(new ConnectException("refused"))));
        assertEquals(UpstreamFault.TIMEOUT, UpstreamFault.of(new TimeoutException("idle")));
        assertEquals(UpstreamFault.LOCAL, UpstreamFault.of(new RejectedExecutionException("full")));
        assertEquals(UpstreamFault.CLOSED, UpstreamFault.of(new java.io.IOException("reset")));
    }
}
