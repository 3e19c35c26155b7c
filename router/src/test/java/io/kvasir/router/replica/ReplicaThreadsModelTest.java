package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.router.Decision;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * Replicas whose callers are threads of their own: they book, carry on and end requests, and take
 * workers out and put them back, while messages are lost, doubled and late, and routers are
 * restarted, join and leave. Once all is quiet each router's load is that of all leases, and none
 * once they are closed.
 */
class ReplicaThreadsModelTest {
    private static final int TRIALS = 1;
    private static final int THREADS = 3;
    private static final int STEPS = 40;

    @Test
    void inTheEndEachRoutersLoadIsThatOfAllLeases() throws Exception {
        final long seed = Seeds.next("ReplicaThreadsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(seed + trial)) {
                model.run();
            } catch (Exception | AssertionError e) {
                throw new AssertionError("seed=" + (seed + trial) + ": " + e.getMessage(), e);
            }
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final long seed;
        private final ReplicaStory story;
        private final Random random;
        private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        private volatile List<ReplicaStory.Replica> replicas = List.of(); // for the callers
        private volatile boolean over;

        Model(long seed) {
            this.seed = seed;
            story = new ReplicaStory(seed, ReplicaStory.DIGEST, ReplicaStory.LEASE);
            random = story.random;
        }

        @Override
        public void close() {
            story.close();
        }

        void run() throws Exception {
            story.join();
            story.join();
            replicas = List.copyOf(story.replicas);
            final List<Caller> callers = new ArrayList<>();
            final List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                callers.add(new Caller(new Random(seed ^ (i + 1) * 0x9e3779b97f4a7c15L)));
                threads.add(Thread.ofPlatform().start(callers.getLast()));
            }
            try {
                for (int step = 0; step < STEPS && failures.isEmpty(); step++) {
                    fate();
                    story.pass(1 + random.nextInt(4));
                }
            } finally {
                over = true;
                for (Thread thread : threads) {
                    thread.join();
                }
            }
            if (!failures.isEmpty()) {
                throw new AssertionError(failures.toString(), failures.peek());
            }
            callers.forEach(Caller::say);
            story.replicas.forEach(this::completeWorkers);
            story.quiesce();
            compare();
            for (ReplicaStory.Replica replica : story.replicas) {
                replica.open.forEach(open -> open.lease.close());
                replica.open.clear();
            }
            story.quiesce();
            compare();
            for (ReplicaStory.Replica replica : story.replicas) {
                assertEquals(0, replica.router.activeRequests().activeRequests());
                assertEquals(0, replica.router.activeRequests().activeBlocks());
                assertEquals(0, replica.router.activeLeases());
            }
        }

        private void compare() {
            final Map<String, String> truth = story.truth();
            final Map<Long, Object> seen = new TreeMap<>();
            final Map<Long, Object> expected = new TreeMap<>();
            for (ReplicaStory.Replica replica : story.replicas) {
                seen.put(replica.id, ReplicaStory.seen(replica.router));
                expected.put(replica.id, truth);
            }
            assertEquals(expected, seen);
        }

        private void completeWorkers(ReplicaStory.Replica replica) {
            for (int i = 0; i < ReplicaStory.WORKERS; i++) {
                if (replica.worker(i) == null) {
                    replica.addWorker(i);
                }
            }
        }

        private void fate() {
            final ReplicaStory.Replica one =
                    story.replicas.get(random.nextInt(story.replicas.size()));
            switch (random.nextInt(24)) {
                case 0 -> story.hub.cut(story.replicas.getFirst().link, one.link, true);
                case 1 -> story.hub.heal();
                case 2 -> story.restart(one);
                case 3 -> {
                    if (story.replicas.size() < 4) {
                        story.join();
                    }
                }
                case 4 -> {
                    if (story.replicas.size() > 2) {
                        story.kill(one);
                    }
                }
                case 5 -> {
                    if (story.replicas.size() > 2) {
                        one.router.close(); // which says so
                        story.replicas.remove(one);
                    }
                }
                case 6, 7 ->
                        story.hub.faults(
                                random.nextDouble(0.4),
                                random.nextDouble(0.3),
                                TimeUnit.MILLISECONDS.toNanos(1 + random.nextInt(2_000)));
                case 8 -> story.hub.faults(0, 0, 0);
                default -> {}
            }
            replicas = List.copyOf(story.replicas);
        }

        private record Held(ReplicaStory.Replica at, ReplicaStory.Open open) {}

        /** A thread that has requests. */
        private final class Caller implements Runnable {
            private final Random random;
            private final List<Held> mine = new ArrayList<>();
            private final Decision decision = new Decision();

            Caller(Random random) {
                this.random = random;
            }

            @Override
            public void run() {
                while (!over) {
                    try {
                        step();
                        Thread.sleep(0, 200_000);
                    } catch (RouteException | ClosedException e) {
                        // an outcome
                    } catch (Throwable t) {
                        failures.add(t);
                        return;
                    }
                }
            }

            private void step() throws RouteException {
                final List<ReplicaStory.Replica> all = replicas;
                final int what = random.nextInt(20);
                if (what < 9 && mine.size() < 40) {
                    book(all.get(random.nextInt(all.size())));
                } else if (what == 9) {
                    change(all.get(random.nextInt(all.size())));
                } else if (!mine.isEmpty()) {
                    carryOn(mine.get(random.nextInt(mine.size())), what);
                }
            }

            private void book(ReplicaStory.Replica at) throws RouteException {
                final int[] prompt = story.prompt(random);
                final RouteRequest request = at.router.newRequest();
                mine.add(
                        new Held(
                                at,
                                new ReplicaStory.Open(
                                        at.router.reserve(
                                                request.tokens(prompt, prompt.length), decision),
                                        decision.worker().name(),
                                        prompt,
                                        prompt.length)));
            }

            private void carryOn(Held held, int what) {
                final ReplicaStory.Open open = held.open;
                switch (what) {
                    case 10, 11, 12 -> {
                        open.lease.prefillComplete();
                        open.prefill = 0;
                    }
                    case 13, 14, 15 -> {
                        open.output += random.nextInt(40);
                        open.lease.outputTokens(open.output);
                    }
                    default -> {
                        open.lease.close();
                        mine.remove(held);
                    }
                }
            }

            private void change(ReplicaStory.Replica at) {
                final int i = random.nextInt(ReplicaStory.WORKERS);
                final Worker worker = at.worker(i);
                if (worker != null) {
                    at.router.removeWorker(worker);
                    return;
                }
                try {
                    at.addWorker(i);
                } catch (IllegalArgumentException e) {
                    // another thread was first
                }
            }

            /** What is open still. */
            void say() {
                for (Held held : mine) {
                    if (story.replicas.contains(held.at) && held.open.lease.isOpen()) {
                        held.at.open.add(held.open);
                    }
                }
            }
        }
    }
}
