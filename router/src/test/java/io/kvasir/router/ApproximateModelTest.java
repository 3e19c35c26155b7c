package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * What workers without events are taken to hold is what the last requests say that went there:
 * within time, blocks and visits, for workers that come, go, restart or begin to announce, while
 * the limits change.
 */
class ApproximateModelTest {
    private static final int BLOCK = 4;
    private static final int STEPS = 80;
    private static final int SLOTS = 4;
    private static final int LONGEST = 9;
    private static final int VISITS = 12;
    private static final long MOST = 40;

    @Tag("trials")
    @Test
    void whatIsPredictedIsWhatWasRoutedOfLate() throws RouteException {
        final long seed = Seeds.next("ApproximateModelTest");
        for (int trial = 0; trial < Trials.of(2, 20); trial++) {
            final Model model = new Model(seed + trial);
            try {
                model.run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError(
                        "seed=" + (seed + trial) + ", step " + model.step + ": " + e.getMessage(),
                        e);
            } finally {
                model.router.close();
            }
        }
    }

    /** A prompt that went to a worker. */
    private static final class Visit {
        private final Worker worker;
        private final int[] prompt;
        private long timeS;
        private boolean cleared; // its worker holds nothing of it, but it is one of the visits

        Visit(Worker worker, int[] prompt, long timeS) {
            this.worker = worker;
            this.prompt = prompt;
            this.timeS = timeS;
        }
    }

    /** One run. */
    private static final class Model {
        private final Random random;
        private final KvRouter router;
        private final Decision decision = new Decision();
        private final Deque<Visit> visits = new ArrayDeque<>(); // oldest first
        private final Set<Worker> speaking = new HashSet<>();
        private final List<Lease> leases = new ArrayList<>();
        private long most = MOST;
        private double ratio = 0.5;
        private long ttlS = 10;
        private long nowS;
        private long tickedS;
        private boolean ticked;
        private int names;
        private int step;

        Model(long seed) {
            random = new Random(seed);
            nowS = random.nextLong(100) - 50;
            router =
                    KvRouter.builder()
                            .blockSize(BLOCK)
                            .tickedBy(() -> TimeUnit.SECONDS.toNanos(nowS))
                            .maxWorkers(SLOTS)
                            .maxBlocks(256, 256)
                            .random(RandomSource.seeded(seed))
                            .routedPrefixes(
                                    new PredictedPrefixesConfig(
                                            SLOTS,
                                            most,
                                            ratio,
                                            VISITS,
                                            TimeUnit.SECONDS.toNanos(ttlS)))
                            .build();
        }

        private void run() throws RouteException {
            for (step = 0; step < STEPS; step++) {
                switch (random.nextInt(12)) {
                    case 0 -> add();
                    case 1 -> change();
                    case 2, 3 -> pass();
                    case 4 -> limit();
                    case 5 -> {
                        if (!leases.isEmpty()) {
                            leases.remove(random.nextInt(leases.size())).close();
                        }
                    }
                    default -> route();
                }
                check();
            }
            nowS += 1_000;
            tick();
            leases.forEach(Lease::close);
            check();
            assertEquals(0, router.routedPrefixes().blocks());
            assertEquals(0, router.routedPrefixes().visits());
        }

        private void awaitApplied() {
            Eventually.holds(
                    "empty rings",
                    () ->
                            router.bookingPipeline().backlog() + router.indexPipeline().backlog()
                                    == 0);
        }

        private void add() {
            if (router.workers().size() < SLOTS) {
                final String name = "w" + names++;
                router.addWorker(WorkerSpec.of(names, name, "http://" + name));
            }
        }

        private void change() {
            if (router.workers().isEmpty()) {
                return;
            }
            final Worker one = any();
            switch (random.nextInt(6)) {
                case 0, 1 -> {
                    router.removeWorker(one);
                    forget(one);
                }
                case 2 -> {
                    router.openDirect(one, EngineMessages.source(one.name(), BLOCK));
                    speaking.add(one);
                }
                default -> {
                    assertTrue(router.forgetPredicted(one));
                    if (!speaking.contains(one)) {
                        forget(one);
                    }
                }
            }
        }

        private void forget(Worker one) {
            visits.stream().filter(v -> v.worker == one).forEach(v -> v.cleared = true);
        }

