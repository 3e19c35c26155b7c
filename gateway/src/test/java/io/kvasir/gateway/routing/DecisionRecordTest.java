package io.kvasir.gateway.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.trace.RequestTrace;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.Test;

import java.time.Instant;

class DecisionRecordTest {
    private static DecisionRecord recordOf(Decision decision) {
        return new DecisionRecord("kv-1", Instant.EPOCH, "completions", 1, null, "m", 1, decision);
    }

    @Test
    void aRequestThatIsNotTracedCostsItsDecisionNothing() throws RouteException {
        final int[] prompt = new int[40];
        try (KvRouter router = KvRouter.builder().build()) {
            router.addWorker(WorkerSpec.of(1, "a", "http://a"));
            final Decision decision = new Decision();
            router.select(router.newRequest().tokens(prompt, 40), decision);
            final DecisionRecord record = recordOf(decision);
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            1_000,
                            () -> {
                                record.traceIn(RequestTrace.NONE);
                                record.usage(40, 16);
                                record.firstToken(1);
                                record.end("ok", 200, 2);
                            }));
        }
    }

    @Test
    void onlyTheFirstOfTwoRequestsFoundItsWorkerIdle() throws RouteException {
        final int[] prompt = new int[40];
        try (KvRouter router = KvRouter.builder().build()) {
            router.addWorker(WorkerSpec.of(1, "a", "http://a"));
            final Decision first = new Decision();
            final Decision second = new Decision();
            try (Lease one = router.reserve(router.newRequest().tokens(prompt, 40), first);
                    Lease two = router.reserve(router.newRequest().tokens(prompt, 40), second)) {
                assertEquals(0, recordOf(first).activeRequests(), one.worker().name());
                assertEquals(1, recordOf(second).activeRequests(), two.worker().name());
            }
        }
    }
}
