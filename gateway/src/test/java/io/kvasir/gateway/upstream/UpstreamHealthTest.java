package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.eclipse.jetty.io.EofException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.ConnectException;
import java.net.SocketException;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;

import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;

class UpstreamHealthTest {
    private static final int FAULTS = 4;
    private static final int PERCENT = 50;
    private static final long WINDOW_NS = 1_000;
    private static final long HOLD_NS = 300;
    private static final int SUCCESSES = 3;
    private static final int PROBE_FAULTS = 3;
    private static final int PROBE_SUCCESSES = 2;

    private final UpstreamHealth health =
            new UpstreamHealth(
                    () ->
                            new BreakerRules(
                                    FAULTS,
                                    PERCENT,
                                    WINDOW_NS,
                                    HOLD_NS,
                                    SUCCESSES,
                                    PROBE_FAULTS,
                                    PROBE_SUCCESSES));
    private long nowNs = 1 << 20;

    private boolean eject() {
        boolean ejected = false;
        for (int request = 0; request < FAULTS; request++) {
            ejected |= health.faulted(request, "status 500", nowNs);
        }
        return ejected;
    }

    @Test
    void aRefusedConnectionTakesItOutAtOnce() {
        assertTrue(health.usable());
        assertTrue(health.refused("refused"));
        assertFalse(health.usable());
        assertEquals("refused", health.lastError());
        assertFalse(health.refused("refused"), "it is out already");
    }

    @Test
    void manyDifferentRequestsThatFailEjectIt() {
        for (int request = 0; request < FAULTS - 1; request++) {
            assertFalse(health.faulted(request, "status 500", nowNs));
        }
        assertTrue(health.usable());
        assertTrue(health.faulted(FAULTS, "status 500", nowNs));
        assertEquals(UpstreamHealth.State.EJECTED, health.state());
    }

    @Test
    void oneRequestThatFailsAThousandTimesDoesNot() {
        for (int i = 0; i < 1000; i++) {
            assertFalse(health.faulted(7, "status 500", nowNs));
        }
        assertTrue(health.usable());
    }

    @Test
    void faultsAmongMoreGoodAnswersDoNot() {
        for (int request = 0; request < 1000; request++) {
            health.answered(nowNs);
            health.answered(nowNs);
            assertFalse(health.faulted(request, "status 500", nowNs));
        }
        assertTrue(health.usable());
    }

    @Test
    void faultsOfLongAgoDoNotCount() {
        for (int request = 0; request < 1000; request++) {
            assertFalse(health.faulted(request, "status 500", nowNs));
            nowNs += WINDOW_NS / 2;
        }
        assertTrue(health.usable());
    }

    @Test
    void goodAnswersOfLongAgoDoNotCountEither() {
        for (int i = 0; i < 1000; i++) {
            health.answered(nowNs);
        }
        nowNs += WINDOW_NS;
        assertTrue(eject());
    }

    @Test
    void anEjectedOneIsTriedAfterTheHoldAndUpAfterSeveralAnswers() {
        eject();
        nowNs += HOLD_NS - 1;
        assertNull(health.probed(nowNs));
        assertFalse(health.usable());
        nowNs += 1;
        assertEquals(UpstreamHealth.State.EJECTED, health.probed(nowNs));
        assertEquals(UpstreamHealth.State.TRIAL, health.state());
        for (int i = 0; i < SUCCESSES; i++) {
            assertEquals(UpstreamHealth.State.TRIAL, health.state());
            health.answered(nowNs);
        }
        assertEquals(UpstreamHealth.State.UP, health.state());
    }

    @Test
    void aTrialNeedsDifferentFaultsTooToFail() {
        eject();
        nowNs += HOLD_NS;
        health.probed(nowNs);
        for (int i = 0; i < 100; i++) {
            assertFalse(health.faulted(7, "status 500", nowNs));
        }
        assertTrue(health.usable());
        assertTrue(eject());
    }

    @Test
    void anEjectedOneThatIsRefusedIsDown() {
        eject();
        assertTrue(health.refused("refused"));
        nowNs += HOLD_NS;
        assertNull(health.probed(nowNs), "one good probe of " + PROBE_SUCCESSES);
        assertEquals(UpstreamHealth.State.DOWN, health.probed(nowNs));
        assertEquals(UpstreamHealth.State.TRIAL, health.state());
    }

    @Test
    void anAnswerThatWasUnderWayDoesNotBringADeadWorkerBack() {
        health.refused("refused");
        health.answered(nowNs);
        assertFalse(health.usable());
    }

