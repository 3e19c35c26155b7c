package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** Heap bytes of callers of the hot path beside a queue: none, whether something waits or not. */
class QueueAllocationTest {
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void bookingAndReleasingBesideAQueueAllocatesNothing(boolean waits) {
        try (KvRouter router =
                        KvRouter.builder()
                                .maxWorkers(8)
                                .maxBlocks(1_024, 2_048)
                                .maxActiveRequests(32)
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                                .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofHours(1))
                                .build();
                RouterQueue queue = RouterQueue.start(router)) {
            router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final int[] tokens = new int[160];
            final CompletableFuture<Lease> first =
                    queue.admit(request -> request.tokens(tokens, 160), QueueRank.USUAL);
            final CompletableFuture<Lease> second =
                    waits
                            ? queue.admit(request -> request.tokens(tokens, 160), QueueRank.USUAL)
                            : new CompletableFuture<>();
            assertTrue(first.isDone());
            final RouteRequest request = router.newRequest();
            final Decision decision = new Decision();
            final Lease lease = new Lease();
            assertEquals(
                    0,
                    Allocations.bytesPerRound(
                            5_000,
                            () -> {
                                try {
                                    router.reserve(
                                            request.reset().tokens(tokens, 160), decision, lease);
                                } catch (RouteException e) {
                                    throw new AssertionError(e);
                                }
                                lease.prefillComplete();
                                lease.close();
                            }));
            assertEquals(waits ? 1 : 0, queue.status().requests());
            first.join().close();
            if (waits) {
                second.join().close();
            }
        }
    }
}
