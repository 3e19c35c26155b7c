package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.router.Decision.Exclusion;
import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.policy.Candidate;
import io.kvasir.router.policy.CandidateWorker;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;
import io.kvasir.router.policy.WorkerCost;
import io.kvasir.router.policy.builtin.SelectionPolicies;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/** Policies of an embedder's own: what they see, what they decide, and what they cannot break. */
class SelectionPolicyTest {
    private static final int BLOCK_SIZE = 16;

    private final long seed = Seeds.next("SelectionPolicyTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private final OverlapScores cached = new OverlapScores(128);
    private final OverlapScores active = new OverlapScores(128);
    private final List<Worker> workers = new ArrayList<>();
    private KvRouter router;

    /** What a test's class path has, see META-INF/services. */
    public static final class Provided implements SelectionPolicyProvider {
        /** For the loader. */
        public Provided() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of(
                    new SelectionPolicy(
                            "last-slot",
                            Eligibility.ALL,
                            CostModel.each((all, one) -> -one.worker().slot()),
                            Picker.LOWEST));
        }
    }

    private KvRouter start(RouterConfig.Builder builder, int count) {
        router =
                builder.tickedBy(() -> 0)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(128)
                        .maxBlocks(1_024, 1_024)
                        .maxActiveRequests(64)
                        .random(RandomSource.seeded(seed))
                        .build();
        for (int i = 0; i < count; i++) {
            final Map<String, String> labels = Map.of("zone", i % 2 == 0 ? "a" : "b");
            workers.add(
                    router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i).labelled(labels)));
        }
        return router;
    }

    @AfterEach
    void close() {
        if (router != null) {
            router.close();
        }
    }

    private RouteRequest request() {
        return router.newRequest().tokens(new int[70], 70);
    }

    private Worker choose(RouteRequest request) throws RouteException {
        router.select(request, cached, active, decision);
        return decision.worker();
    }

    private RouteException refused(RouteRequest request) {
        return assertThrows(RouteException.class, () -> choose(request));
    }

    private void load(Worker worker, long tokens, long blocks) {
        router.board().add(worker.slot(), tokens, blocks, 1);
    }

    @Test
    void theViewHasAllThatFormulasNeed() throws RouteException {
        final Map<Long, String> seen = new TreeMap<>();
        final List<String> all = new ArrayList<>();
        start(
                KvRouter.builder()
                        .costModel(
                                (view, costs) -> {
                                    all.add(
                                            view.count()
                                                    + " of "
                                                    + view.requestTokens()
                                                    + " tokens, "
                                                    + view.requestBlocks()
                                                    + " blocks of "
                                                    + view.blockSize()
                                                    + ", weight "
                                                    + view.overlapWeight()
                                                    + ", temperature "
                                                    + view.temperature()
                                                    + ", "
                                                    + view.mode());
                                    for (int n = 0; n < view.count(); n++) {
                                        seen.put(
                                                view.candidate(n).worker().id(),
                                                text(view.candidate(n)));
                                        costs[n] = n;
                                    }
                                }),
                3);
        router.openDirect(workers.get(1), EngineMessages.source("w1", BLOCK_SIZE))
                .onMessage(0, EngineMessages.stored(new int[0], 0, BLOCK_SIZE, 0));
        Eventually.holds("events", () -> workers.get(1).state() == IndexState.EXACT);
        workers.get(1).capacity(500, 2_048);
        load(workers.get(1), 32, 7);
        cached.add(workers.get(1).slot(), 4);
        cached.add(workers.get(2).slot(), 2);
        active.add(workers.get(1).slot(), 1);
        workers.get(0).available(false);
        choose(request().overlapWeight(2).temperature(0));
        assertEquals(
                List.of("2 of 70 tokens, 4 blocks of 16, weight 2.0, temperature 0.0, KV"), all);
        // prefill: (32 + 70 - 64) / 16; decode: 7 + 4 - 1
        assertEquals(
                "w1/0 b 500 2048 EXACT 1.0 holds 4 (1 in use, 64.0 tokens): 2.375 10, booked"
                        + " 32 7 1",
                seen.get(1L));
        // no events: half of 2 blocks
        assertEquals(
                "w2/0 a 0 0 DEGRADED 0.5 holds 2 (0 in use, 16.0 tokens): 3.375 4, booked 0 0 0",
                seen.get(2L));
        assertEquals(2, seen.size());
    }

    private static String text(Candidate one) {
        final CandidateWorker worker = one.worker();
        return worker
                + " "
                + worker.labels().get("zone")
                + " "
                + worker.kvBlocks()
                + " "
                + worker.batchTokens()
                + " "
                + one.state()
                + " "
                + one.credit()
                + " holds "
                + one.overlapBlocks()
                + " ("
                + one.activePrefixBlocks()
                + " in use, "
                + one.cachedTokens()
                + " tokens): "
                + one.prefillBlocks()
                + " "
                + one.decodeBlocks()
                + ", booked "
                + one.prefillTokens()
                + " "
                + one.activeBlocks()
                + " "
                + one.activeRequests();
    }

    @Test
    void aCandidateThatDoesNotExistIsRefused() throws RouteException {
        final List<Class<?>> thrown = new ArrayList<>();
        start(
                KvRouter.builder()
                        .costModel(
                                (view, costs) -> {
                                    for (int n : new int[] {-1, view.count()}) {
                                        thrown.add(
                                                assertThrows(
                                                                IndexOutOfBoundsException.class,
                                                                () -> view.candidate(n))
                                                        .getClass());
                                    }
                                }),
                2);
        choose(request());
        assertEquals(2, thrown.size());
    }

    @ParameterizedTest
    @EnumSource(value = RoutingMode.class, names = "DIRECT", mode = EnumSource.Mode.EXCLUDE)
    void whatIsNotEligibleIsNeverChosenInAnyMode(RoutingMode mode) throws RouteException {
        final Set<Worker> no = new HashSet<>();
        final Set<Worker> full = new HashSet<>();
        start(
                KvRouter.builder()
                        .eligibility(
                                one ->
                                        no.contains(one.worker())
                                                ? Verdict.INELIGIBLE
                                                : full.contains(one.worker())
                                                        ? Verdict.BUSY
                                                        : Verdict.ELIGIBLE),
                100);
        for (int round = 0; round < 300; round++) {
            no.clear();
            full.clear();
            cached.clear();
            for (Worker worker : workers) {
                (random.nextBoolean() ? no : full).add(worker);
                worker.available(random.nextInt(5) > 0);
                if (random.nextInt(3) == 0) {
                    cached.add(worker.slot(), 1 + random.nextInt(4));
                }
            }
            final Set<Worker> left = new HashSet<>();
            for (int i = 1 + random.nextInt(4); i > 0; i--) {
                final Worker worker = workers.get(random.nextInt(100));
                no.remove(worker);
                full.remove(worker);
                left.add(worker);
            }
            final Worker excluded = workers.get(random.nextInt(100));
            left.removeIf(worker -> !worker.available() || worker == excluded);
            final RouteRequest request =
                    request().mode(mode).exclude(excluded).temperature(random.nextInt(2) * 0.5);
            if (left.isEmpty()) {
                assertEquals(Kind.ALL_WORKERS_BUSY, refused(request).kind());
            } else {
                assertTrue(left.contains(choose(request)), () -> decision.explain());
                for (int i = 0; i < 100; i++) {
                    final Worker worker = workers.get(i);
                    assertEquals(
                            worker == excluded
                                    ? Exclusion.EXCLUDED
                                    : !worker.available()
                                            ? Exclusion.UNAVAILABLE
                                            : no.contains(worker)
                                                    ? Exclusion.INELIGIBLE
                                                    : full.contains(worker)
                                                            ? Exclusion.BUSY
                                                            : Exclusion.NONE,
                            decision.exclusion(i));
                }
            }
        }
        assertEquals(new PolicyFailures(0, 0, 0, 0), router.status().policyFailures());
    }

    @Test
    void whereNoneIsEligibleTheRefusalSaysWhy() throws RouteException {
        final Verdict[] says = {Verdict.INELIGIBLE};
        start(
                KvRouter.builder()
                        .selectionPolicy(
                                new SelectionPolicy(
                                        "strict", one -> says[0], CostModel.LINEAR, Picker.LOWEST)),
                2);
        final RouteException none = refused(request());
        assertEquals(Kind.NONE_ELIGIBLE, none.kind());
        assertTrue(none.kind().retryable());
        assertEquals(
                "none of 2 registered workers is available, 2 are not eligible by"
                        + " selection-policy=strict",
                none.getMessage());
        final RouteException pinned = refused(request().pin(workers.get(0)));
        assertEquals(Kind.PINNED_UNAVAILABLE, pinned.kind());
        assertTrue(pinned.getMessage().contains("selection-policy=strict"), pinned.getMessage());
        final RouteException excluded = refused(request().exclude(workers.get(0)));
        assertEquals(Kind.ALL_EXCLUDED, excluded.kind());
        assertTrue(
                excluded.getMessage().contains("1 of them by selection-policy=strict"),
                excluded.getMessage());
        says[0] = Verdict.BUSY;
        load(workers.get(0), 0, 5);
        final RouteException busy = refused(request());
        assertEquals(Kind.ALL_WORKERS_BUSY, busy.kind());
        assertTrue(
                busy.getMessage().contains("w1/0: full by selection-policy=strict"),
                busy.getMessage());
        says[0] = Verdict.ELIGIBLE;
        assertSame(workers.get(1), choose(request()));
    }

    @Test
    void aRuleThatThrowsLeavesItsWorkerOutAndIsCounted() throws RouteException {
        start(
                KvRouter.builder()
                        .eligibility(
                                one -> {
                                    if (one.worker().id() == 1) {
                                        throw new IllegalStateException("broken");
                                    }
                                    return one.worker().id() == 2 ? null : Verdict.ELIGIBLE;
                                }),
                3);
        for (int i = 0; i < 10; i++) {
            assertSame(workers.get(0), choose(request()));
        }
        assertEquals(new PolicyFailures(20, 0, 0, 0), router.status().policyFailures());
        workers.get(0).available(false);
        final RouteException none = refused(request());
        assertEquals(Kind.NONE_ELIGIBLE, none.kind());
        assertEquals(
                "none of 3 registered workers is available, 2 are not eligible by"
                        + " selection-policy=custom, 2 of them because it failed",
                none.getMessage());
        final RouteException pinned = refused(request().pin(workers.get(1)));
        assertEquals(Kind.PINNED_UNAVAILABLE, pinned.kind());
        assertTrue(
                pinned.getMessage()
                        .endsWith("is not eligible by selection-policy=custom, which failed"),
                pinned.getMessage());
        final RouteException excluded = refused(request().exclude(workers.get(1)));
        assertEquals(Kind.ALL_EXCLUDED, excluded.kind());
        assertTrue(
                excluded.getMessage()
                        .contains(
                                ", 1 of them by selection-policy=custom, 1 of them because it"
                                        + " failed"),
                excluded.getMessage());
    }

    @Test
    void aRefusalCountsOnlyThoseForWhichTheRuleFailed() throws RouteException {
        final Set<Long> failing = new HashSet<>(Set.of(1L));
        start(
                KvRouter.builder()
                        .eligibility(
                                one -> {
                                    if (failing.contains(one.worker().id())) {
                                        throw new IllegalStateException("broken");
                                    }
                                    return Verdict.INELIGIBLE;
                                }),
                3);
        final String none =
                "none of 3 registered workers is available, 3 are not eligible by"
                        + " selection-policy=custom";
        assertEquals(none + ", 1 of them because it failed", refused(request()).getMessage());
        failing.clear();
        assertEquals(none, refused(request()).getMessage());
    }

    @Test
    void bothRulesHaveToAllow() throws RouteException {
        final Eligibility zone =
                one ->
                        one.worker().labels().get("zone").equals("a")
                                ? Verdict.ELIGIBLE
                                : Verdict.INELIGIBLE;
        final Eligibility even = one -> one.worker().id() > 1 ? Verdict.ELIGIBLE : Verdict.BUSY;
        start(KvRouter.builder().eligibility(zone.and(even)), 3);
        assertSame(workers.get(2), choose(request()));
        assertEquals(Exclusion.BUSY, decision.exclusion(0));
        assertEquals(Exclusion.INELIGIBLE, decision.exclusion(1));
        assertThrows(NullPointerException.class, () -> zone.and(null));
    }

    @ParameterizedTest
    @ValueSource(strings = {"throws", "fails to link", "fails halfway", "says nothing", "NaN"})
    void aCostModelThatFailsCostsTheDecisionNothing(String how) throws RouteException {
        start(
                KvRouter.builder()
                        .costModel(
                                (view, costs) -> {
                                    switch (how) {
                                        case "throws" -> throw new IllegalStateException("broken");
                                        case "fails to link" -> throw new NoSuchMethodError("x");
                                        case "fails halfway" -> {
                                            costs[0] = -1e9;
                                            view.candidate(view.count());
                                        }
                                        case "NaN" -> costs[0] = Double.NaN;
                                        default -> {}
                                    }
                                }),
                2);
        load(workers.get(0), 0, 5);
        final Set<Worker> chosen = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            chosen.add(choose(request()));
        }
        final PolicyFailures failures = router.status().policyFailures();
        if (how.equals("says nothing") || how.equals("NaN")) {
            assertEquals(new PolicyFailures(0, 0, 200, 0), failures);
        } else {
            assertEquals(Set.of(workers.get(1)), chosen, "the linear cost");
            assertEquals(new PolicyFailures(0, 100, 0, 0), failures);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 2, Integer.MAX_VALUE, Integer.MIN_VALUE, 1_000})
    void aPickerThatNamesNoCandidateIsReplacedByTheLowest(int picked) throws RouteException {
        start(
                KvRouter.builder()
                        .picker(
                                (view, costs, source) -> {
                                    if (picked == 1_000) {
                                        throw new IllegalStateException("broken");
                                    }
                                    return picked;
                                }),
                2);
        load(workers.get(0), 0, 5);
        for (int i = 0; i < 10; i++) {
            assertSame(workers.get(1), choose(request()));
        }
        assertEquals(new PolicyFailures(0, 0, 0, 10), router.status().policyFailures());
        choose(request().mode(RoutingMode.RANDOM));
        assertEquals(10, router.status().policyFailures().picker(), "asked in mode kv alone");
    }

    @ParameterizedTest
    @CsvSource({"NaN, true", "NaN, false", "-1, true", "-1, false", "Infinity, true"})
    void aPickerThatFailsAfterItHasChangedTheCostsIsReplacedByTheLowest(
            double factor, boolean throwing) throws RouteException {
        start(
                KvRouter.builder()
                        .picker(
                                (view, costs, source) -> {
                                    for (int n = 0; n < costs.length; n++) {
                                        costs[n] *= factor;
                                    }
                                    if (throwing) {
                                        throw new IllegalStateException("broken");
                                    }
                                    return view.count();
                                }),
                3);
        load(workers.get(0), 0, 5);
        load(workers.get(2), 0, 9);
        for (int i = 0; i < 10; i++) {
            assertSame(workers.get(1), choose(request()));
            assertEquals(8.375, decision.cost()); // 70 / 16 + 4
            assertEquals(13.375, decision.cost(0));
        }
        assertEquals(new PolicyFailures(0, 0, 0, 10), router.status().policyFailures());
    }

    @Test
    void aPickerMayComputeInTheCosts() throws RouteException {
        start(
                KvRouter.builder()
                        .picker(
                                (view, costs, source) -> {
                                    for (int n = 0; n < view.count(); n++) {
                                        costs[n] = -costs[n];
                                    }
                                    return Picker.LOWEST.pick(view, costs, source);
                                }),
                2);
        load(workers.get(0), 0, 5);
        assertSame(workers.get(0), choose(request()));
        assertEquals(13.375, decision.cost(), "as it was priced");
    }

    @Test
    void aPickerSeesTheCostsWithWhatTheRequestAdds() throws RouteException {
        final List<Double> seen = new ArrayList<>();
        start(
                KvRouter.builder()
                        .picker(
                                (view, costs, source) -> {
                                    for (int n = 0; n < view.count(); n++) {
                                        seen.add(costs[n]);
                                    }
                                    return view.count() - 1; // whatever it costs
                                }),
                3);
        final WorkerCost own =
                one -> one.worker().id() == 1 ? Double.POSITIVE_INFINITY : one.worker().id();
        assertSame(workers.get(2), choose(request().addCost(own)));
        assertEquals(List.of(8.375, 10.375), seen); // 70 / 16 + 4, and what is added
        assertEquals(10.375, decision.cost());
    }

    @Test
    void aPolicyIsFoundByNameOnTheClassPath() throws RouteException {
        start(KvRouter.builder().set("selection-policy", "last-slot"), 5);
        assertSame(workers.get(4), choose(request()));
        assertEquals("last-slot", decision.policy());
        assertTrue(
                decision.explain().contains("cost by selection-policy=last-slot"),
                decision.explain());
    }

    @Test
    void namesThatAreNonePoliciesAreRefused() {
        final IllegalArgumentException set =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> KvRouter.builder().set("selection-policy", "best"));
        assertTrue(
                set.getMessage().startsWith("selection-policy=best is out of range; range:"),
                set.getMessage());
        final IllegalArgumentException named =
                assertThrows(IllegalArgumentException.class, () -> SelectionPolicies.named("best"));
        assertTrue(named.getMessage().contains("linear"), named.getMessage());
        assertTrue(named.getMessage().contains("last-slot"), named.getMessage());
        for (String name : new String[] {"", "Best", "a--b", "a b", "-"}) {
            assertThrows(
                    IllegalArgumentException.class,
                    () ->
                            new SelectionPolicy(
                                    name, Eligibility.ALL, CostModel.LINEAR, Picker.LOWEST));
        }
    }

    @Test
    void partsReplaceThoseOfThePolicy() throws RouteException {
        start(
                KvRouter.builder()
                        .set("selection-policy", "last-slot")
                        .picker((view, costs, source) -> 0),
                3);
        assertSame(workers.get(0), choose(request()));
        assertEquals(-2, decision.cost(2), "the cost is still that of the policy");
        assertEquals("custom", decision.policy());
    }

    @Test
    void aPolicyThatIsAskedAllocatesNothing() {
        start(
                KvRouter.builder()
                        .eligibility(
                                one -> one.activeRequests() > 100 ? Verdict.BUSY : Verdict.ELIGIBLE)
                        .costModel(CostModel.each((all, one) -> one.decodeBlocks()))
                        .picker((view, costs, source) -> source.nextInt(view.count())),
                100);
        final RouteRequest request = request();
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        5_000,
                        () -> {
                            try {
                                choose(request);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                        }));
    }
}
