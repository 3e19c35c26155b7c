package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.queue.QueueException;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.RouterQueue;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NamedValues;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Settings that change while a router decides. */
class LiveSettingsTest {
    private static final int BLOCK_SIZE = 16;
    private static final int HELD = 8; // blocks that the first worker holds

    /** What a router does that shows the value of a setting. */
    private interface Observation {
        Object of(Bench bench) throws RouteException;
    }

    /**
     * @param from what is set at start: name=value, blanks between
     * @param to what the row is changed to
     * @param before what is seen with the value of the start
     * @param after what is seen with the other one
     */
    private record Probe(
            String from, String to, Object before, Object after, Observation observation) {}

    private static final Map<Setting<?>, Probe> PROBES = new HashMap<>();

    static {
        probe(
                RouterSettings.MODE,
                "",
                "round-robin",
                Set.of("w1"),
                Set.of("w1", "w2"),
                b -> {
                    final Set<String> chosen = new TreeSet<>();
                    for (int i = 0; i < 4; i++) {
                        chosen.add(b.choose());
                    }
                    return chosen;
                });
        probe(
                RouterSettings.OVERLAP_WEIGHT,
                "",
                "4",
                "w2",
                "w1",
                b -> {
                    b.load(b.first, 0, 10);
                    return b.choose();
                });
        probe(
                RouterSettings.TEMPERATURE,
                "",
                "1000",
                Set.of("w1"),
                Set.of("w1", "w2"),
                b -> {
                    final Set<String> chosen = new TreeSet<>();
                    for (int i = 0; i < 200; i++) {
                        chosen.add(b.choose());
                    }
                    return chosen;
                });
        probe(
                RouterSettings.DEGRADED_CREDIT,
                "",
                "0.25",
                64,
                32,
                b -> {
                    b.loseAnEvent();
                    b.router.select(b.request().pin(b.first), b.decision);
                    return b.decision.predictedCachedTokens();
                });
        probe(
                RouterSettings.PREDICTION_CHECK,
                "",
                "off",
                IndexState.DEGRADED,
                IndexState.EXACT,
                b -> {
                    for (int i = 0; i < 8; i++) {
                        b.book(1, null);
                        b.leases.getLast().close();
                        b.awaitApplied();
                        b.leases.getLast().engineCachedTokens(0);
                    }
                    return b.first.state();
                });
        probe(
                RouterSettings.HOT_PREFIX_DISCOUNT,
                "",
                "1",
                8.5,
                16.5,
                b -> {
                    b.bothHold();
                    b.router.select(b.request().pin(b.first), b.decision);
                    return b.decision.cost();
                });
        probe(
                RouterSettings.LORA_MODE,
                "",
                "required",
                "w1",
                "w2",
                b -> {
                    b.second.adapters(Set.of("sql"));
                    b.load(b.second, 0, 1);
                    b.router.select(b.request().lora("sql"), b.decision);
                    return b.decision.worker().name();
                });
        probe(
                RouterSettings.QUEUE_THRESHOLD,
                "",
                "0",
                "w1 w1",
                "w1 -",
                b -> {
                    b.second.available(false);
                    b.first.capacity(0, BLOCK_SIZE);
                    return b.admit(2);
                });
        probe(
                RouterSettings.QUEUE_PREFILL_TOKENS,
                "",
                "0",
                "w1 w1",
                "w1 -",
                b -> {
                    b.second.available(false);
                    return b.admit(2);
                });
        probe(
                RouterSettings.QUEUE_POLICY,
                "queue-prefill-tokens=0",
                "lcfs",
                "w1 - - | 0",
                "w1 - - | 1",
                b -> {
                    b.second.available(false);
                    final String waiting = b.admit(3);
                    b.leases.getFirst().prefillComplete();
                    b.awaitApplied();
                    b.queue.step();
                    return waiting + " | " + (b.queued.get(1).isDone() ? 0 : 1);
                });
        probe(
                RouterSettings.QUEUE_MAX_REQUESTS,
                "queue-prefill-tokens=0",
                "1",
                "w1 - -",
                "w1 - QUEUE_FULL",
                b -> {
                    b.second.available(false);
                    return b.admit(3);
                });
        probe(
                RouterSettings.QUEUE_MAX_TOKENS,
                "queue-prefill-tokens=0",
                "200",
                "w1 - -",
                "w1 - QUEUE_TOKENS_FULL",
                b -> {
                    b.second.available(false);
                    return b.admit(3);
                });
        probe(
                RouterSettings.QUEUE_MAX_WAIT,
                "queue-prefill-tokens=0",
                "1000",
                "w1 -",
                "w1 WAITED_TOO_LONG",
                b -> {
                    b.second.available(false);
                    b.admit(2);
                    b.pass(Duration.ofSeconds(2));
                    b.queue.step();
                    return b.outcomes();
                });
        probe(
                RouterSettings.QUEUE_AGING,
                "queue-prefill-tokens=0",
                "0",
                "w1 w1 -",
                "w1 - w1",
                b -> {
                    b.second.available(false);
                    b.admit(2);
                    b.pass(Duration.ofSeconds(25));
                    b.admit(1, new QueueRank(1, 0, QueueRank.NO_DEADLINE));
                    b.leases.getFirst().prefillComplete();
                    b.awaitApplied();
                    b.queue.step();
                    return b.outcomes();
                });
        flights();
        probe(
                RouterSettings.HASH_LOAD_FACTOR,
                "mode=consistent-hash",
                "100",
                2,
                1,
                b -> {
                    final Set<Worker> chosen = Set.copyOf(b.book(10, "a"));
                    return chosen.size();
                });
        probe(
                RouterSettings.SESSION_TTL,
                "",
                "60",
                false,
                true,
                b -> {
                    b.book(2, "a");
                    return b.decision.bySession();
                });
        probe(
                RouterSettings.SESSION_MODE,
                "session-affinity-ttl-secs=60",
                "soft",
                "w1",
                "w2",
                b -> {
                    b.book(1, "a");
                    b.load(b.first, 0, 10_000);
                    b.book(1, "a");
                    return b.decision.worker().name();
                });
        probe(
                RouterSettings.SELECTION_POLICY,
                "",
                "logits",
                "linear 8.5",
                "logits " + -2 * HELD / (HELD + 0.5),
                b -> {
                    b.router.select(b.request().pin(b.first), b.decision);
                    return b.decision.policy() + " " + b.decision.cost();
                });
        probe(
                RouterSettings.ASSUME_KV_REUSE,
                "",
                "false",
                8L,
                16L,
                b -> {
                    b.book(2, null);
                    return b.first.activeBlocks();
                });
        probe(
                RouterSettings.TRACK_PREFILL_TOKENS,
                "",
                "false",
                8L,
                0L,
                b -> {
                    b.book(1, null);
                    return b.first.prefillTokens();
                });
        probe(
                RouterSettings.TRACK_OUTPUT_BLOCKS,
                "",
                "false",
                12L,
                8L,
                b -> {
                    b.book(1, null);
                    b.leases.getLast().outputTokens(4 * BLOCK_SIZE);
                    b.awaitApplied();
                    return b.first.activeBlocks();
                });
        probe(
                RouterSettings.BUSY_DECODE_BLOCKS,
                "",
                "0.5",
                "w1",
                "w2",
                b -> {
                    b.first.capacity(20, 100);
                    b.load(b.first, 0, 11);
                    return b.choose(8);
                });
        probe(
                RouterSettings.BUSY_PREFILL_TOKENS,
                "",
                "10",
                "w1",
                "w2",
                b -> {
                    b.load(b.first, 11, 0);
                    return b.choose();
                });
        probe(
                RouterSettings.BUSY_PREFILL_SHARE,
                "",
                "0.1",
                "w1",
                "w2",
                b -> {
                    b.first.capacity(20, 100);
                    b.load(b.first, 11, 0);
                    return b.choose();
                });
        probe(
                RouterSettings.BUSY_TTFT,
                "",
                "1",
                "w1",
                "w2",
                b -> {
                    b.book(1, null); // half a block, in a second
                    b.pass(Duration.ofSeconds(1));
                    b.leases.getLast().prefillComplete();
                    b.awaitApplied();
                    b.book(1, null);
                    return b.choose(8);
                });
        probe(
                RouterSettings.BOOKING_TIMEOUT,
                "",
                "1000",
                1,
                0,
                b -> {
                    b.book(1, null);
                    b.pass(Duration.ofSeconds(2));
                    return b.router.activeLeases();
                });
        probe(
                RouterSettings.TTL,
                "approximate=true",
                "1",
                4,
                0,
                b -> {
                    b.pass(Duration.ofMillis(1)); // a visit before the first tick is as old as it
                    b.route(b.second, 1, 4);
                    b.pass(Duration.ofSeconds(2));
                    return b.predicted(1, 4);
                });
        probe(
                RouterSettings.MAX_TREE_SIZE,
                "approximate=true max-tree-size=100",
                "6",
                8L,
                4L,
                b -> {
                    b.route(b.second, 1, 4);
                    b.route(b.second, 2, 4);
                    return b.router.routedPrefixes().blocks();
                });
        probe(
                RouterSettings.PRUNE_TARGET_RATIO,
                "approximate=true max-tree-size=8 prune-target-ratio=1",
                "0.5",
                8L,
                4L,
                b -> {
                    for (int n = 1; n <= 3; n++) {
                        b.route(b.second, n, 4);
                    }
                    return b.router.routedPrefixes().blocks();
                });
    }

