package io.kvasir.gateway.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.upstream.UpstreamFault;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

/** How often and when a request is sent again, and by which settings. */
class RetryPolicyTest {
    private static RetryPolicy policy(int retries, boolean afterTimeout, double random) {
        return new RetryPolicy(
                new RetryPolicy.Rules(retries, 100, 1_000, afterTimeout), () -> random);
    }

    @ParameterizedTest
    @EnumSource(
            value = UpstreamFault.class,
            names = {"TIMEOUT", "UNSENDABLE", "MEMORY"},
            mode = EnumSource.Mode.EXCLUDE)
    void anyFaultIsFollowedByAsManyAttemptsAsAreSet(UpstreamFault fault) {
        final RetryPolicy policy = policy(2, false, 0);
        int attempts = 0;
        do {
            policy.begun();
            attempts++;
        } while (policy.allowsAnother(fault, true));
        assertEquals(3, attempts);
        assertEquals(3, policy.limit());
    }

    @Test
    void whatTheGatewayHasNoMemoryForIsNotComputedAgain() {
        final RetryPolicy policy = policy(2, true, 0);
        policy.begun();
        assertFalse(policy.allowsAnother(UpstreamFault.MEMORY, true));
    }

    @Test
    void withoutRetriesThereIsOneAttempt() {
        final RetryPolicy policy = policy(0, true, 0);
        policy.begun();
        assertFalse(policy.allowsAnother(UpstreamFault.CONNECT, false));
    }

    @Test
    void aRequestThatCannotBeWrittenIsNotTriedAgain() {
        final RetryPolicy policy = policy(2, true, 0);
        policy.begun();
        assertFalse(policy.allowsAnother(UpstreamFault.UNSENDABLE, false));
    }

    @Test
    void aRequestThatWasSentInFullIsNotRepeatedAfterATimeout() {
        final RetryPolicy policy = policy(2, false, 0);
        policy.begun();
        assertFalse(policy.allowsAnother(UpstreamFault.TIMEOUT, true));
        assertTrue(policy.allowsAnother(UpstreamFault.TIMEOUT, false));
    }

    @Test
    void unlessThatIsAskedFor() {
        final RetryPolicy policy = policy(2, true, 0);
        policy.begun();
        assertTrue(policy.allowsAnother(UpstreamFault.TIMEOUT, true));
    }

    @ParameterizedTest
    @CsvSource({
        "1, 0, 100",
        "1, 1, 50",
        "2, 0, 200",
        "3, 0.5, 300",
        "4, 0, 800",
        "5, 0, 1000",
        "100, 0, 1000",
        "100, 1, 500"
    })
    void theWaitDoublesUpToItsBoundAndHalfOfItIsRandom(int attempt, double random, long expected) {
        final RetryPolicy policy = policy(1000, false, random);
        for (int i = 0; i < attempt; i++) {
            policy.begun();
        }
        assertEquals(expected, policy.backoffNs());
    }

    @Test
    void noBackoffIsNoWait() {
        final RetryPolicy policy =
                new RetryPolicy(new RetryPolicy.Rules(2, 0, 1_000, false), () -> 0.5);
        policy.begun();
        assertEquals(0, policy.backoffNs());
    }

    /** Beside a thread that changes all of them, again and again. */
    @Test
    void theRulesOfARequestAreOfOneVersionOfTheSettings() throws Exception {
        final GatewayConfig one = config(1, 10, 100, false);
        final GatewayConfig other = config(2, 1_000, 10_000, true);
        final Set<RetryPolicy.Rules> versions = Set.of(rules(one), rules(other));
        final GatewayConfig running = one.running();
        final AtomicBoolean over = new AtomicBoolean();
        final Thread changes =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    while (!over.get()) {
                                        running.take(other);
                                        running.take(one);
                                    }
                                });
        try {
            for (int i = 0; i < Trials.of(50_000, 500_000); i++) {
                final RetryPolicy.Rules rules = rules(running);
                assertTrue(versions.contains(rules), rules::toString);
            }
        } finally {
            over.set(true);
            changes.join();
        }
    }

    private static RetryPolicy.Rules rules(GatewayConfig config) {
        return RetryPolicy.Rules.of(config.settings());
    }

    private static GatewayConfig config(
            int retries, int backoffMs, int maxBackoffMs, boolean afterTimeout) {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, "m")
                .worker(WorkerConfig.parse("http://h:1"))
                .set(GatewaySettings.RETRIES, retries)
                .set(GatewaySettings.RETRY_BACKOFF, Duration.ofMillis(backoffMs))
                .set(GatewaySettings.RETRY_BACKOFF_MAX, Duration.ofMillis(maxBackoffMs))
                .set(GatewaySettings.RETRY_AFTER_TIMEOUT, afterTimeout)
                .build();
    }
}