        private Worker any() {
            return router.workers().get(random.nextInt(router.workers().size()));
        }

        private void pass() {
            nowS += random.nextInt(6);
            if (random.nextInt(4) > 0) {
                tick();
            }
        }

        private void tick() {
            awaitApplied();
            if (!ticked) {
                ticked = true;
                visits.forEach(v -> v.timeS = nowS); // what came before is as old as that
            }
            tickedS = nowS;
            router.tick(TimeUnit.SECONDS.toNanos(nowS));
            awaitApplied();
            expire();
            pruneAbove(0);
        }

        private void expire() {
            while (!visits.isEmpty() && tickedS - visits.getFirst().timeS > ttlS) {
                visits.removeFirst();
            }
        }

        private void pruneAbove(int newest) {
            if (held().size() > most) {
                while (held().size() > (long) (ratio * most) && visits.size() > newest) {
                    visits.removeFirst();
                }
            }
        }

        private void limit() {
            awaitApplied();
            most = 1 + random.nextLong(MOST);
            ratio = (1 + random.nextInt(10)) / 10.0;
            ttlS = 1 + random.nextLong(15);
            router.change(
                    router.settings()
                            .with(RouterSettings.MAX_TREE_SIZE, most)
                            .with(RouterSettings.PRUNE_TARGET_RATIO, ratio)
                            .with(RouterSettings.TTL, Duration.ofSeconds(ttlS)));
        }

        private int[] prompt() {
            final int[] prompt = new int[random.nextInt(LONGEST * BLOCK + 1)];
            for (int i = 0; i < prompt.length; i++) {
                prompt[i] = i % BLOCK == 0 ? random.nextInt(2) : 0;
            }
            return prompt;
        }

        private void route() throws RouteException {
            if (router.workers().isEmpty()) {
                return;
            }
            final int[] prompt = prompt();
            final RouteRequest request = router.newRequest().tokens(prompt, prompt.length);
            if (random.nextBoolean()) {
                request.pin(any());
            }
            if (random.nextInt(4) == 0) {
                request.assumeKvReuse(false);
            }
            leases.add(router.reserve(request, decision));
            awaitApplied();
            final Worker to = decision.worker();
            if (speaking.contains(to)) {
                return;
            }
            expire();
            pruneAbove(0);
            if (prompt.length < BLOCK || prompt.length / BLOCK > most) {
                return; // there is nothing to remember, or it is refused
            }
            if (visits.size() == VISITS) {
                visits.removeFirst();
            }
            visits.add(new Visit(to, prompt, tickedS));
            pruneAbove(1);
        }

        /** Worker and path of every block. */
        private Set<List<Object>> held() {
            final Set<List<Object>> held = new HashSet<>();
            for (Visit visit : visits) {
                for (int blocks = visit.prompt.length / BLOCK;
                        blocks > 0 && !visit.cleared;
                        blocks--) {
                    held.add(path(visit.worker, visit.prompt, blocks));
                }
            }
            return held;
        }

        private static List<Object> path(Worker worker, int[] prompt, int blocks) {
            return List.of(worker.slot(), Arrays.toString(Arrays.copyOf(prompt, blocks * BLOCK)));
        }

        private void check() throws RouteException {
            awaitApplied();
            final Set<List<Object>> held = held();
            final PredictedPrefixes predicted = router.routedPrefixes();
            assertEquals(held.size(), predicted.blocks(), "blocks");
            assertEquals(visits.size(), predicted.visits(), "visits");
            final int[] prompt = prompt();
            for (int i = 0; i < router.workers().size(); i++) {
                final Worker one = router.workers().get(i);
                int depth = 0;
                while (!speaking.contains(one)
                        && depth < prompt.length / BLOCK
                        && held.contains(path(one, prompt, depth + 1))) {
                    depth++;
                }
                router.select(router.newRequest().tokens(prompt, prompt.length).pin(one), decision);
                assertEquals(depth, decision.overlapBlocks(), one::toString);
                assertEquals(
                        Math.min(depth, Math.max(0, prompt.length - 1) / BLOCK) * BLOCK,
                        decision.predictedCachedTokens(),
                        one::toString);
            }
        }
    }
}