    private static void flights() {
        final String followed = "single-flight=wait single-flight-tokens=32";
        probe(
                RouterSettings.SINGLE_FLIGHT,
                "single-flight-tokens=32",
                "wait",
                "w1 w1",
                "w1 -",
                b -> b.admitCold(3, 3));
        probe(
                RouterSettings.SINGLE_FLIGHT_TOKENS,
                followed,
                "1000",
                "w1 -",
                "w1 w1",
                b -> b.admitCold(3, 3));
        probe(
                RouterSettings.SINGLE_FLIGHT_WAIT,
                followed,
                "1000",
                "w1 -",
                "w1 w1",
                b -> {
                    b.admitCold(3, 3);
                    b.pass(Duration.ofSeconds(2));
                    b.queue.step();
                    return b.outcomes();
                });
        probe(
                RouterSettings.SINGLE_FLIGHT_PROMPTS,
                followed,
                "1",
                "w1 w1 -",
                "w1 w1 w1",
                b -> b.admitCold(3, 4, 4));
    }

    private static void probe(
            Setting<?> row,
            String from,
            String to,
            Object before,
            Object after,
            Observation observation) {
        PROBES.put(row, new Probe(from, to, before, after, observation));
    }

    /** A router with two workers, the first of which holds a prompt by its events. */
    private static final class Bench implements AutoCloseable {
        final Decision decision = new Decision();
        final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
        final List<CompletableFuture<Lease>> queued = new ArrayList<>();
        final KvRouter router;
        final RouterQueue queue;
        final Worker first;
        final Worker second;
        private long nowNs = 1;

