package io.kvasir.gateway.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.util.List;

class LoadBalanceTest {
    @Test
    void theScoreIsTheSpreadAsAPartOfTheMean() throws Exception {
        assertEquals(0, LoadBalance.score(List.of(), 16));
        try (KvRouter router = KvRouter.builder().blockSize(16).build()) {
            final Worker one = router.addWorker(WorkerSpec.of(1, "a", "http://a"));
            final Worker two = router.addWorker(WorkerSpec.of(2, "b", "http://b"));
            final Worker down = router.addWorker(WorkerSpec.of(3, "c", "http://c"));
            down.available(false);
            final List<Worker> all = List.of(one, two, down);
            assertEquals(0, LoadBalance.score(all, 16), "no load");
            try (Lease alone =
                    router.reserve(
                            router.newRequest().tokens(new int[64], 64).pin(one), new Decision())) {
                Eventually.holds("booked", () -> one.activeBlocks() == 4);
                assertEquals(1, LoadBalance.score(all, 16), 1e-9, "8 and 0");
                alone.prefillComplete();
                Eventually.holds("computed", () -> one.prefillTokens() == 0);
                assertEquals(1, LoadBalance.score(all, 16), 1e-9, "4 and 0");
                assertEquals(0, LoadBalance.score(List.of(one), 16), "it is the mean");
            }
        }
    }
}
