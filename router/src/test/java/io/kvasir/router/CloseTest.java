package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.testsupport.ChildJvm;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;

/** What a router answers while it is closed and afterwards. */
class CloseTest {
    private static final int BLOCK = 16;

    private static KvRouter router() {
        return KvRouter.builder()
                .maxWorkers(8)
                .maxBlocks(4_096, 4_096)
                .maxActiveRequests(64)
                .build();
    }

    @Test
    void closingUnderFireCrashesNothingInTheModeThatIsShipped()
            throws IOException, InterruptedException {
        closeUnderFire(12);
    }

    @Tag("integration") // a race: the more rounds, the more is seen
    @Test
    void closingUnderFireOftenCrashesNothingInTheModeThatIsShipped()
            throws IOException, InterruptedException {
        closeUnderFire(300);
    }

    private static void closeUnderFire(int rounds) throws IOException, InterruptedException {
        final String seed = Long.toString(Seeds.next("CloseTest.underFire"));
        final String output =
                ChildJvm.run(
                        ChildJvm.unchecked(), CloseRounds.class, Integer.toString(rounds), seed);
        assertTrue(output.contains(rounds + " rounds"), output);
    }

    @Test
    void everyMethodWorksOrRefusesByNameAfterTheClose() throws RouteException {
        final KvRouter router = router();
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final RouteRequest request = router.newRequest().tokens(new int[64], 64);
        final Decision decision = new Decision();
        final Lease lease = router.reserve(request, decision);
        Eventually.holds("the booking applied", () -> router.bookingPipeline().backlog() == 0);
        router.close();
        router.close();

        assertThrows(ClosedException.class, () -> router.select(request, decision));
        assertThrows(ClosedException.class, () -> router.reserve(request, decision));
        assertThrows(ClosedException.class, () -> router.reserve(request, decision, new Lease()));
        final OverlapScores none = new OverlapScores(8);
        assertThrows(ClosedException.class, () -> router.select(request, none, none, decision));
        assertThrows(ClosedException.class, () -> router.awaitReady(Duration.ZERO));
        assertThrows(
                ClosedException.class, () -> router.addWorker(WorkerSpec.of(2, "v", "http://v")));
        assertThrows(
                ClosedException.class,
                () -> router.openDirect(worker, EngineMessages.source("w", BLOCK)));
        assertThrows(ClosedException.class, () -> router.index().match(new long[4], 4, none));
        assertThrows(
                ClosedException.class,
                () -> router.activeRequests().matchActive(new long[4], 4, none));
        assertThrows(ClosedException.class, () -> router.index().clear(0));
        assertThrows(ClosedException.class, () -> router.activeRequests().free(1));
        router.removeWorker(worker);
        router.tick(System.nanoTime());
        lease.prefillComplete();
        lease.outputTokens(100);
        lease.close();
        worker.available(false);
        assertEquals(1, worker.activeRequests(), "the last value");
        assertEquals(64, worker.prefillTokens());
        assertEquals(4, worker.activeBlocks());
        assertEquals(0, worker.indexedBlocks());
        assertEquals(-1, worker.eventSequence());
        assertEquals(0, router.activeLeases());
        assertEquals(0, router.workers().size());
    }

    @Test
    void callersThatTryAgainAfterEveryRefusalAreEndedByTheClose() throws Exception {
        for (int round = 0; round < 20; round++) {
            final KvRouter router = router();
            router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final CountDownLatch begun = new CountDownLatch(3);
            final List<FutureTask<Void>> callers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                callers.add(new FutureTask<>(() -> reserveForEver(router, begun)));
                Thread.ofPlatform().daemon().start(callers.getLast());
            }
            assertTrue(begun.await(1, TimeUnit.MINUTES));
            router.close();
            for (FutureTask<Void> caller : callers) {
                final ExecutionException end =
                        assertThrows(
                                ExecutionException.class, () -> caller.get(1, TimeUnit.MINUTES));
                assertInstanceOf(ClosedException.class, end.getCause());
            }
        }
    }

    private static Void reserveForEver(KvRouter router, CountDownLatch begun) {
        final RouteRequest request = router.newRequest().tokens(new int[64], 64);
        final Decision decision = new Decision();
        final Lease lease = new Lease();
        begun.countDown();
        while (true) {
            try {
                router.reserve(request, decision, lease);
                lease.close();
            } catch (RouteException e) {
                Cores.giveWay(); // and again
            }
        }
    }

    @Test
    void theMemoryStaysUntilTheLastCallerIsOut() throws Exception {
        final CountDownLatch inside = new CountDownLatch(1);
        final CountDownLatch leave = new CountDownLatch(1);
        final AtomicReference<Throwable> failed = new AtomicReference<>();
        final KvRouter router = router();
        router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final Thread caller =
                Thread.ofPlatform()
                        .uncaughtExceptionHandler((thread, error) -> failed.set(error))
                        .start(
                                () -> {
                                    final int lane = router.index().gate().enterOrThrow();
                                    inside.countDown();
                                    Latches.await(leave);
                                    router.index()
                                            .matchInside(new long[4], 4, new OverlapScores(8));
                                    router.index().gate().exit(lane);
                                });
        assertTrue(inside.await(1, TimeUnit.MINUTES));
        router.close();
        assertFalse(router.index().gate().isReleased());
        leave.countDown();
        caller.join();
        assertEquals(null, failed.get());
        assertTrue(router.index().gate().isReleased());
    }

    @Test
    void aCloseWithTimeWaitsForOpenLeases() throws Exception {
        final KvRouter router = router();
        router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final RouteRequest request = router.newRequest().tokens(new int[64], 64);
        final Decision decision = new Decision();
        final Lease lease = router.reserve(request, decision);
        final AtomicReference<Integer> left = new AtomicReference<>();
        final Thread closer =
                Thread.ofPlatform().start(() -> left.set(router.close(Duration.ofMinutes(1))));
        while (!router.index().gate().isClosed()) {
            LockSupport.parkNanos(1_000_000);
        }
        assertThrows(ClosedException.class, () -> router.select(request, decision));
        assertTrue(closer.isAlive());
        lease.close();
        closer.join();
        assertEquals(0, left.get());
        assertTrue(router.index().gate().isReleased());
    }

    @Test
    void aCloseWithAllTimeWaitsForOpenLeases() throws Exception {
        final KvRouter router = KvRouter.builder().maxWorkers(1).maxBlocks(64, 64).build();
        router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
        final Duration ever = ChronoUnit.FOREVER.getDuration();
        assertTrue(router.awaitReady(ever));
        assertTrue(router.awaitReady(ever.negated()), "it is ready");
        final Lease lease =
                router.reserve(router.newRequest().tokens(new int[16], 16), new Decision());
        final AtomicInteger left = new AtomicInteger(-1);
        final Thread closing =
                Thread.ofPlatform().daemon().start(() -> left.set(router.close(ever)));
        Eventually.holds(
                "it waits, or has ended",
                () -> closing.getState() == Thread.State.TIMED_WAITING || !closing.isAlive());
        lease.close();
        closing.join();
        assertEquals(0, left.get());
        assertEquals(List.of(), router.workers());
    }

    @Test
    void aCloseWithTimeGivesUpAndSaysHowManyAreLeft() throws RouteException {
        final KvRouter router = router();
        router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final Lease lease =
                router.reserve(router.newRequest().tokens(new int[64], 64), new Decision());
        assertEquals(1, router.close(Duration.ofMillis(5)));
        assertTrue(router.index().gate().isReleased());
        lease.close();
    }
}
