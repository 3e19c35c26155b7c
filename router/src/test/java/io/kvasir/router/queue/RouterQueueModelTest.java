package io.kvasir.router.queue;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Worker;
import io.kvasir.router.queue.QueueWorld.Waiter;
import io.kvasir.router.settings.QueuePolicy;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/** A queue under random use beside a list that is sorted anew for every question. */
class RouterQueueModelTest {
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final int ROOM_TOKENS = 100;
    private static final int MAX_REQUESTS = 40;
    private static final int MAX_TOKENS = 4_000;
    private static final long MAX_WAIT_NS = 30 * SECOND;
    private static final long AGING_NS = 3 * SECOND;
    private static final int STEPS = Trials.of(500, 5_000);

    private final Random random = new Random(Seeds.next("RouterQueueModelTest"));
    private final List<Worker> workers = new ArrayList<>();
    private final List<Waiter> waiting = new ArrayList<>(); // as the model has it
    private final List<Waiter> running = new ArrayList<>();
    private final List<Waiter> all = new ArrayList<>();
    private final List<Long> arrivals = new ArrayList<>(); // of all
    private QueuePolicy policy;
    private QueueWorld world;
    private long startNs;

    @Tag("trials")
    @ParameterizedTest
    @EnumSource(QueuePolicy.class)
    void nobodyWaitsWhileThereIsRoomAndTheOrderIsThatOfASortedList(QueuePolicy by) {
        policy = by;
        world =
                QueueWorld.of(
                        QueueWorld.config()
                                .set(RouterSettings.QUEUE_PREFILL_TOKENS, (long) ROOM_TOKENS)
                                .set(RouterSettings.QUEUE_POLICY, by)
                                .set(RouterSettings.QUEUE_MAX_REQUESTS, MAX_REQUESTS)
                                .set(RouterSettings.QUEUE_MAX_TOKENS, (long) MAX_TOKENS)
                                .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofNanos(MAX_WAIT_NS))
                                .set(RouterSettings.QUEUE_AGING, Duration.ofNanos(AGING_NS)));
        startNs = world.nowNs.get();
        try {
            for (int id = 0; id < 3; id++) {
                workers.add(world.worker(id));
            }
            for (int i = 0; i < STEPS; i++) {
                act();
                settle();
                world.queue.step();
                check();
            }
            while (!running.isEmpty() || !waiting.isEmpty()) {
                if (running.isEmpty()) {
                    world.pass(SECOND);
                } else {
                    end(running.getFirst());
                }
                settle();
                world.queue.step();
                check();
            }
            assertEquals(0, world.queue.status().tokens());
            for (Waiter waiter : all) {
                assertEquals(
                        1,
                        waiter.outcomes.get() + (waiter.ticket.cancel() ? 9 : 0) + given(waiter));
            }
        } finally {
            world.close();
        }
    }

    private final List<Waiter> givenUp = new ArrayList<>();

    private int given(Waiter waiter) {
        return givenUp.contains(waiter) ? 1 : 0;
    }

    private void act() {
        switch (random.nextInt(12)) {
            case 0, 1, 2, 3, 4 -> admit();
            case 5, 6 -> {
                if (!running.isEmpty()) {
                    running.get(random.nextInt(running.size())).lease.prefillComplete();
                }
            }
            case 7, 8 -> {
                if (!running.isEmpty()) {
                    end(running.get(random.nextInt(running.size())));
                }
            }
            case 9 -> {
                if (!waiting.isEmpty()) {
                    final Waiter one = waiting.get(random.nextInt(waiting.size()));
                    assertTrue(one.ticket.cancel());
                    givenUp.add(one);
                }
            }
            case 10 -> world.nowNs.addAndGet(random.nextLong(SECOND));
            default -> {
                final Worker worker = workers.get(random.nextInt(workers.size()));
                worker.available(workers.getFirst() == worker || !worker.available());
            }
        }
    }

    private void end(Waiter one) {
        one.lease.close();
        running.remove(one);
    }

    private void admit() {
        final Worker pin =
                random.nextInt(5) == 0 ? workers.getFirst() : null; // which is always available
        final Waiter one = world.new Waiter(world.prompt(1 + random.nextInt(200)), pin);
        final QueueRank rank =
                new QueueRank(
                        random.nextInt(3),
                        random.nextInt(4) == 0 ? random.nextLong(5 * SECOND) : 0,
                        random.nextInt(4) == 0
                                ? world.nowNs.get() + 1 + random.nextLong(8 * SECOND)
                                : QueueRank.NO_DEADLINE);
        all.add(one);
        arrivals.add(world.nowNs.get());
        world.admit(one, rank);
    }

    /** Waits until all that was done is on the board. */
    private void settle() {
        Eventually.holds(
                "the loads",
                () -> {
                    long expected = 0;
                    for (Waiter one : world.admitted) {
                        expected +=
                                world.router.isPrefilling(one.lease.requestId())
                                        ? one.tokens.length
                                        : 0;
                    }
                    return world.isSettled()
                            && expected == workers.stream().mapToLong(Worker::prefillTokens).sum();
                });
    }

    private void check() {
        // those that were booked now: none of those that waited and could go there was before them
        final List<Waiter> before = List.copyOf(waiting);
        for (Waiter one : world.admitted) {
            if (before.contains(one)) {
                for (Waiter other : before) {
                    if (other.outcomes.get() == 0 && !givenUp.contains(other)) {
                        assertFalse(
                                other.pin == one.pin && model().compare(other, one) < 0,
                                "overtaken in its own lane");
                    }
                }
            }
            if (!running.contains(one) && one.lease.isOpen()) {
                running.add(one);
            }
        }
        waiting.clear();
        long tokens = 0;
        for (Waiter one : all) {
            assertTrue(one.outcomes.get() <= 1, "two outcomes");
            if (one.outcomes.get() == 0 && !givenUp.contains(one)) {
                waiting.add(one);
                tokens += one.tokens.length;
                assertTrue(one.isWaiting());
                assertTrue(world.nowNs.get() - arrivals.get(all.indexOf(one)) < MAX_WAIT_NS);
                assertTrue(world.nowNs.get() < one.rank.deadlineNs());
                for (Worker worker : workers) {
                    assertFalse(
                            (one.pin == null || one.pin == worker)
                                    && worker.available()
                                    && worker.prefillTokens() <= ROOM_TOKENS,
                            "one waits while there is room");
                }
            }
        }
        assertEquals(waiting.size(), world.queue.status().requests());
        assertEquals(tokens, world.queue.status().tokens());
        assertTrue(waiting.size() <= MAX_REQUESTS && tokens <= MAX_TOKENS);
        assertNotNull(world.queue.status());
    }

    private Comparator<Waiter> model() {
        return Comparator.<Waiter>comparingLong(
                        w ->
                                (arrivals.get(all.indexOf(w)) - startNs) / AGING_NS
                                        - w.rank.priority())
                .thenComparingLong(w -> w.rank.deadlineNs())
                .thenComparingDouble(
                        w -> {
                            final double arrived = arrivals.get(all.indexOf(w)) - startNs;
                            final double start = w.rank.headStartNs();
                            return switch (policy) {
                                case FCFS -> arrived - start;
                                case LCFS -> -arrived - start;
                                case WSPT -> w.tokens.length / (1 + start / SECOND);
                            };
                        })
                .thenComparingInt(all::indexOf);
    }
}
