package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.OffHeap;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.router.load.LoadReading;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.queue.QueueException;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A whole router and its queue called by three threads at once in any order: requests, leases,
 * workers that come, change and go, their events, settings, time. No decision names a worker that
 * was out before it began, and once all is quiet nothing is left: no load, no block, no slot, no
 * memory.
 */
class RouterThreadsModelTest {
    private static final int TRIALS = 4;
    private static final int THREADS = 3;
    private static final int STEPS = 250;
    private static final int OWN = 3; // workers that one thread registers
    private static final int SLOTS = THREADS * OWN + 1;
    private static final int BLOCK = 16;
    private static final int BLOCKS = 8;
    private static final long TAINT = 4;

    @Test
    void nothingIsLeftOnceAllIsQuiet() throws Exception {
        final long seed = Seeds.next("RouterThreadsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final long bytes = OffHeap.allocatedBytes();
            final Model model = new Model(seed + trial);
            try {
                model.run();
            } catch (Exception | AssertionError e) {
                throw new AssertionError("seed=" + (seed + trial) + ": " + e.getMessage(), e);
            } finally {
                model.queue.close();
                model.router.close();
            }
            Eventually.holds("all memory is given back", () -> OffHeap.allocatedBytes() <= bytes);
        }
    }

    /** One run. */
    private static final class Model {
        private final long seed;
        private final AtomicLong nowNs = new AtomicLong(1_000);
        private final AtomicLong events = new AtomicLong(); // orders removals and calls
        private final Map<Worker, Long> removed = new ConcurrentHashMap<>();
        private final Queue<Lease> leases = new ConcurrentLinkedQueue<>();
        private final Queue<CompletableFuture<Lease>> waiting = new ConcurrentLinkedQueue<>();
        private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        private final KvRouter router;
        private final RouterQueue queue;

        Model(long seed) {
            this.seed = seed;
            final Random random = new Random(seed);
            final RouterConfig.Builder builder =
                    KvRouter.builder()
                            .blockSize(BLOCK)
                            .maxWorkers(SLOTS)
                            .maxBlocks(256, 1_024)
                            .maxActiveRequests(random.nextBoolean() ? 16 : 256)
                            .set(RouterSettings.SEED, seed)
                            .set(RouterSettings.QUEUE_PREFILL_TOKENS, 500L)
                            .set(RouterSettings.QUEUE_MAX_REQUESTS, 8)
                            .set(RouterSettings.APPROXIMATE, random.nextBoolean())
                            .set(RouterSettings.DECISION_JOURNAL, random.nextInt(2) * 64)
                            .set(RouterSettings.TRACK_ACTIVE_BLOCKS, random.nextInt(4) > 0)
                            .set(RouterSettings.MODE, pick(random, RoutingMode.values()))
                            .tickedBy(nowNs::get);
            if (random.nextBoolean()) {
                builder.set(RouterSettings.HOST_CACHE_HIT_WEIGHT, 0.5);
            }
            router = builder.build();
            queue = RouterQueue.steppedBy(router, nowNs::get);
        }

        private static <T> T pick(Random random, T[] all) {
            return all[random.nextInt(all.length)];
        }

        void run() throws Exception {
            final List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                final Caller caller = new Caller(i, new Random(seed * THREADS + i));
                threads.add(Thread.ofPlatform().start(caller));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            if (!failures.isEmpty()) {
                throw new AssertionError(failures.toString(), failures.peek());
            }
            settle();
        }

