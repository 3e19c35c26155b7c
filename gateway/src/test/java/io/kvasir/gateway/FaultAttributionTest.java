package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

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
                new BreakerRules(1000, 100, 1000, 0, 1, 1, 1),
                () -> {});
    }

    private static String errorOf(Upstream upstream) {
        return upstream.health().lastError();
    }

    @Test
    void aFailureCountsWhereAnotherWorkerAnswers() {
        faults.failed(a, "status 500");
        assertNull(errorOf(a), "not before it is known whether the request is at fault");
        faults.answered();
        faults.ended();
        assertEquals("status 500", errorOf(a));
    }

    @Test
    void aFailureThatWasTriedNowhereElseCounts() {
        faults.failed(a, "status 500");
        faults.ended();
        assertEquals("status 500", errorOf(a));
    }

    @Test
    void aRequestThatFailsEverywhereCountsNowhere() {
        for (Upstream upstream : List.of(a, b, c)) {
            faults.failed(upstream, "status 500");
        }
        faults.ended();
        for (Upstream upstream : List.of(a, b, c)) {
            assertNull(errorOf(upstream));
        }
    }

    @Test
    void aRequestCountsOnOneWorkerAtMost() {
        faults.failed(a, "status 500");
        faults.failed(b, "status 502");
        faults.answered();
        faults.failed(c, "closed");
        faults.ended();
        assertEquals("status 500", errorOf(a));
        assertNull(errorOf(b));
        assertNull(errorOf(c));
    }

    @Test
    void anAnswerWithoutAFailureCountsNothing() {
        faults.answered();
        faults.ended();
        assertNull(errorOf(a));
    }
}
