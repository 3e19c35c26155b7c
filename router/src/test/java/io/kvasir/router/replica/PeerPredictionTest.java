package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.router.Decision;
import io.kvasir.router.EngineMessages;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouteException;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** What is predicted of a worker from the bookings of another router. */
class PeerPredictionTest {
    private static final int BLOCK_SIZE = 16;

    private final ReplicaHub hub = new ReplicaHub(new Random(1));
    private final AtomicLong clock = new AtomicLong();
    private final KvRouter other = router(1);
    private final KvRouter router = router(2);

    private KvRouter router(long id) {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .maxWorkers(4)
                .maxBlocks(1 << 10, 1 << 10)
                .maxActiveRequests(16)
                .set(RouterSettings.APPROXIMATE, true)
                .set(RouterSettings.ROUTER_ID, id)
                .tickedBy(clock::get)
                .replicaLink(hub.open())
                .build();
    }

    @AfterEach
    void close() {
        router.close();
        other.close();
    }

    /** Books a prompt, and waits until the router has got that. */
    private void bookAtOther(int firstToken) throws RouteException {
        final int[] prompt = new int[3 * BLOCK_SIZE];
        prompt[0] = firstToken;
        final long before = router.status().replicaOrNull().peerBookings();
        var _ = other.reserve(other.newRequest().tokens(prompt, prompt.length), new Decision());
        Eventually.holds(
                () -> "bookings: " + router.status().replicaOrNull().peerBookings(),
                () -> {
                    pass();
                    return router.status().replicaOrNull().peerBookings() > before;
                });
    }

    private void pass() {
        clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(1));
        hub.advance(clock.get());
        for (KvRouter each : new KvRouter[] {other, router}) {
            each.tick(clock.get());
            while (each.bookingPipeline().backlog() > 0) {
                Cores.giveWay();
            }
        }
    }

    @Test
    void nothingIsPredictedOfAWorkerThatHasGotEvents() throws RouteException {
        other.addWorker(WorkerSpec.of(1, "w", "http://w"));
        final Worker worker = router.addWorker(WorkerSpec.of(1, "w", "http://w"));
        bookAtOther(1);
        assertEquals(1, router.routedPrefixes().visits());
        router.openDirect(worker, EngineMessages.source("w", BLOCK_SIZE));
        bookAtOther(2);
        assertEquals(1, router.routedPrefixes().visits(), "its events say what it holds");
    }
}