        /** Time is slow until all is applied: bookings under way for 10 s count as lost. */
        private void settle() throws Exception {
            Eventually.holds("what waits has an outcome", this::noneWaits);
            for (CompletableFuture<Lease> each : waiting) {
                if (!each.isCompletedExceptionally()) {
                    leases.add(each.get());
                }
            }
            Eventually.holds(
                    () -> "the load of what is open: " + loads(),
                    () -> {
                        final boolean applied = applied();
                        final long open = leases.stream().distinct().filter(Lease::isOpen).count();
                        return applied
                                && open == router.activeLeases()
                                && open == router.activeRequests().activeRequests()
                                && open == requests();
                    });
            assertEquals(0, router.activeRequests().corrections(), "loads that were wrong");
            leases.forEach(Lease::close);
            Eventually.holds(
                    () -> "no load: " + loads(),
                    () ->
                            applied()
                                    && router.activeLeases() == 0
                                    && router.activeRequests().activeRequests() == 0
                                    && router.activeRequests().activeBlocks() == 0
                                    && router.activeRequests().runs() == 0
                                    && router.workers().stream().allMatch(this::isIdle));
            router.workers().forEach(router::removeWorker);
            Eventually.holds(
                    () -> "no blocks: " + router.index().blocks(),
                    () ->
                            router.index().blocks() == 0
                                    && router.index().heldBlocks() == 0
                                    && (router.routedPrefixes() == null
                                            || router.routedPrefixes().blocks() == 0));
            for (int i = 0; i < SLOTS; i++) { // each slot is free again
                final Worker worker = router.addWorker(WorkerSpec.of(i, "new" + i, "http://w"));
                assertEquals(0, worker.indexedBlocks());
                assertTrue(isIdle(worker), worker::toString);
            }
            assertEquals(0, router.status().failures());
        }

        private boolean noneWaits() {
            if (!applied()) {
                return false;
            }
            router.tick(nowNs.addAndGet(TimeUnit.SECONDS.toNanos(20)));
            queue.step();
            return waiting.stream().allMatch(CompletableFuture::isDone);
        }

        private boolean applied() {
            return router.bookingPipeline().backlog() == 0 && router.indexPipeline().backlog() == 0;
        }

        private boolean isIdle(Worker worker) {
            return worker.activeRequests() == 0
                    && worker.prefillTokens() == 0
                    && worker.activeBlocks() == 0;
        }

        private long requests() {
            return router.workers().stream().mapToLong(Worker::activeRequests).sum();
        }

        private String loads() {
            final StringBuilder text = new StringBuilder();
            for (Worker worker : router.workers()) {
                text.append(worker)
                        .append(' ')
                        .append(worker.activeRequests())
                        .append(' ')
                        .append(worker.prefillTokens())
                        .append(' ')
                        .append(worker.activeBlocks())
                        .append("; ");
            }
            return text.append("leases ")
                    .append(router.activeLeases())
                    .append(", seen ")
                    .append(leases.stream().distinct().filter(Lease::isOpen).count())
                    .append(", table ")
                    .append(router.activeRequests().activeRequests())
                    .append(" of ")
                    .append(router.activeRequests().activeBlocks())
                    .append(", corrections ")
                    .append(router.activeRequests().corrections())
                    .toString();
        }

        /** One thread. */
        private final class Caller implements Runnable {
            private final int number;
            private final Random random;
            private final Worker[] own = new Worker[OWN];
            private final EngineStream[] streams = new EngineStream[OWN];
            private final long[] sequences = new long[OWN];
            private final boolean[] away = new boolean[OWN]; // said to be unavailable
            private final RouteRequest request = router.newRequest();
            private final Decision decision = new Decision();
            private final List<Lease> mine = new ArrayList<>();

            Caller(int number, Random random) {
                this.number = number;
                this.random = random;
            }

            @Override
            public void run() {
                for (int step = 0; step < STEPS && failures.isEmpty(); step++) {
                    try {
                        step();
                    } catch (RouteException e) {
                        // an outcome
                    } catch (Throwable t) {
                        failures.add(t);
                    }
                }
            }

            private void step() throws Exception {
                switch (random.nextInt(20)) {
                    case 0, 1, 2, 3 -> decide(router::select);
                    case 4, 5, 6, 7 -> decide((r, d) -> keep(router.reserve(r, d)));
                    case 8 -> named();
                    case 9, 10, 11 -> carryOn();
                    case 12, 13 -> change(random.nextInt(OWN));
                    case 14, 15, 16 -> event(random.nextInt(OWN));
                    case 17 -> wait(random.nextBoolean());
                    case 18 -> pass();
                    default -> setting();
                }
            }

            private void keep(Lease lease) {
                leases.add(lease);
                mine.add(lease);
            }

            private int[] prompt() {
                final int[] tokens = new int[random.nextInt(BLOCKS * BLOCK)];
                final int kind = random.nextInt(4);
                for (int i = 0; i < tokens.length; i++) {
                    tokens[i] = kind + (i / BLOCK == 3 ? random.nextInt(2) : 0);
                }
                return tokens;
            }

            private interface Choice {
                void run(RouteRequest request, Decision decision) throws RouteException;
            }

