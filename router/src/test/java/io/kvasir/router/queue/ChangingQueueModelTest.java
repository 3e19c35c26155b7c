package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.queue.QueueException.Kind;
import io.kvasir.router.queue.QueueWorld.Waiter;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * A queue whose settings change while requests wait, for workers that come and go or for prompts of
 * others: none waits while a worker that it may use has room, but for a prompt that is computed
 * there; none computes what a worker that it may use is computing; none of lower priority keeps the
 * room of the queue that one of higher needs; each has one outcome, and nothing is left in the end.
 */
class ChangingQueueModelTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final long FLIGHT_NS = SECOND / 2;
    private static final int PREFIX = 256; // tokens: two strides
    private static final double FAR = Double.POSITIVE_INFINITY;
    private static final int TRIALS = Trials.of(12, 200);
    private static final int STEPS = 100;

    @Tag("trials")
    @Test
    void noneWaitsForNothingAndNoneIsRefusedForOneOfLowerPriority() {
        final long seed = Seeds.next("ChangingQueueModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.run();
            }
        }
    }

    /**
     * One that was admitted.
     *
     * @param family of prompts that begin alike; -1 for one of its own
     * @param label that its worker must have; null for none
     * @param isPicky whether it goes to workers alone that have nothing to prefill
     */
    private record One(
            Waiter waiter, int family, String label, Worker excluded, boolean isPicky, long endNs) {
        boolean waits() {
            return waiter.ticket.isWaiting();
        }

        boolean may(Worker worker) {
            return (waiter.pin == null || waiter.pin == worker)
                    && worker != excluded
                    && (label == null || label.equals(worker.labels().get("pool")));
        }

        int priority() {
            return waiter.rank.priority();
        }

        int tokens() {
            return waiter.tokens.length;
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final QueueWorld world;
        private final List<One> all = new ArrayList<>();
        private final List<Worker> workers = new ArrayList<>();
        private long threshold = 100;
        private int maxRequests = 10;
        private long maxTokens = 2_000;
        private long maxWaitNs = 8 * SECOND;
        private SingleFlight mode;
        private final List<One> leaders = new ArrayList<>(); // others wait for their prompts
        private final Map<One, Long> booked = new HashMap<>(); // when, by request

        Model(Random random) {
            this.random = random;
            mode = pick(SingleFlight.values());
            world =
                    QueueWorld.of(
                            QueueWorld.config()
                                    .degradedCredit(1) // what a worker has without events
                                    .set(RouterSettings.QUEUE_PREFILL_TOKENS, threshold)
                                    .set(RouterSettings.QUEUE_MAX_REQUESTS, maxRequests)
                                    .set(RouterSettings.QUEUE_MAX_TOKENS, maxTokens)
                                    .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofNanos(maxWaitNs))
                                    .set(RouterSettings.SINGLE_FLIGHT, mode)
                                    .set(RouterSettings.SINGLE_FLIGHT_TOKENS, PREFIX / 2)
                                    .set(
                                            RouterSettings.SINGLE_FLIGHT_WAIT,
                                            Duration.ofNanos(FLIGHT_NS)));
        }

        @Override
        public void close() {
            world.close();
        }

        void run() {
            join(0);
            join(1);
            for (int step = 0; step < STEPS; step++) {
                act();
                settle();
                if (random.nextInt(3) > 0) {
                    step();
                }
                check();
            }
            while (!waiting().isEmpty()) {
                running().stream().findFirst().ifPresent(one -> one.waiter.lease.close());
                world.nowNs.addAndGet(SECOND / 4);
                settle();
                step();
                check();
            }
            running().forEach(one -> one.waiter.lease.close());
            settle();
            assertEquals(0, world.queue.status().following());
            for (Worker worker : workers) {
                assertEquals(0, worker.prefillTokens());
                assertEquals(0, worker.activeRequests());
            }
        }

        private void act() {
            switch (random.nextInt(22)) {
                case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 -> admit();
                case 10, 11 ->
                        running().stream()
                                .skip(random.nextInt(3))
                                .findFirst()
                                .ifPresent(one -> one.waiter.lease.prefillComplete());
                case 12, 13 ->
                        running().stream()
                                .skip(random.nextInt(3))
                                .findFirst()
                                .ifPresent(one -> one.waiter.lease.close());
                case 14 ->
                        waiting().stream()
                                .skip(random.nextInt(3))
                                .findFirst()
                                .ifPresent(one -> assertTrue(one.waiter.ticket.cancel()));
                case 15 -> world.nowNs.addAndGet(random.nextLong(SECOND));
                case 16 -> world.nowNs.addAndGet(random.nextLong(SECOND / 10));
                case 17 -> {
                    final Worker worker = workers.get(random.nextInt(workers.size()));
                    worker.available(!worker.available());
                }
                case 18 -> join(random.nextInt(5));
                case 19 -> {
                    if (workers.size() > 1) {
                        world.router.removeWorker(workers.remove(random.nextInt(workers.size())));
                    }
                }
                default -> change();
            }
        }

        @SafeVarargs
        private <T> T pick(T... of) {
            return of[random.nextInt(of.length)];
        }

        /** A worker comes, maybe again, with the slot of another one. */
        private void join(int id) {
            if (workers.stream().noneMatch(worker -> worker.id() == id)) {
                workers.add(
                        world.router.addWorker(
                                WorkerSpec.of(id, "w" + id, "http://w" + id)
                                        .labelled(Map.of("pool", id % 2 == 0 ? "a" : "b"))));
            }
        }

        private void change() {
            switch (random.nextInt(7)) {
                case 0 -> set(RouterSettings.QUEUE_POLICY, pick(QueuePolicy.values()));
                case 1 -> {
                    maxRequests = 1 + random.nextInt(10);
                    set(RouterSettings.QUEUE_MAX_REQUESTS, maxRequests);
                }
                case 2 -> {
                    maxTokens = 1 + random.nextLong(2_000);
                    set(RouterSettings.QUEUE_MAX_TOKENS, maxTokens);
                }
                case 3 -> {
                    maxWaitNs = (1 + random.nextInt(8)) * SECOND;
                    set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofNanos(maxWaitNs));
                }
                case 4 -> set(RouterSettings.QUEUE_AGING, Duration.ofSeconds(random.nextInt(8)));
                case 5 -> {
                    mode = pick(SingleFlight.values());
                    set(RouterSettings.SINGLE_FLIGHT, mode);
                    world.queue.step(); // so that it finds out
                    if (mode == SingleFlight.OFF) {
                        leaders.clear();
                    }
                }
                default -> {
                    threshold = pick(-1L, 0L, 100L, 200L);
                    set(RouterSettings.QUEUE_PREFILL_TOKENS, threshold);
                }
            }
        }

        private <T> void set(Setting<T> setting, T value) {
            world.router.change(world.router.settings().with(setting, value));
        }

        private void admit() {
            final int family = random.nextInt(4) - 1;
            final int ask = random.nextInt(8);
            final Worker some = workers.get(random.nextInt(workers.size()));
            final Worker excluded = ask == 1 ? some : null;
            final String label = ask >= 5 ? pick("a", "b") : null;
            final boolean isPicky = random.nextInt(4) == 0;
            final Waiter waiter =
                    world
                    .new Waiter(
                            prompt(family),
                            ask == 0 ? some : null,
                            request -> {
                                if (excluded != null) {
                                    request.exclude(excluded);
                                }
                                if (label != null) {
                                    request.require("pool=" + label);
                                }
                                if (isPicky) {
                                    request.addCost(at -> at.prefillTokens() > 0 ? FAR : 0);
                                }
                            });
            final long nowNs = world.nowNs.get();
            final QueueRank rank =
                    new QueueRank(
                            random.nextInt(3),
                            random.nextInt(4) == 0 ? random.nextLong(5 * SECOND) : 0,
                            random.nextInt(4) == 0
                                    ? nowNs + random.nextLong(8 * SECOND)
                                    : QueueRank.NO_DEADLINE);
            final List<One> before = waiting();
            world.admit(waiter, rank);
            final One one =
                    new One(
                            waiter,
                            family,
                            label,
                            excluded,
                            isPicky,
                            Math.min(rank.deadlineNs(), nowNs + maxWaitNs));
            all.add(one);
            checkRoom(one, before);
            if (mode != SingleFlight.OFF && family >= 0 && waiter.lease != null) {
                booked.put(one, nowNs);
                checkFirst(one);
            }
        }

        /** Whether one that is booked at once had no other to wait for. */
        private void checkFirst(One one) {
            final boolean follows =
                    leaders.stream().anyMatch(first -> isShared(first, one) && isComputing(first));
            final boolean isComputed =
                    booked.keySet().stream()
                            .anyMatch(other -> isShared(other, one) && !isComputing(other));
            assertTrue(
                    mode == SingleFlight.DRAW || !follows || isComputed,
                    "a prompt is computed twice");
            if (!follows && !isComputed) {
                leaders.add(one);
            }
        }

        /** Whether one may use what another that was booked of late computes, or has computed. */
        private boolean isShared(One first, One one) {
            return !first.equals(one)
                    && first.family == one.family
                    && world.nowNs.get() - booked.get(first) < FLIGHT_NS
                    && !one.isPicky
                    && one.may(first.waiter.worker)
                    && first.waiter.worker.available();
        }

        private boolean isComputing(One one) {
            return world.router.isPrefilling(one.waiter.lease.requestId());
        }

        private int[] prompt(int family) {
            if (family < 0) {
                return world.prompt(1 + random.nextInt(200));
            }
            final int[] tokens = new int[PREFIX + 16];
            Arrays.fill(tokens, 0, PREFIX, 1_000 + family);
            tokens[PREFIX] = 5_000 + all.size();
            return tokens;
        }

        /** Whether one that has come has the room of the queue that is due to it, and no more. */
        private void checkRoom(One one, List<One> before) {
            final List<One> lower =
                    before.stream().filter(other -> other.priority() < one.priority()).toList();
            final int excess = Math.min(1, before.size() + 1 - maxRequests);
            final long excessTokens =
                    Math.min(one.tokens(), tokens(before) + one.tokens() - maxTokens);
            if (one.waiter.refusal instanceof QueueException why && why.kind() != Kind.DEADLINE) {
                assertTrue(
                        lower.size() < excess || tokens(lower) < excessTokens,
                        "refused though those of lower priority have the room");
            }
            final List<One> gone = before.stream().filter(other -> !other.waits()).toList();
            assertTrue(lower.containsAll(gone), "one of no lower priority gave way");
            assertTrue(gone.isEmpty() || one.waits(), "they gave way to one that does not wait");
            assertTrue(gone.isEmpty() || excess > 0 || excessTokens > 0, "in vain");
        }

        private static long tokens(List<One> of) {
            return of.stream().mapToLong(One::tokens).sum();
        }

        private List<One> waiting() {
            return all.stream().filter(One::waits).toList();
        }

        private List<One> running() {
            return all.stream()
                    .filter(one -> one.waiter.lease != null && one.waiter.lease.isOpen())
                    .toList();
        }

        private void settle() {
            Eventually.holds("the loads", world::isSettled);
        }

        private void step() {
            world.queue.step();
            settle();
            for (One one : waiting()) {
                assertTrue(one.endNs > world.nowNs.get(), "one waits too long");
                for (Worker worker : workers) {
                    assertTrue(
                            !one.may(worker) || !hasRoom(worker, one) || mayFollow(one),
                            "one waits while there is room");
                }
            }
        }

        private boolean hasRoom(Worker worker, One one) {
            return worker.available()
                    && (threshold < 0 || worker.prefillTokens() <= threshold)
                    && (!one.isPicky || worker.prefillTokens() == 0);
        }

        /** Whether a worker that one may use computes a prompt that begins alike. */
        private boolean mayFollow(One one) {
            return mode == SingleFlight.WAIT
                    && one.family >= 0
                    && running().stream()
                            .anyMatch(
                                    other ->
                                            other.family == one.family
                                                    && one.may(other.waiter.worker)
                                                    && isComputing(other));
        }

        private void check() {
            final QueueStatus status = world.queue.status();
            assertEquals(waiting().size(), status.requests());
            assertEquals(tokens(waiting()), status.tokens());
            assertEquals(world.admitted.size(), status.admitted());
            long cancelled = 0;
            for (One one : all) {
                if (one.waiter.lease != null) {
                    booked.putIfAbsent(one, world.nowNs.get());
                }
                cancelled += one.waits() || one.waiter.outcomes.get() == 1 ? 0 : 1;
                assertTrue(one.waiter.worker == null || one.may(one.waiter.worker));
                assertTrue(one.waiter.outcomes.get() <= 1, "two outcomes");
            }
            assertEquals(cancelled, status.cancelled());
        }
    }
}
