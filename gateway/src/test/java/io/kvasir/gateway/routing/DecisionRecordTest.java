package io.kvasir.gateway.routing;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.WorkerSpec;

import org.junit.jupiter.api.Test;

import java.time.Instant;

class DecisionRecordTest {
    private static DecisionRecord recordOf(Decision decision) {
        return new DecisionRecord("kv-1", Instant.EPOCH, "completions", 1, null, "m", decision);
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
                assertTrue(recordOf(first).workerWasIdle(), one.worker().name());
                assertFalse(recordOf(second).workerWasIdle(), two.worker().name());
            }
        }
    }
}
