package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/** A booking that was decided for a worker which has left, and comes when its slot is another's. */
class LateBookingTest {
    private final KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 0)
                    .blockSize(16)
                    .maxWorkers(2)
                    .set(RouterSettings.OVERLAP_WEIGHT, 0.0) // one writer sweeps a slot
                    .build();
    private final Worker other = router.addWorker(WorkerSpec.of(1, "other", "http://other"));
    private final CountDownLatch deciding = new CountDownLatch(1);
    private final CountDownLatch decide = new CountDownLatch(1);
    private final AtomicBoolean stall = new AtomicBoolean();
    private final CountDownLatch stalled = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);

    @AfterEach
    void close() {
        decide.countDown();
        goOn.countDown();
        router.close();
    }

    private RouteRequest request(Worker worker) {
        return router.newRequest().tokens(new int[64], 64).pin(worker);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Keeps the thread that applies bookings behind, once it is to be: not within a sweep. */
    private void mayStall(int slot) {
        if (slot == other.slot()
                && Thread.currentThread().getName().equals("kvasir-booking-writer")
                && stall.getAndSet(false)) {
            stalled.countDown();
            await(goOn);
        }
    }

    private Lease lateBooking(Worker worker) {
        final Lease lease = new Lease();
        final RouteRequest request =
                request(worker)
                        .addCost(
                                _ -> {
                                    deciding.countDown();
                                    await(decide);
                                    return 0;
                                });
        try {
            router.reserve(request, new Decision(), lease);
            return lease;
        } catch (RouteException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void itMeansNothingForTheNextWorker() throws Exception {
        router.addRoomListener(this::mayStall);
        final Worker old = router.addWorker(WorkerSpec.of(2, "old", "http://old"));
        final Lease ofOther = router.reserve(request(other), new Decision());
        final Lease ofOld = router.reserve(request(old), new Decision());
        final CompletableFuture<Lease> late = CompletableFuture.supplyAsync(() -> lateBooking(old));
        await(deciding);
        router.removeWorker(old);
        Eventually.holds("its slot is swept", () -> router.board().activeRequests(old.slot()) == 0);
        stall.set(true);
        ofOther.close();
        await(stalled);
        decide.countDown();
        final Lease lease = late.get();
        final Worker fresh = router.addWorker(WorkerSpec.of(3, "fresh", "http://fresh"));
        assertEquals(old.slot(), fresh.slot());
        goOn.countDown();
        Eventually.holds("the late booking ends", () -> !lease.isOpen());
        Eventually.holds("no request", () -> fresh.activeRequests() == 0);
        Eventually.holds("no tokens", () -> fresh.prefillTokens() == 0);
        Eventually.holds("no blocks", () -> fresh.activeBlocks() == 0);
        assertEquals(0, router.status().loadCorrections());
        assertFalse(ofOld.isOpen());
    }
}
