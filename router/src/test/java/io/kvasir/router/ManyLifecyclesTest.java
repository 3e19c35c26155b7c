package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;

/** Loads return to zero after any interleaving, and workers that must not be chosen are not. */
class ManyLifecyclesTest {
    private static final int THREADS = 64;
    private static final int WORKERS = 6;
    private static final int BLOCK = 16;
    private static final int MOST_BLOCKS = 20;

    private final LongAdder booked = new LongAdder();
    private final LongAdder refused = new LongAdder();

    @Tag("trials")
    @Test
    void loadsReturnToZero() throws Exception {
        final int requests = Trials.of(10_000, 1_000_000);
        final SplittableRandom random = new SplittableRandom(Seeds.next("ManyLifecyclesTest"));
        try (KvRouter router =
                        KvRouter.builder().maxBlocks(4_096, 4_096).maxActiveRequests(256).build();
                ExecutorService threads = Executors.newFixedThreadPool(THREADS)) {
            for (int i = 0; i < WORKERS; i++) {
                router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
            }
            final Worker dead = router.addWorker(WorkerSpec.of(WORKERS, "dead", "http://dead"));
            dead.available(false);
            final List<Future<Void>> running = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                running.add(threads.submit(requests(router, requests / THREADS, random.split())));
            }
            for (Future<Void> one : running) {
                try {
                    one.get();
                } catch (ExecutionException e) {
                    throw new AssertionError(e.getCause());
                }
            }
            Eventually.holds(
                    "the bookings are applied", () -> router.bookingPipeline().backlog() == 0);
            assertEquals(0, router.activeLeases());
            // at once, unless threads were kept from their cores for so long that a load that was
            // under way for ten seconds was taken as lost: the next comparison takes that back
            Eventually.holds(
                    "the loads are zero",
                    () ->
                            router.workers().stream()
                                    .allMatch(
                                            worker ->
                                                    worker.activeRequests() == 0
                                                            && worker.activeBlocks() == 0
                                                            && worker.prefillTokens() == 0));
            assertTrue(booked.sum() > requests / 2, booked + " booked, " + refused + " refused");
        }
    }

    private Callable<Void> requests(KvRouter router, int count, SplittableRandom random) {
        return () -> {
            final List<Worker> workers = router.workers();
            final RouteRequest request = router.newRequest();
            final Decision decision = new Decision();
            final Lease lease = new Lease();
            final int[] tokens = new int[MOST_BLOCKS * BLOCK];
            for (int done = 0; done < count; ) {
                final int length = 1 + random.nextInt(tokens.length);
                final int prompt = random.nextInt(50); // few, so that they share blocks
                for (int i = 0; i < length; i++) {
                    tokens[i] = prompt % (1 + i / (4 * BLOCK)) * 1_000 + i;
                }
                final Worker excluded = workers.get(random.nextInt(WORKERS));
                request.reset().tokens(tokens, length).exclude(excluded);
                try {
                    router.reserve(request, decision, lease);
                } catch (RouteException e) {
                    assertEquals(RouteException.Kind.OVERLOADED, e.kind(), e.getMessage());
                    refused.increment();
                    Cores.giveWay();
                    continue;
                }
                done++;
                booked.increment();
                assertTrue(decision.worker() != excluded, "an excluded worker was chosen");
                assertTrue(decision.worker().available(), "a dead worker was chosen");
                live(lease, length, random);
            }
            return null;
        };
    }

    private static void live(Lease lease, int length, SplittableRandom random) {
        int output = 0;
        for (int step = random.nextInt(6); step > 0; step--) {
            switch (random.nextInt(4)) {
                case 0 -> lease.prefillComplete();
                case 1 -> lease.outputTokens(output += random.nextInt(2 * BLOCK));
                case 2 -> lease.engineCachedTokens(random.nextInt(length));
                default -> Cores.giveWay();
            }
        }
        lease.close();
        if (random.nextInt(8) == 0) {
            lease.close(); // does nothing
        }
    }
}