        Bench(RouterConfig.Builder builder) {
            router =
                    builder.tickedBy(() -> nowNs)
                            .blockSize(BLOCK_SIZE)
                            .maxWorkers(8)
                            .maxBlocks(1_024, 1_024)
                            .maxActiveRequests(64)
                            .random(RandomSource.seeded(7))
                            .build();
            queue = RouterQueue.steppedBy(router, () -> nowNs);
            first = router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
            second = router.addWorker(WorkerSpec.of(2, "w2", "http://w2"));
            if (router.settings().get(RouterSettings.OVERLAP_WEIGHT) > 0) {
                events(0, 1, HELD);
            }
        }

        static Bench of(String settings) {
            final RouterConfig.Builder builder = KvRouter.builder();
            NamedValues.each(settings, builder::set);
            return new Bench(builder);
        }

        private EngineStream stream;

        private void events(long sequence, int prompt, int blocks) {
            if (stream == null) {
                stream = router.openDirect(first, EngineMessages.source(first.name(), BLOCK_SIZE));
            }
            stream.onMessage(
                    sequence,
                    EngineMessages.stored(
                            prompt(prompt, blocks), blocks, BLOCK_SIZE, 100L * prompt));
            Eventually.holds(
                    () -> "events of " + first,
                    () -> first.eventSequence() >= sequence && stream.ready());
        }