            private void decide(Choice choice) throws RouteException {
                final int[] tokens = prompt();
                request.reset().tokens(tokens, tokens.length);
                Worker pinned = null;
                Worker excluded = null;
                final List<Worker> all = router.workers();
                final Worker any = all.isEmpty() ? null : all.get(random.nextInt(all.size()));
                switch (random.nextInt(12)) {
                    case 0 -> {
                        pinned = any;
                        request.pin(any);
                    }
                    case 1 -> {
                        if (any != null) {
                            excluded = any;
                            request.exclude(any);
                        }
                    }
                    case 2 -> request.mode(pick(random, RoutingMode.values()));
                    case 3 -> request.session("s" + random.nextInt(4));
                    case 4 -> request.lora("a" + random.nextInt(2));
                    case 5 -> request.firstTokenUnseen(true);
                    case 6 -> request.deadline(nowNs.get() + random.nextLong(5_000_000_000L));
                    case 7 -> request.onlyWithRoom(true);
                    case 8 -> request.require("l");
                    default -> {}
                }
                final boolean tainted = random.nextBoolean();
                final boolean tolerates = random.nextInt(4) > 0;
                if (!tainted) {
                    request.excludeTainted(TAINT);
                }
                if (tolerates) {
                    request.tolerate("t");
                }
                final long before = events.get();
                choice.run(request, decision);
                final Worker chosen = decision.worker();
                final Long out = removed.get(chosen);
                assertTrue(out == null || out > before, () -> "removed: " + chosen);
                assertNotSame(excluded, chosen, "excluded");
                if (pinned != null) {
                    assertSame(pinned, chosen, "pinned");
                }
                assertTrue(tainted || (chosen.taints() & TAINT) == 0, () -> "tainted: " + chosen);
                assertTrue(
                        tolerates || chosen.namedTaints().isEmpty(),
                        () -> "not tolerated: " + chosen);
                for (int i = 0; i < OWN; i++) {
                    assertTrue(!away[i] || !chosen.equals(own[i]), () -> "away: " + chosen);
                }
            }

            private void named() throws RouteException {
                final String id = "r" + random.nextInt(6);
                switch (random.nextInt(4)) {
                    case 0 -> router.free(id);
                    case 1 -> router.markPrefillComplete(id);
                    default -> {
                        try {
                            decide((r, d) -> leases.add(router.reserve(id, r, d)));
                        } catch (IllegalStateException e) {
                            assertTrue(e.getMessage().contains("has an open booking"), e::toString);
                        }
                    }
                }
            }

            private void carryOn() {
                if (mine.isEmpty()) {
                    return;
                }
                final Lease lease = mine.get(random.nextInt(mine.size()));
                switch (random.nextInt(6)) {
                    case 0 -> lease.prefillComplete();
                    case 1 -> lease.outputTokens(random.nextInt(200));
                    case 2 -> lease.engineCachedTokens(random.nextInt(100));
                    case 3 -> lease.workerFailed();
                    default -> {
                        lease.close();
                        mine.remove(lease);
                        assertFalse(lease.isOpen());
                    }
                }
            }

            private void change(int i) {
                final Worker worker = own[i];
                if (worker == null) {
                    add(i);
                    return;
                }
                switch (random.nextInt(10)) {
                    case 0, 1 -> {
                        own[i] = null;
                        router.removeWorker(worker);
                        removed.put(worker, events.incrementAndGet());
                        if (random.nextBoolean()) {
                            router.removeWorker(worker);
                        }
                    }
                    case 2, 3 -> {
                        away[i] = !away[i];
                        worker.available(!away[i]);
                    }
                    case 4 -> worker.adapters(random.nextBoolean() ? Set.of() : Set.of("a0"));
                    case 5 -> worker.full("test", Duration.ofMillis(random.nextInt(200)));
                    case 6 -> worker.capacity(random.nextInt(200), random.nextInt(2_000));
                    case 7 -> router.forgetPredicted(worker);
                    case 8 -> worker.reportLoad(new LoadReading().running(random.nextInt(9)));
                    default -> {
                        streams[i] =
                                router.openDirect(
                                        worker, EngineMessages.source(worker.name(), BLOCK));
                        sequences[i] = 0;
                    }
                }
            }

