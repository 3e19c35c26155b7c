package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.List;

class FaultAttributionTest {
    private final Upstream a = upstream("a");
    private final Upstream b = upstream("b");
    private final Upstream c = upstream("c");
    private final FaultAttribution faults = new FaultAttribution(ByteBuffer.wrap(new byte[] {1}));

    private static Upstream upstream(String name) {
        return new Upstream(
                WorkerConfig.parse("http://127.0.0.1:1,name=" + name),
                "static",
                0,
                null,
                true,
                () -> new BreakerRules(1000, 100, 1000, 0, 1, 1, 1),
                _ -> {});
    }

    private static String errorOf(Upstream upstream) {
        return upstream.health().lastError();
    }

    @Test
    void aFailureCountsWhereAnotherWorkerAnswers() {
        faults.failed(a, "status 500", null);
        assertNull(errorOf(a), "not before it is known whether the request is at fault");
        faults.answered();
        faults.ended();
        assertEquals("status 500", errorOf(a));
    }

    @Test
    void aFailureThatWasTriedNowhereElseCounts() {
        faults.failed(a, "status 500", null);
        faults.ended();
        assertEquals("status 500", errorOf(a));
    }

    @Test
    void aRequestThatFailsEverywhereCountsNowhere() {
        for (Upstream upstream : List.of(a, b, c)) {
            faults.failed(upstream, "status 500", null);
        }
        faults.ended();
        for (Upstream upstream : List.of(a, b, c)) {
            assertNull(errorOf(upstream));
        }
    }

    @Test
    void aRequestCountsOnOneWorkerAtMost() {
        faults.failed(a, "status 500", null);
        faults.failed(b, "status 502", null);
        faults.answered();
        faults.failed(c, "closed", null);
        faults.ended();
        assertEquals("status 500", errorOf(a));
        assertNull(errorOf(b));
        assertNull(errorOf(c));
    }

    @Test
    void requestsThatFailWithTheirConnectionAreOneFault() {
        final Upstream strict =
                new Upstream(
                        WorkerConfig.parse("http://127.0.0.1:1,name=strict"),
                        "static",
                        0,
                        null,
                        true,
                        () -> new BreakerRules(2, 1, 1_000_000_000_000L, 0, 1, 1, 1),
                        _ -> {});
        for (byte i = 0; i < 10; i++) {
            final FaultAttribution one = new FaultAttribution(ByteBuffer.wrap(new byte[] {i}));
            one.failed(strict, "closed", this);
            one.ended();
        }
        assertTrue(strict.inUse());
        faults.failed(strict, "closed", null);
        faults.ended();
        assertFalse(strict.inUse());
    }

    @Test
    void anAnswerWithoutAFailureCountsNothing() {
        faults.answered();
        faults.ended();
        assertNull(errorOf(a));
    }
}