        void bothHold() {
            router.openDirect(second, EngineMessages.source(second.name(), BLOCK_SIZE))
                    .onMessage(0, EngineMessages.stored(prompt(1, HELD), HELD, BLOCK_SIZE, 100));
            Eventually.holds(() -> "events of " + second, () -> second.state() == IndexState.EXACT);
        }

        void loseAnEvent() {
            events(7, 3, 1);
            Eventually.holds(
                    () -> first.state().name(), () -> first.state() == IndexState.DEGRADED);
        }

        static int[] prompt(int number, int blocks) {
            final int[] tokens = new int[blocks * BLOCK_SIZE + BLOCK_SIZE / 2];
            Arrays.fill(tokens, number);
            return tokens;
        }

        /**
         * The prompt of which the first worker holds the beginning, with a rest of half a block.
         */
        RouteRequest request() {
            return router.newRequest().tokens(prompt(1, HELD), HELD * BLOCK_SIZE + BLOCK_SIZE / 2);
        }

        String choose() throws RouteException {
            router.select(request(), decision);
            return decision.worker().name();
        }

        /** The same with a weight by which the cached blocks count much. */
        String choose(double weight) throws RouteException {
            router.select(request().overlapWeight(weight), decision);
            return decision.worker().name();
        }

        List<Worker> book(int times, String session) throws RouteException {
            final List<Worker> chosen = new ArrayList<>();
            for (int i = 0; i < times; i++) {
                final RouteRequest request = request().session(session);
                if (session == null) {
                    request.pin(first);
                }
                leases.add(router.reserve(request, decision));
                chosen.add(decision.worker());
            }
            awaitApplied();
            return chosen;
        }

        /** What became of requests that were let in, after so many further ones. */
        String admit(int count) throws RouteException {
            return admit(count, QueueRank.USUAL);
        }

        String admit(int count, QueueRank rank) throws RouteException {
            for (int i = 0; i < count; i++) {
                admitPrompt(1, rank);
            }
            router.select(request(), decision); // for the version
            return outcomes();
        }

        /** The same of prompts of which nothing is cached, with one worker. */
        String admitCold(int... prompts) throws RouteException {
            second.available(false);
            for (int prompt : prompts) {
                admitPrompt(prompt, QueueRank.USUAL);
            }
            router.select(request(), decision); // for the version
            return outcomes();
        }

        private void admitPrompt(int prompt, QueueRank rank) {
            final CompletableFuture<Lease> lease =
                    queue.admit(
                            request ->
                                    request.tokens(
                                            prompt(prompt, HELD),
                                            HELD * BLOCK_SIZE + BLOCK_SIZE / 2),
                            rank);
            queued.add(
                    lease.thenApply(
                            booked -> {
                                leases.add(booked);
                                return booked;
                            }));
            pass(Duration.ofMillis(1)); // each comes at a time of its own
        }

        String outcomes() {
            return queued.stream().map(Bench::outcome).collect(Collectors.joining(" "));
        }

        private static String outcome(CompletableFuture<Lease> lease) {
            return switch (lease.state()) {
                case RUNNING -> "-";
                case SUCCESS -> lease.resultNow().worker().name();
                case FAILED -> ((QueueException) lease.exceptionNow()).kind().name();
                case CANCELLED -> "cancelled";
            };
        }

        void route(Worker worker, int prompt, int blocks) throws RouteException {
            final int[] tokens = prompt(prompt, blocks);
            router.reserve(
                            router.newRequest().tokens(tokens, blocks * BLOCK_SIZE).pin(worker),
                            decision)
                    .close();
            awaitApplied();
        }