    @ParameterizedTest
    @ValueSource(strings = {"TIMEOUT", "CLOSED", "STATUS", "PROTOCOL"})
    void probesThatFailNeedToDoSoInARow(UpstreamFault fault) {
        assertEquals(UpstreamHealth.State.UNKNOWN, health.probed(nowNs));
        assertFalse(health.probeFailed(fault, "slow"));
        assertFalse(health.probeFailed(fault, "slow"));
        assertNull(health.probed(nowNs));
        assertFalse(health.probeFailed(fault, "slow"));
        assertFalse(health.probeFailed(fault, "slow"));
        assertTrue(health.usable());
        assertFalse(health.isSilent());
        assertTrue(health.probeFailed(fault, "slow"));
        assertFalse(health.usable());
        assertEquals(fault != UpstreamFault.STATUS, health.isSilent());
    }

    @Test
    void anAnswerToAProbeBeginsTheCountOfSilentOnesAgain() {
        for (int i = 0; i < 10; i++) {
            for (int silent = 1; silent < PROBE_FAULTS; silent++) {
                health.probeFailed(UpstreamFault.TIMEOUT, "slow");
            }
            health.probeFailed(UpstreamFault.STATUS, "status 503");
            assertFalse(health.isSilent());
        }
        assertFalse(health.usable());
        for (int silent = 0; silent < PROBE_FAULTS; silent++) {
            health.probeFailed(UpstreamFault.TIMEOUT, "slow");
        }
        assertTrue(health.isSilent());
    }

    @Test
    void aServerThatSendsAnythingIsNotDeadHoweverSilentItIsToProbes() {
        for (int i = 0; i < 100; i++) {
            health.received();
            assertFalse(health.probeFailed(UpstreamFault.TIMEOUT, "slow"));
        }
        assertTrue(health.usable());
        assertFalse(health.isSilent());
    }

    @Test
    void aProbeThatTheGatewayCouldNotSendSaysNothing() {
        for (int i = 0; i < 100; i++) {
            assertFalse(health.probeFailed(UpstreamFault.DESCRIPTORS, "Too many open files"));
            assertFalse(health.probeFailed(UpstreamFault.LOCAL, "full"));
        }
        assertNull(health.lastError());
        assertTrue(health.usable());
        assertFalse(health.isSilent());
    }

    @Test
    void aRefusedProbeTakesItOutAtOnce() {
        assertTrue(health.probeFailed(UpstreamFault.CONNECT, "refused"));
        assertFalse(health.usable());
        assertFalse(health.isSilent());
    }

    @ParameterizedTest
    @CsvSource({
        "200,",
        "302,",
        "400,",
        "404,",
        "429, BUSY",
        "500, STATUS",
        "501,",
        "502, STATUS",
        "503, BUSY",
        "504, STATUS",
        "505,",
        "529, BUSY",
        "599, STATUS"
    })
    void anAnswersStatusSaysWhetherItIsAFault(int status, UpstreamFault fault) {
        assertEquals(fault, UpstreamFault.ofStatus(status));
    }

    @Test
    void failuresOfTheClientAreSortedByTheirCause() {
        assertEquals(
                UpstreamFault.CONNECT,
                UpstreamFault.of(new ExecutionException(new ConnectException("refused"))));
        assertEquals(UpstreamFault.TIMEOUT, UpstreamFault.of(new TimeoutException("idle")));
        assertEquals(UpstreamFault.LOCAL, UpstreamFault.of(new RejectedExecutionException("full")));
        for (String lack : List.of("Too many open files", "Too many open files in system")) {
            assertEquals(
                    UpstreamFault.DESCRIPTORS,
                    UpstreamFault.of(
                            new ExecutionException(
                                    new java.io.IOException(
                                            "Could not connect", new SocketException(lack)))));
        }
        assertEquals(UpstreamFault.CLOSED, UpstreamFault.of(new java.io.IOException("reset")));
        assertEquals(
                UpstreamFault.DEAD,
                UpstreamFault.of(new ExecutionException(new FoundDeadException("silent"))));
    }

    @Test
    void aHandshakeThatFailsIsNoConnection() {
        final SSLException refused =
                new SSLHandshakeException("(certificate_required) Received fatal alert");
        final Throwable wrapped = new EofException(refused);
        assertEquals(UpstreamFault.CONNECT, UpstreamFault.of(wrapped));
        assertEquals(UpstreamFault.CONNECT, UpstreamFault.ofUnwritten(wrapped));
        assertEquals(refused.getMessage(), UpstreamFault.describe(wrapped));
        final SSLException other = new SSLException("Unrecognized SSL message");
        assertEquals(UpstreamFault.CONNECT, UpstreamFault.ofUnwritten(new EofException(other)));
        assertEquals(UpstreamFault.CLOSED, UpstreamFault.of(new EofException(other)));
        assertEquals(other.getMessage(), UpstreamFault.describe(new EofException(other)));
    }
}
