package io.kvasir.testsupport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import org.junit.jupiter.api.Test;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeoutException;

class HungTestTest {
    /** Waits for ever for what a process never says, if this class runs it. */
    static class Hanging {
        static boolean wanted;
        static Process process; // null before the test

        @Test
        void waitsForALine() throws IOException {
            assumeTrue(wanted, "run by HungTestTest alone");
            process = new ProcessBuilder("sleep", "3600").start();
            process.inputReader(StandardCharsets.US_ASCII).readLine();
        }
    }

    @Test
    void aTestThatWaitsForAProcessFailsAtItsTimeout() {
        final LauncherDiscoveryRequest request =
                LauncherDiscoveryRequestBuilder.request()
                        .selectors(selectClass(Hanging.class))
                        .configurationParameter("junit.jupiter.execution.timeout.default", "200 ms")
                        .configurationParameter(
                                "junit.jupiter.extensions.autodetection.enabled", "true")
                        .build();
        final SummaryGeneratingListener listener = new SummaryGeneratingListener();
        Hanging.wanted = true;
        LauncherFactory.create().execute(request, listener);
        Hanging.wanted = false;
        assertEquals(1, listener.getSummary().getFailures().size());
        assertInstanceOf(
                TimeoutException.class,
                listener.getSummary().getFailures().getFirst().getException());
        assertFalse(Hanging.process.isAlive());
    }
}