        int predicted(int prompt, int blocks) throws RouteException {
            final int[] tokens = prompt(prompt, blocks);
            router.select(
                    router.newRequest().tokens(tokens, blocks * BLOCK_SIZE).pin(second), decision);
            return decision.overlapBlocks();
        }

        void load(Worker worker, long prefillTokens, long blocks) {
            router.board().add(worker.slot(), prefillTokens, blocks, 1);
        }

        void pass(Duration time) {
            nowNs += time.toNanos();
            router.tick(nowNs);
            awaitApplied();
        }

        void awaitApplied() {
            Eventually.holds(
                    "empty rings",
                    () ->
                            router.bookingPipeline().backlog() + router.indexPipeline().backlog()
                                    == 0);
        }

        <T> void change(Setting<T> row, String value) {
            router.change(router.settings().with(row, row.parse(value)));
        }

        @Override
        public void close() {
            queue.close();
            leases.forEach(Lease::close);
            router.close();
        }
    }

    static Stream<Setting<?>> liveRows() {
        return RouterSettings.TABLE.rows().stream().filter(Setting::isLive);
    }

    @ParameterizedTest
    @MethodSource("liveRows")
    void aLiveRowTakesEffectAsIfTheRouterHadStartedWithIt(Setting<?> row) throws RouteException {
        final Probe probe = PROBES.get(row);
        assertTrue(probe != null, row + " is live; a probe must show that a change takes effect");
        try (Bench usual = Bench.of(probe.from)) {
            assertEquals(probe.before, probe.observation.of(usual), "before");
        }
        try (Bench changed = Bench.of(probe.from)) {
            changed.router.select(changed.request(), changed.decision);
            assertEquals(1, changed.decision.settingsVersion());
            changed.change(row, probe.to);
            assertEquals(2, changed.router.settingsVersion());
            assertEquals(probe.after, probe.observation.of(changed), "changed");
            assertEquals(2, changed.decision.settingsVersion());
        }
        try (Bench started = Bench.of(probe.from + " " + row + "=" + probe.to)) {
            assertEquals(probe.after, probe.observation.of(started), "started with it");
        }
    }

    @ParameterizedTest
    @MethodSource("liveRows")
    void aChangeBackIsAsBefore(Setting<?> row) throws RouteException {
        final Probe probe = PROBES.get(row);
        try (Bench bench = Bench.of(probe.from)) {
            final Settings before = bench.router.settings();
            final long digest = bench.router.settingsDigest();
            bench.change(row, probe.to);
            assertNotEquals(digest, bench.router.settingsDigest());
            assertEquals(3, bench.router.change(before));
            assertEquals(digest, bench.router.settingsDigest());
            assertEquals(probe.before, probe.observation.of(bench));
        }
    }

    @Test
    void rowsThatAreNotLiveAreRefusedByNameAndNothingChanges() {
        try (Bench bench = Bench.of("")) {
            final Settings wanted =
                    bench.router
                            .settings()
                            .with(RouterSettings.BLOCK_SIZE, 32)
                            .with(RouterSettings.TEMPERATURE, 2.0)
                            .with(RouterSettings.MAX_WORKERS, 9);
            final IllegalArgumentException e =
                    assertThrows(IllegalArgumentException.class, () -> bench.router.change(wanted));
            assertEquals(
                    "block-size, max-workers cannot be changed while the router runs; start it"
                            + " again for that",
                    e.getMessage());
            assertEquals(0, bench.router.settings().get(RouterSettings.TEMPERATURE));
            assertEquals(1, bench.router.settingsVersion());
        }
    }

    @Test
    void valuesAreCheckedAsAtTheStart() {
        try (Bench bench = Bench.of("")) {
            assertThrows(
                    IllegalArgumentException.class,
                    () -> bench.router.settings().with(RouterSettings.TEMPERATURE, -1.0));
        }
    }

