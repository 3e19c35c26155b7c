package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * 64 threads that admit, give up and end, a queue with a thread of its own, thousands that wait. No
 * queue here looks by itself from time to time: what waits goes on by signals alone.
 */
class RouterQueueStressTest {
    private static final int THREADS = 64;
    private static final long NEVER = Long.MAX_VALUE / 4;
    private static final long TURN_NS = 50_000; // until those are admitted that an end lets in

    private final AtomicInteger admitted = new AtomicInteger();
    private final AtomicInteger refused = new AtomicInteger();
    private final AtomicInteger cancelled = new AtomicInteger();
    private final ConcurrentLinkedQueue<Lease> running = new ConcurrentLinkedQueue<>();

    private static KvRouter router(QueuePolicy policy) {
        final KvRouter router =
                KvRouter.builder()
                        .maxWorkers(8)
                        .maxBlocks(4_096, 8_192)
                        .maxActiveRequests(1_024)
                        .set(RouterSettings.QUEUE_PREFILL_TOKENS, 0L)
                        .set(RouterSettings.QUEUE_POLICY, policy)
                        .set(RouterSettings.QUEUE_MAX_REQUESTS, 20_000)
                        .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofHours(2))
                        .build();
        for (int id = 0; id < 4; id++) {
            router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
        }
        return router;
    }

    /** A prompt of some tokens. */
    private final class Prompt implements QueuedRequest {
        private final AtomicInteger outcomes = new AtomicInteger();
        private final int[] tokens;

        Prompt(int length, int first) {
            tokens = new int[length];
            tokens[0] = first;
        }

        @Override
        public void fill(RouteRequest request) {
            request.tokens(tokens, tokens.length);
        }

        @Override
        public void admitted(Lease lease, Decision decision, long waitedNs) {
            outcomes.incrementAndGet();
            running.add(lease);
            admitted.incrementAndGet();
        }

        @Override
        public void refused(Exception why) {
            outcomes.incrementAndGet();
            refused.incrementAndGet();
        }
    }

    @Tag("trials")
    @ParameterizedTest
    @EnumSource(QueuePolicy.class)
    void eachOfThousandsHasOneOutcomeAndNoWakeUpIsLost(QueuePolicy policy) throws Exception {
        final long seed = Seeds.next("RouterQueueStressTest");
        final List<Prompt> prompts = new ArrayList<>();
        try (KvRouter router = router(policy);
                RouterQueue queue = RouterQueue.start(router, NEVER)) {
            final CountDownLatch entered = new CountDownLatch(THREADS);
            final CountDownLatch done = new CountDownLatch(THREADS);
            final int each = Trials.of(2_000, 10_000) / THREADS + 1;
            for (int t = 0; t < THREADS; t++) {
                final Random random = new Random(seed + t);
                final List<Prompt> own = new ArrayList<>();
                for (int i = 0; i < each; i++) {
                    own.add(new Prompt(1 + random.nextInt(200), random.nextInt()));
                }
                prompts.addAll(own);
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    final List<QueueTicket> tickets = new ArrayList<>();
                                    for (Prompt prompt : own) {
                                        tickets.add(
                                                queue.admit(
                                                        prompt,
                                                        new QueueRank(
                                                                random.nextInt(3),
                                                                0,
                                                                QueueRank.NO_DEADLINE)));
                                    }
                                    entered.countDown();
                                    await(entered);
                                    for (QueueTicket ticket : tickets) {
                                        if (random.nextInt(10) == 0 && ticket.cancel()) {
                                            cancelled.incrementAndGet();
                                        }
                                        endSome(random);
                                    }
                                    done.countDown();
                                });
            }
            await(entered);
            assertTrue(queue.status().requests() > prompts.size() / 2, "most of them wait");
            await(done);
            final Random random = new Random(seed);
            while (admitted.get() + refused.get() + cancelled.get() < prompts.size()) {
                endSome(random); // each end lets others in, for as long as some wait
                LockSupport.parkNanos(TURN_NS);
            }
            running.forEach(Lease::close);
            assertEquals(0, refused.get());
            assertEquals(0, queue.status().requests());
            assertEquals(0, queue.status().tokens());
            assertTrue(prompts.stream().allMatch(p -> p.outcomes.get() <= 1));
            Eventually.holds(
                    "no load is left",
                    () -> router.workers().stream().allMatch(w -> w.activeRequests() == 0));
            assertEquals(0, router.status().loadCorrections());
        }
    }

    private void endSome(Random random) {
        final Lease lease = running.poll();
        if (lease != null) {
            if (random.nextBoolean()) {
                lease.prefillComplete();
            }
            lease.close();
        }
    }

    private static void await(CountDownLatch latch) {
        Eventually.holds("the threads", () -> latch.getCount() == 0);
    }

    @Test
    void closedUnderLoadItRefusesAllThatIsLeftOnce() {
        final long seed = Seeds.next("RouterQueueStressTest.close");
        for (int round = 0; round < 20; round++) {
            final List<Prompt> prompts = new ArrayList<>();
            try (KvRouter router = router(QueuePolicy.FCFS)) {
                final RouterQueue queue = RouterQueue.start(router);
                final CountDownLatch done = new CountDownLatch(8);
                final CountDownLatch begun = new CountDownLatch(8);
                for (int t = 0; t < 8; t++) {
                    final Random random = new Random(seed + t);
                    final List<Prompt> own = new ArrayList<>();
                    for (int i = 0; i < 200; i++) {
                        own.add(new Prompt(1 + random.nextInt(50), random.nextInt()));
                    }
                    prompts.addAll(own);
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        for (Prompt prompt : own) {
                                            queue.admit(prompt, QueueRank.USUAL);
                                            begun.countDown();
                                            endSome(random);
                                        }
                                        done.countDown();
                                    });
                }
                await(begun);
                queue.close();
                await(done);
                Eventually.holds(
                        "all outcomes", () -> prompts.stream().allMatch(p -> p.outcomes.get() > 0));
                assertEquals(0, queue.status().requests());
            }
            assertTrue(prompts.stream().allMatch(p -> p.outcomes.get() == 1));
            running.clear();
        }
    }

    /** As many as come at once do not find the same room. */
    @Test
    void ofManyThatComeTogetherEachRoomIsHadOnce() throws Exception {
        try (KvRouter router = router(QueuePolicy.FCFS);
                RouterQueue queue = RouterQueue.start(router, NEVER)) {
            final CountDownLatch ready = new CountDownLatch(THREADS);
            final CountDownLatch done = new CountDownLatch(THREADS);
            for (int t = 0; t < THREADS; t++) {
                final Prompt prompt = new Prompt(100, t);
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    ready.countDown();
                                    await(ready);
                                    queue.admit(prompt, QueueRank.USUAL);
                                    done.countDown();
                                });
            }
            await(done);
            Eventually.holds(
                    "one on each worker",
                    () ->
                            admitted.get() + queue.status().requests() == THREADS
                                    && admitted.get() == 4);
            for (Worker worker : router.workers()) {
                assertEquals(100, worker.prefillTokens());
            }
            running.forEach(Lease::close);
        }
    }

    @Test
    void ofManyWithOneColdPrefixOneIsComputed() {
        final int[] prefix = new Random(7).ints(4_096, 0, 50_000).toArray();
        try (KvRouter router =
                        KvRouter.builder()
                                .maxWorkers(8)
                                .degradedCredit(1)
                                .set(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT)
                                .set(RouterSettings.SINGLE_FLIGHT_WAIT, Duration.ofHours(1))
                                .build();
                RouterQueue queue = RouterQueue.start(router, NEVER)) {
            for (int id = 0; id < 4; id++) {
                router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
            }
            final CountDownLatch ready = new CountDownLatch(THREADS);
            final CountDownLatch done = new CountDownLatch(THREADS);
            for (int t = 0; t < THREADS; t++) {
                final int last = t;
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    final Prompt prompt = new Prompt(prefix.length + 16, 0);
                                    System.arraycopy(prefix, 0, prompt.tokens, 0, prefix.length);
                                    prompt.tokens[prefix.length] = last;
                                    ready.countDown();
                                    await(ready);
                                    queue.admit(prompt, QueueRank.USUAL);
                                    done.countDown();
                                });
            }
            await(done);
            Eventually.holds("all others follow", () -> queue.status().following() == THREADS - 1);
            assertEquals(1, admitted.get());
            final Lease leader = running.poll();
            leader.prefillComplete();
            Eventually.holds("they go on together", () -> admitted.get() == THREADS);
            assertFalse(running.stream().anyMatch(lease -> lease.worker() != leader.worker()));
            assertEquals(1, queue.status().led());
            running.forEach(Lease::close);
            leader.close();
        }
    }

    /** No prompt is ever computed here, so that a follower that is lost would wait for hours. */
    @Test
    void whileItIsSwitchedOnAndOffNoneThatFollowsIsLost() {
        final long seed = Seeds.next("RouterQueueStressTest.switched");
        try (KvRouter router =
                        KvRouter.builder()
                                .maxWorkers(8)
                                .maxBlocks(4_096, 8_192)
                                .maxActiveRequests(8_192)
                                .set(RouterSettings.SINGLE_FLIGHT_TOKENS, 32)
                                .set(RouterSettings.SINGLE_FLIGHT_WAIT, Duration.ofHours(2))
                                .set(RouterSettings.QUEUE_MAX_REQUESTS, 20_000)
                                .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofHours(2))
                                .build();
                RouterQueue queue = RouterQueue.start(router)) {
            for (int id = 0; id < 4; id++) {
                router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
            }
            final List<Prompt> prompts = new ArrayList<>();
            final CountDownLatch done = new CountDownLatch(8);
            for (int t = 0; t < 8; t++) {
                final Random random = new Random(seed + t);
                final List<Prompt> own = new ArrayList<>();
                for (int i = 0; i < 500; i++) {
                    own.add(new Prompt(32 * (1 + random.nextInt(4)) + 1, random.nextInt(3)));
                }
                prompts.addAll(own);
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    own.forEach(prompt -> queue.admit(prompt, QueueRank.USUAL));
                                    done.countDown();
                                });
            }
            final Random random = new Random(seed);
            final SingleFlight[] modes = SingleFlight.values();
            for (int i = 0; i < 1_000 || done.getCount() > 0; i++) {
                router.change(
                        router.settings()
                                .with(
                                        RouterSettings.SINGLE_FLIGHT,
                                        modes[random.nextInt(modes.length)])
                                .with(
                                        RouterSettings.SINGLE_FLIGHT_TOKENS,
                                        16 * (1 + random.nextInt(3)))
                                .with(RouterSettings.SINGLE_FLIGHT_PROMPTS, 1 + random.nextInt(3)));
            }
            await(done);
            router.change(router.settings().with(RouterSettings.SINGLE_FLIGHT, SingleFlight.OFF));
            Eventually.holds("all: " + queue.status(), () -> admitted.get() == prompts.size());
            assertTrue(prompts.stream().allMatch(prompt -> prompt.outcomes.get() == 1));
            assertEquals(0, queue.status().requests());
            assertEquals(0, queue.status().following());
            assertEquals(0, queue.status().tokens());
            running.forEach(Lease::close);
        }
    }
}