            private void add(int i) {
                final String name = "w" + number + i;
                WorkerSpec spec =
                        new WorkerSpec(
                                number * 10L + i,
                                name,
                                "http://" + name,
                                0,
                                null,
                                random.nextBoolean() ? TAINT : 0);
                if (random.nextInt(4) == 0) {
                    spec = spec.tainted(Set.of("t"));
                }
                if (random.nextInt(4) == 0) {
                    spec = spec.labelled(Map.of("l", ""));
                }
                own[i] = router.addWorker(spec);
                away[i] = false;
                streams[i] = null;
            }

            private void event(int i) {
                if (streams[i] == null) {
                    return;
                }
                if (random.nextInt(10) == 0) {
                    sequences[i] += random.nextInt(3); // lost
                }
                final int[] tokens = prompt();
                final int blocks = tokens.length / BLOCK;
                final long name = random.nextInt(8) * 16L;
                final String medium = random.nextInt(4) == 0 ? "CPU" : "GPU";
                streams[i].onMessage(
                        sequences[i]++,
                        switch (random.nextInt(8)) {
                            case 0 -> EngineMessages.cleared();
                            case 1, 2 -> EngineMessages.removed(blocks, name, medium);
                            default ->
                                    EngineMessages.stored(
                                            tokens, blocks, BLOCK, name, null, medium);
                        });
            }

            private void wait(boolean goesOn) {
                final int[] tokens = prompt();
                final CompletableFuture<Lease> lease =
                        queue.admit(
                                r -> r.tokens(tokens, tokens.length).tolerate("t"),
                                new QueueRank(random.nextInt(3), 0, QueueRank.NO_DEADLINE));
                var _ =
                        lease.whenComplete(
                                (_, failure) -> {
                                    if (failure != null
                                            && !(failure instanceof RouteException)
                                            && !(failure instanceof QueueException)
                                            && !lease.isCancelled()) {
                                        failures.add(failure);
                                    }
                                });
                waiting.add(lease);
                if (!goesOn) {
                    queue.step();
                    lease.cancel(false);
                }
            }

            private void pass() throws Exception {
                final long ns = nowNs.addAndGet(random.nextLong(100_000_000));
                router.tick(ns);
                queue.step();
                switch (random.nextInt(6)) {
                    case 0 -> router.status();
                    case 1 -> router.dumpEvents(new StringBuilder());
                    case 2 -> decideLoads();
                    case 3 -> router.awaitReady(Duration.ZERO);
                    default -> {}
                }
            }

            private void decideLoads() {
                final int[] tokens = prompt();
                request.reset().tokens(tokens, tokens.length);
                router.potentialLoads(request);
                router.findMatches(request);
            }

            private void setting() {
                switch (random.nextInt(12)) {
                    case 0 -> router.mode(pick(random, RoutingMode.values()));
                    case 1 -> set(RouterSettings.TEMPERATURE, random.nextDouble());
                    case 2 ->
                            set(RouterSettings.SESSION_TTL, Duration.ofSeconds(random.nextInt(2)));
                    case 3 -> set(RouterSettings.LORA_MODE, pick(random, LoraMode.values()));
                    case 4 -> set(RouterSettings.BUSY_PREFILL_TOKENS, random.nextLong(600));
                    case 5 -> set(RouterSettings.BUSY_TTFT, Duration.ofSeconds(random.nextInt(2)));
                    case 6 ->
                            set(
                                    RouterSettings.BOOKING_TIMEOUT,
                                    Duration.ofSeconds(random.nextInt(4)));
                    case 7 ->
                            set(RouterSettings.SINGLE_FLIGHT, pick(random, SingleFlight.values()));
                    case 8 -> set(RouterSettings.QUEUE_PREFILL_TOKENS, 1 + random.nextLong(600));
                    case 9 -> set(RouterSettings.TRACK_OUTPUT_BLOCKS, random.nextBoolean());
                    case 10 -> set(RouterSettings.TRACK_PREFILL_TOKENS, random.nextBoolean());
                    default -> set(RouterSettings.OVERLAP_WEIGHT, random.nextDouble());
                }
            }

            private <T> void set(Setting<T> setting, T value) {
                try {
                    router.change(router.settings().with(setting, value));
                } catch (IllegalArgumentException e) {
                    // needs what the router was started without
                }
            }
        }
    }
}