    @Test
    void whatChangesNothingHasNoVersion() {
        try (Bench bench = Bench.of("")) {
            assertEquals(1, bench.router.change(bench.router.settings()));
            bench.router.mode(RoutingMode.KV);
            assertEquals(1, bench.router.settingsVersion());
            bench.router.mode(RoutingMode.RANDOM);
            assertEquals(2, bench.router.settingsVersion());
            assertEquals(RoutingMode.RANDOM, bench.router.settings().get(RouterSettings.MODE));
        }
    }

    @Test
    void anIndexThatIsNotThereCannotBeAskedFor() {
        try (Bench bench = Bench.of("overlap-weight=0")) {
            final IllegalArgumentException e =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> bench.change(RouterSettings.OVERLAP_WEIGHT, "2"));
            assertEquals(
                    "overlap-weight=2 needs an index, and this router was started without one:"
                            + " prefix-index=auto, overlap-weight=0; start it with"
                            + " prefix-index=on",
                    e.getMessage());
            assertThrows(
                    IllegalArgumentException.class,
                    () -> bench.change(RouterSettings.SELECTION_POLICY, "logits"));
            assertEquals(
                    "single-flight=draw needs an index, and this router was started without one:"
                            + " prefix-index=auto, overlap-weight=0; start it with"
                            + " prefix-index=on",
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> bench.change(RouterSettings.SINGLE_FLIGHT, "draw"))
                            .getMessage());
            bench.change(RouterSettings.TEMPERATURE, "1");
        }
    }

    @Test
    void anIndexStaysWhereNothingOfItCountsForATime() throws RouteException {
        try (Bench bench = Bench.of("")) {
            bench.change(RouterSettings.OVERLAP_WEIGHT, "0");
            bench.load(bench.first, 0, 1);
            bench.router.select(bench.request().pin(bench.first), bench.decision);
            assertEquals(HELD, bench.decision.overlapBlocks(), "events are followed on");
            assertEquals("w2", bench.choose());
            bench.change(RouterSettings.OVERLAP_WEIGHT, "1");
            assertEquals("w1", bench.choose());
        }
    }

    @Test
    void whatAStartRefusesOfSingleFlightIsRefusedLiveInTheSameWords() {
        try (Bench bench = Bench.of("")) {
            final Settings wanted =
                    bench.router
                            .settings()
                            .with(RouterSettings.OVERLAP_WEIGHT, 0.0)
                            .with(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT);
            final String atStart =
                    assertThrows(
                                    IllegalArgumentException.class,
                                    () -> KvRouter.builder().settings(wanted).build())
                            .getMessage();
            final IllegalArgumentException live =
                    assertThrows(IllegalArgumentException.class, () -> bench.router.change(wanted));
            assertEquals(atStart, live.getMessage());
            assertEquals(1, bench.router.settingsVersion());
            bench.router.change(wanted.with(RouterSettings.SINGLE_FLIGHT, SingleFlight.OFF));
        }
    }

    @Test
    void memoryOfPredictionsIsThatOfTheStart() {
        try (Bench bench = Bench.of("approximate=true max-tree-size=100")) {
            final IllegalArgumentException e =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> bench.change(RouterSettings.MAX_TREE_SIZE, "101"));
            assertTrue(e.getMessage().startsWith("max-tree-size=101 exceeds"), e::getMessage);
            bench.change(RouterSettings.MAX_TREE_SIZE, "1");
            bench.change(RouterSettings.MAX_TREE_SIZE, "100");
        }
    }

    @Test
    void aPolicyThatTheProgramHasGivenHasNoName() {
        try (Bench bench = new Bench(KvRouter.builder().selectionPolicy(SelectionPolicy.LINEAR))) {
            final IllegalArgumentException e =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> bench.change(RouterSettings.SELECTION_POLICY, "logits"));
            assertTrue(e.getMessage().contains("a policy of its own"), e::getMessage);
        }
    }

    @Test
    void aPartThatTheProgramHasGivenStaysWithAnotherPolicy() throws RouteException {
        final CostModel mine =
                (candidates, costs) -> {
                    for (int i = 0; i < candidates.count(); i++) {
                        costs[i] = 42;
                    }
                };
        try (Bench bench = new Bench(KvRouter.builder().costModel(mine))) {
            bench.change(RouterSettings.SELECTION_POLICY, "load-deviation");
            bench.choose();
            assertEquals(42, bench.decision.cost());
        }
    }

    @Test
    void sessionsAreForgottenWhenTheirTimeIsZeroAndKeptWhenItIsAnother() throws RouteException {
        try (Bench bench = Bench.of("session-affinity-ttl-secs=60")) {
            bench.book(1, "a");
            bench.change(RouterSettings.SESSION_TTL, "120");
            assertEquals(1, bench.router.sessions());
            bench.book(1, "a");
            bench.pass(Duration.ofSeconds(100));
            assertEquals(1, bench.router.sessions(), "the later request has the longer time");
            bench.change(RouterSettings.SESSION_TTL, "0");
            assertEquals(0, bench.router.sessions());
            bench.change(RouterSettings.SESSION_TTL, "60");
            assertEquals(0, bench.router.sessions());
        }
    }

    @Test
    void aBookingEndsByWhatItWasMadeWith() throws RouteException {
        try (Bench bench = Bench.of("")) {
            bench.book(1, null);
            for (String off : List.of("track-prefill-tokens", "track-output-blocks")) {
                bench.change(RouterSettings.TABLE.named(off), "false");
            }
            bench.leases.getFirst().outputTokens(BLOCK_SIZE);
            bench.awaitApplied();
            assertEquals(HELD + 1, bench.first.activeBlocks());
            bench.leases.getFirst().close();
            bench.awaitApplied();
            assertEquals(0, bench.first.activeBlocks());
            assertEquals(0, bench.first.prefillTokens());
        }
    }

    @Test
    void theJournalHasWhatADecisionWasMadeBy() throws RouteException {
        try (Bench bench = Bench.of("")) {
            final List<Long> digests = new ArrayList<>();
            for (String weight : List.of("1", "2", "1")) {
                bench.change(RouterSettings.OVERLAP_WEIGHT, weight);
                bench.book(1, null);
                final var record = bench.router.journal().newRecord();
                assertTrue(bench.router.journal().read(bench.router.journal().end() - 1, record));
                digests.add(record.configVersion());
                assertEquals(bench.router.settingsDigest(), record.configVersion());
            }
            assertNotEquals(digests.get(0), digests.get(1));
            assertEquals(digests.get(0), digests.get(2), "equal settings have equal numbers");
        }
    }

    @Test
    void aDecisionGoesByOneVersionWhateverChangesMeanwhile() throws Exception {
        try (Bench bench = Bench.of("")) {
            final AtomicBoolean done = new AtomicBoolean();
            final Settings odd = bench.router.settings();
            bench.second.adapters(Set.of("sql"));
            final Settings even =
                    odd.with(RouterSettings.OVERLAP_WEIGHT, 2.0)
                            .with(RouterSettings.LORA_MODE, LoraMode.REQUIRED)
                            .with(RouterSettings.TEMPERATURE, 3.0)
                            .with(RouterSettings.SELECTION_POLICY, "logits")
                            .with(RouterSettings.SESSION_TTL, Duration.ofSeconds(1));
            final Thread changing =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        while (!done.get()) {
                                            bench.router.change(even);
                                            bench.router.change(odd);
                                        }
                                    });
            final Set<Boolean> seen = new TreeSet<>();
            final long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            for (int i = 0; i < 20_000 || seen.size() < 2; i++) {
                bench.router
                        .reserve(bench.request().lora("sql").session("a"), bench.decision)
                        .close();
                final boolean isOdd = bench.decision.settingsVersion() % 2 == 1;
                seen.add(isOdd);
                assertEquals(isOdd ? 1 : 2, bench.decision.overlapWeight());
                assertEquals(isOdd ? 0 : 3, bench.decision.temperature());
                assertEquals(isOdd ? "linear" : "logits", bench.decision.policy());
                assertTrue(isOdd || bench.decision.worker() == bench.second, "by its adapter");
                assertTrue(System.nanoTime() < limit, () -> "only seen: " + seen);
            }
            done.set(true);
            changing.join();
        }
    }
}
