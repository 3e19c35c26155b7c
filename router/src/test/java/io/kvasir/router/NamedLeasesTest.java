package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

class NamedLeasesTest {
    private static final int BLOCK_SIZE = 16;

    private final KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 0)
                    .blockSize(BLOCK_SIZE)
                    .maxWorkers(8)
                    .maxActiveRequests(5_000)
                    .build();
    private final Worker worker = router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
    private final int[] prompt = new int[4 * BLOCK_SIZE];
    private final Decision decision = new Decision();

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request() {
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private void awaitRequests(long requests) {
        Eventually.holds(requests + " requests", () -> worker.activeRequests() == requests);
    }

    @Test
    void aBookingIsCarriedOnAndEndedByItsId() throws RouteException {
        final BestWorker best = router.bestWorker(request(), "r1");
        assertSame(worker, best.worker());
        assertEquals(1, best.workerId());
        assertEquals(0, best.dpRank());
        assertEquals(0, best.overlapBlocks());
        awaitRequests(1);
        assertEquals(prompt.length, worker.prefillTokens());
        assertTrue(router.markPrefillComplete("r1"));
        Eventually.holds("prefilled", () -> worker.prefillTokens() == 0);
        assertTrue(router.markPrefillComplete("r1"), "once more does nothing");
        assertNotNull(router.leaseOrNull("r1"));
        assertTrue(router.free("r1"));
        awaitRequests(0);
        assertFalse(router.free("r1"));
        assertFalse(router.markPrefillComplete("r1"));
        assertNull(router.leaseOrNull("r1"));
        assertFalse(router.free("never"));
    }

    @Test
    void askingForTheBestWorkerBooksNothing() throws RouteException {
        assertSame(worker, router.bestWorker(request()).worker());
        assertEquals(0, router.activeLeases());
    }

    @Test
    void anIdIsBookedOnceAtATime() throws RouteException {
        final Lease lease = router.reserve("r1", request(), decision);
        final IllegalStateException twice =
                assertThrows(
                        IllegalStateException.class,
                        () -> router.reserve("r1", request(), decision));
        assertTrue(twice.getMessage().contains("r1"), twice.getMessage());
        lease.close(); // without the id
        assertFalse(router.free("r1"));
        assertNotNull(router.reserve("r1", request(), decision));
        router.reserve("r2", request(), decision).close();
        assertNotNull(router.reserve("r2", request(), decision), "r2 ended without its id");
        router.free("r1");
        router.free("r2");
        awaitRequests(0);
    }

    @Test
    void anIdIsFreeWhereNothingCouldBeBooked() throws RouteException {
        worker.available(false);
        assertThrows(RouteException.class, () -> router.reserve("r1", request(), decision));
        assertNull(router.leaseOrNull("r1"));
        worker.available(true);
        assertNotNull(router.reserve("r1", request(), decision));
    }

    @Test
    void anIdOfAWorkerThatWasRemovedIsFree() throws RouteException {
        router.reserve("r1", request(), decision);
        router.removeWorker(worker);
        Eventually.holds("the worker's bookings end", () -> router.activeLeases() == 0);
        assertFalse(router.markPrefillComplete("r1"));
        assertFalse(router.free("r1"));
        router.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
        assertEquals(2, router.bestWorker(request(), "r1").workerId());
    }

    @Test
    void idsHaveALength() {
        for (String id : List.of("", "x".repeat(NamedLeases.MAX_ID_LENGTH + 1))) {
            final IllegalArgumentException refused =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> router.reserve(id, request(), decision));
            assertTrue(refused.getMessage().contains("" + id.length()), refused.getMessage());
        }
        assertThrows(NullPointerException.class, () -> router.reserve(null, request(), decision));
        assertEquals(0, router.activeLeases());
    }

    @Test
    void idsOfBookingsThatEndedOtherwiseDoNotPileUp() throws RouteException {
        final NamedLeases named = new NamedLeases(router::activeLeases);
        for (int i = 0; i < 20_000; i++) {
            named.reserve("r" + i, lease -> router.reserve(request(), decision, lease)).close();
            assertTrue(named.size() <= 2_048, named.size() + " ids");
        }
        final List<Lease> open = new ArrayList<>();
        for (int i = 0; i < 4_000; i++) {
            open.add(named.reserve("o" + i, lease -> router.reserve(request(), decision, lease)));
        }
        for (int i = 0; i < 4_000; i++) {
            assertSame(open.get(i), named.openOrNull("o" + i));
        }
        open.forEach(Lease::close);
    }

    @Test
    void ofManyThatBookOneIdOneDoes() throws Exception {
        final int threads = 8;
        final AtomicInteger booked = new AtomicInteger();
        try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
            for (int round = 0; round < 500; round++) {
                final String id = "r" + round;
                final CountDownLatch start = new CountDownLatch(1);
                final List<Future<?>> all = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    all.add(
                            pool.submit(
                                    () -> {
                                        start.await();
                                        try {
                                            router.reserve(id, request(), new Decision());
                                            booked.incrementAndGet();
                                        } catch (IllegalStateException e) {
                                            // another one has it
                                        }
                                        return null;
                                    }));
                }
                start.countDown();
                for (Future<?> one : all) {
                    one.get();
                }
                assertEquals(round + 1, booked.get());
                assertTrue(router.free(id));
            }
        }
        awaitRequests(0);
        assertEquals(0, router.activeLeases());
    }
}
