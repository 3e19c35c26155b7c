package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.RouteException.Kind;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.LoraMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SessionMode;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Which workers a request is for: by adapter, labels and named taints, in every mode. */
class SuitabilityTest {
    private static final int BLOCK_SIZE = 16;
    private static final List<String> ADAPTERS = List.of("a", "b", "c", "nowhere");
    private static final List<String> LABELS =
            List.of("zone=x", "zone=y", "rack=1", "big", "zone=none", "spot", "night");

    private final long seed = Seeds.next("SuitabilityTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private KvRouter router = start(LoraMode.REQUIRED, 300, Duration.ZERO);

    private KvRouter start(LoraMode mode, int workers, Duration session) {
        return KvRouter.builder()
                .tickedBy(() -> 0)
                .blockSize(BLOCK_SIZE)
                .maxWorkers(workers)
                .maxBlocks(4096, 8192)
                .set(RouterSettings.LORA_MODE, mode)
                .set(RouterSettings.SESSION_TTL, session)
                .set(RouterSettings.SESSION_MODE, SessionMode.HARD)
                .set(RouterSettings.BUSY_PREFILL_TOKENS, 1_000L)
                .random(RandomSource.seeded(seed))
                .build();
    }

    private void restart(LoraMode mode, int workers, Duration session) {
        router.close();
        router = start(mode, workers, session);
    }

    @AfterEach
    void close() {
        router.close();
    }

    private static WorkerSpec spec(int id) {
        return WorkerSpec.of(id, "w" + id, "http://w" + id);
    }

    private Worker worker(int id, String... adapters) {
        final Worker worker = router.addWorker(spec(id));
        worker.adapters(Set.of(adapters));
        return worker;
    }

    private Worker labelled(int id, Map<String, String> labels, String... taints) {
        return router.addWorker(spec(id).labelled(labels).tainted(Set.of(taints)));
    }

    private RouteRequest request() {
        final int[] prompt = random.ints(4L * BLOCK_SIZE, 0, 50_000).toArray();
        return router.newRequest().tokens(prompt, prompt.length);
    }

    private RouteException refused(RouteRequest request) {
        return assertThrows(RouteException.class, () -> router.select(request, decision));
    }

    private Worker chosen(RouteRequest request) throws RouteException {
        router.select(request, decision);
        return decision.worker();
    }

    @Test
    void aNameIsKeptOnceForAllWorkersThatHaveIt() {
        final Worker first = worker(1, new String("a".repeat(40)));
        final Worker second = worker(2, new String("a".repeat(40)), "b");
        final String name = first.adapters().iterator().next();
        final Set<String> kept = Collections.newSetFromMap(new IdentityHashMap<>());
        kept.add(name);
        assertTrue(second.adapters().stream().anyMatch(kept::contains));
        assertEquals(Set.of(name, "b"), second.adapters());
    }

    @Test
    void textsOfARequestAreCutInMessagesAndStayOnALine() {
        final String text = "x\ny" + "z".repeat(1 << 20);
        worker(1);
        for (RouteRequest request :
                List.of(
                        request().require(text),
                        request().require("a").require(text).lora(text),
                        request().lora(text))) {
            assertCut(refused(request).getMessage(), text);
        }
        final RouteRequest full = request();
        for (int i = 0; i < Constraints.MOST; i++) {
            full.require("label" + i);
        }
        assertCut(
                assertThrows(IllegalArgumentException.class, () -> full.require(text)).getMessage(),
                text);
        assertCut(
                assertThrows(
                                IllegalArgumentException.class,
                                () -> request().prefer(text, Double.NaN))
                        .getMessage(),
                text);
    }

    private static void assertCut(String message, String text) {
        assertTrue(message.length() < 1_000, () -> message.length() + " characters");
        assertTrue(message.contains("characters)"), message);
        assertEquals(-1, message.indexOf('\n'), message);
        assertFalse(message.contains(text));
    }

    private static List<RoutingMode> freeModes() {
        return List.of(RoutingMode.values()).stream()
                .filter(mode -> mode != RoutingMode.DIRECT)
                .toList();
    }

    @Test
    void aRequestForAnAdapterGoesToWorkersThatHaveItInEveryMode() throws RouteException {
        for (int id = 0; id < 130; id++) {
            worker(id, id % 10 == 7 ? "a" : "b");
        }
        for (RoutingMode mode : freeModes()) {
            for (int i = 0; i < 40; i++) {
                assertTrue(chosen(request().lora("a").mode(mode)).adapters().contains("a"));
            }
        }
        assertEquals(Decision.Exclusion.NO_ADAPTER, decision.exclusion(0));
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(7));
        assertEquals(13, router.workersWith("a"));
        router.select(request(), decision);
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(0));
    }

    @Test
    void anAdapterThatNoWorkerHasIsRefusedByNameAndCount() throws RouteException {
        final Worker with = worker(1, "a");
        worker(2);
        worker(3, "b");
        final RouteException none = refused(request().lora("x"));
        assertEquals(Kind.NO_ADAPTER, none.kind());
        assertEquals(
                "no worker can serve the adapter 'x': of 3 workers looked at none has it",
                none.getMessage());
        with.available(false);
        final RouteException down = refused(request().lora("a"));
        assertEquals(Kind.NO_ADAPTER, down.kind());
        assertTrue(
                down.getMessage().contains("1 have it, none of which can be used now"),
                down.getMessage());
        with.available(true);
        assertSame(with, chosen(request().lora("a")));
        assertEquals(Kind.ALL_EXCLUDED, refused(request().lora("a").exclude(with)).kind());
    }

    @Test
    void aFleetWithoutWorkersLacksNoAdapter() {
        assertEquals(Kind.NO_WORKERS, refused(request().lora("a")).kind());
        assertEquals(Kind.NO_WORKERS, refused(request().require("zone=x")).kind());
    }

    @Test
    void aForcedWorkerWithoutTheAdapterIsRefused() {
        final Worker without = worker(1, "b");
        worker(2, "a");
        for (RoutingMode mode : List.of(RoutingMode.DIRECT, RoutingMode.KV)) {
            final RouteException refusal = refused(request().lora("a").pin(without).mode(mode));
            assertEquals(Kind.PINNED_UNAVAILABLE, refusal.kind());
            assertTrue(refusal.getMessage().contains("adapter"), refusal.getMessage());
        }
    }

    @Test
    void adaptersComeAndGoWhileTheWorkerIsThere() throws RouteException {
        final Worker first = worker(1);
        final Worker second = worker(2, "a");
        assertSame(second, chosen(request().lora("a")));
        second.adapters(Set.of());
        assertEquals(0, router.workersWith("a"));
        assertEquals(Kind.NO_ADAPTER, refused(request().lora("a")).kind());
        first.adapters(Set.of("a", "b"));
        assertSame(first, chosen(request().lora("a")));
        router.removeWorker(first);
        assertEquals(0, router.workersWith("b"));
        first.adapters(Set.of("a")); // it is no worker any more
        assertEquals(0, router.workersWith("a"));
    }

    @Test
    void preferredLeavesThoseWithTheAdapterOrElseAll() throws RouteException {
        restart(LoraMode.PREFERRED, 300, Duration.ZERO);
        final Worker with = worker(1, "a");
        final Worker without = worker(2, "b");
        for (RoutingMode mode : freeModes()) {
            assertSame(with, chosen(request().lora("a").mode(mode)));
            assertEquals(Decision.Exclusion.NO_ADAPTER, decision.exclusion(1));
        }
        with.available(false);
        assertSame(without, chosen(request().lora("a")));
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(1));
        with.available(true);
        assertSame(without, chosen(request().lora("a").pin(without).mode(RoutingMode.DIRECT)));
        assertTrue(Set.of(with, without).contains(chosen(request().lora("nowhere"))));
    }

    @Test
    void offLooksAtNoAdapter() throws RouteException {
        restart(LoraMode.OFF, 300, Duration.ZERO);
        final Worker only = worker(1, "b");
        assertSame(only, chosen(request().lora("a")));
    }

    @Test
    void tooManyAdaptersAreRefusedAndChangeNothing() {
        final Worker worker = worker(1, "a");
        final Set<String> many =
                IntStream.rangeClosed(0, WorkerMarks.MOST_ADAPTERS)
                        .mapToObj(i -> "x" + i)
                        .collect(Collectors.toSet());
        final IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> worker.adapters(many));
        assertTrue(refusal.getMessage().contains("4097 adapters of worker w1/0"));
        assertThrows(IllegalArgumentException.class, () -> worker.adapters(Set.of(" ")));
        assertThrows(
                IllegalArgumentException.class, () -> worker.adapters(Set.of("x".repeat(513))));
        assertEquals(Set.of("a"), worker.adapters());
        assertEquals(1, router.workersWith("a"));
        assertEquals(0, router.workersWith("x1"));
    }

    @Test
    void theNamesOfAFleetAreBoundedAndThoseThatWentMakeRoom() {
        final int each = WorkerMarks.MOST_ADAPTERS;
        final List<Worker> workers = new ArrayList<>();
        for (int id = 0; id < WorkerMarks.MOST_ADAPTER_NAMES / each; id++) {
            final Worker worker = worker(id);
            worker.adapters(names(id, each));
            workers.add(worker);
        }
        final Worker last = worker(1_000);
        assertThrows(IllegalArgumentException.class, () -> last.adapters(Set.of("one more")));
        last.adapters(names(3, each)); // known ones
        workers.getFirst().adapters(Set.of());
        last.adapters(Set.of("one more"));
        assertEquals(1, router.workersWith("one more"));
    }

    private static Set<String> names(int of, int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> of + "-" + i)
                .collect(Collectors.toCollection(HashSet::new));
    }

    @Test
    void aRequiredLabelIsOnEveryChosenWorkerAndAllOfThemAre() throws RouteException {
        labelled(1, Map.of("zone", "x"));
        final Worker both = labelled(2, Map.of("zone", "x", "rack", "1"));
        labelled(3, Map.of("rack", "1"));
        for (RoutingMode mode : freeModes()) {
            assertSame(both, chosen(request().mode(mode).require("zone=x").require("rack=1")));
        }
        assertEquals(Decision.Exclusion.NO_LABEL, decision.exclusion(0));
        assertEquals(Decision.Exclusion.NONE, decision.exclusion(1));
    }

    @Test
    void labelsThatNoWorkerHasAreRefusedByNameAndCount() {
        labelled(1, Map.of("zone", "x"));
        labelled(2, Map.of("zone", "y"), "spot");
        final RouteException refusal = refused(request().require("zone=z"));
        assertEquals(Kind.NONE_SUITABLE, refusal.kind());
        assertEquals(
                "none of 2 workers is for this request: 2 lack one of the required labels [zone=z],"
                        + " 1 have a taint that it does not tolerate",
                refusal.getMessage());
        assertEquals(Kind.NONE_SUITABLE, refused(request().require("planet")).kind());
    }

    @Test
    void emptyLabelsAndBadWeightsAndTooManyAreRefused() {
        final RouteRequest request = request();
        assertThrows(IllegalArgumentException.class, () -> request.require(""));
        assertThrows(IllegalArgumentException.class, () -> request.tolerate(" "));
        assertThrows(IllegalArgumentException.class, () -> request.prefer("", 1));
        assertThrows(IllegalArgumentException.class, () -> request.prefer("a", Double.NaN));
        for (int i = 0; i < Constraints.MOST; i++) {
            request.require("l" + i).prefer("l" + i, 1).tolerate("l" + i);
        }
        assertThrows(IllegalArgumentException.class, () -> request.require("one more"));
        assertThrows(IllegalArgumentException.class, () -> request.prefer("one more", 1));
        assertThrows(IllegalArgumentException.class, () -> request.tolerate("one more"));
        request.reset().require("l");
    }

    @Test
    void aNamedTaintKeepsRequestsAwayThatDoNotTolerateOrAskForIt() throws RouteException {
        final Worker tainted = labelled(1, Map.of(), "spot", "night");
        assertEquals(Kind.NONE_SUITABLE, refused(request()).kind());
        assertEquals(Decision.Exclusion.TAINTED, decision.exclusion(0));
        assertEquals(Kind.NONE_SUITABLE, refused(request().tolerate("spot")).kind());
        assertSame(tainted, chosen(request().tolerate("spot").tolerate("night")));
        assertSame(tainted, chosen(request().require("spot").prefer("night", 1)));
        final Worker clean = labelled(2, Map.of());
        for (RoutingMode mode : freeModes()) {
            assertSame(clean, chosen(request().mode(mode)));
        }
        assertEquals(
                Kind.PINNED_UNAVAILABLE,
                refused(request().pin(tainted).mode(RoutingMode.DIRECT)).kind());
    }

    @Test
    void aSlotThatChangesItsTenantHasTheMarksOfTheNewOne() throws RouteException {
        for (int round = 0; round < 500; round++) {
            final Worker former = labelled(2 * round, Map.of("zone", "x"), "spot");
            former.adapters(Set.of("a"));
            router.removeWorker(former);
            final Worker next = labelled(2 * round + 1, Map.of("zone", "y"));
            assertSame(next, chosen(request().require("zone=y")));
            assertEquals(Kind.NONE_SUITABLE, refused(request().require("zone=x")).kind());
            assertEquals(Kind.NO_ADAPTER, refused(request().lora("a")).kind());
            router.removeWorker(next);
        }
    }

    @Test
    void aPreferredLabelLowersTheCostByTheFormula() throws RouteException {
        final Worker plain = labelled(1, Map.of());
        final Worker near = labelled(2, Map.of("zone", "x", "rack", "1"));
        router.select(request(), decision);
        final double usual = decision.cost(0);
        for (int i = 0; i < 20; i++) {
            assertSame(near, chosen(request().prefer("zone=x", 0.5).prefer("rack=1", 0.25)));
        }
        assertEquals(usual, decision.cost(0), 1e-9);
        final double expected = usual * Math.exp(-Math.tanh(0.75));
        assertEquals(expected, decision.cost(1), 1e-9);
        assertEquals(expected - usual, decision.addedBlocks(1), 1e-9);
        for (int i = 0; i < 20; i++) {
            assertSame(plain, chosen(request().prefer("zone=x", -1)));
        }
        assertTrue(Set.of(plain, near).contains(chosen(request().prefer("zone=none", 5))));
    }

    @Test
    void aBusyWorkerIsRefusedAsBusyOnlyWhereItIsSuitable() throws RouteException {
        final Worker busy = worker(1, "a");
        worker(2);
        final int[] prompt = random.ints(2_000, 0, 50_000).toArray();
        try (Lease _ =
                router.reserve(
                        router.newRequest().tokens(prompt, prompt.length).pin(busy), decision)) {
            assertEquals(Kind.ALL_WORKERS_BUSY, refused(request().lora("a")).kind());
            assertEquals(Kind.NO_ADAPTER, refused(request().lora("b")).kind());
        }
    }

    /** What a worker is in the model of the property. */
    private record Modelled(
            Worker worker, Set<String> adapters, Set<String> marks, Set<String> taints) {}

    /** What a request asks. */
    private static final class Asked {
        private String adapter;
        private final List<String> required = new ArrayList<>();
        private final List<String> preferred = new ArrayList<>();
        private final List<String> tolerated = new ArrayList<>();
        private final Set<Worker> excluded = new HashSet<>();
        private Worker pin;
        private RoutingMode mode;

        RouteRequest fill(RouteRequest request) {
            request.lora(adapter).mode(mode).pin(pin);
            required.forEach(request::require);
            preferred.forEach(label -> request.prefer(label, 1));
            tolerated.forEach(request::tolerate);
            excluded.forEach(request::exclude);
            return request;
        }
    }

    @Tag("trials")
    @ParameterizedTest
    @EnumSource(LoraMode.class)
    void noWorkerIsChosenThatMustNotBeWhateverComesTogether(LoraMode lora) throws RouteException {
        restart(lora, 200, Duration.ofMinutes(1));
        final List<Modelled> fleet = new ArrayList<>();
        final List<Lease> leases = new ArrayList<>();
        int id = 0;
        int served = 0;
        int refused = 0;
        final int steps = Trials.of(1_200, 6_000);
        for (int step = 0; step < steps; step++) {
            switch (random.nextInt(12)) {
                case 0 -> {
                    if (fleet.size() < 150) {
                        fleet.add(modelled(id++));
                    }
                }
                case 1 -> {
                    if (fleet.size() > 100) {
                        router.removeWorker(fleet.remove(random.nextInt(fleet.size())).worker());
                    }
                }
                case 2 -> {
                    if (!fleet.isEmpty()) {
                        any(fleet).worker().available(random.nextInt(4) > 0);
                    }
                }
                case 3 -> {
                    if (!fleet.isEmpty()) {
                        final int at = random.nextInt(fleet.size());
                        fleet.set(at, withOtherAdapters(fleet.get(at)));
                    }
                }
                case 4 -> {
                    if (!leases.isEmpty()) {
                        leases.remove(random.nextInt(leases.size())).close();
                    }
                }
                default -> {
                    final Asked asked = asked(fleet);
                    final RouteRequest request =
                            asked.fill(request()).session("s" + random.nextInt(20));
                    // a booking that is applied meanwhile would change which are busy
                    Eventually.holds(
                            "an empty ring", () -> router.bookingPipeline().backlog() == 0);
                    final Set<Worker> allowed = allowed(fleet, asked, lora);
                    try {
                        final Lease lease = router.reserve(request, decision);
                        leases.add(lease);
                        assertTrue(
                                allowed.contains(lease.worker()),
                                () -> lease.worker() + " by " + asked.mode + "; seed " + seed);
                        served++;
                    } catch (RouteException e) {
                        assertFalse(decision.worker() != null, "seed " + seed);
                        assertTrue(
                                allowed.isEmpty()
                                        || (asked.mode == RoutingMode.DIRECT && asked.pin == null),
                                () -> e.getMessage() + ", but " + allowed + "; seed " + seed);
                        refused++;
                    }
                }
            }
        }
        assertTrue(
                served > steps / 12 && refused > steps / 60,
                served + " served, " + refused + " refused");
        leases.forEach(Lease::close);
    }

    private <T> T any(List<T> of) {
        return of.get(random.nextInt(of.size()));
    }

    private Set<String> some(List<String> of) {
        return of.stream().filter(_ -> random.nextInt(3) == 0).collect(Collectors.toSet());
    }

    private Modelled modelled(int id) {
        final Map<String, String> labels =
                Map.of("zone", random.nextBoolean() ? "x" : "y", "big", "");
        final Set<String> taints =
                random.nextInt(3) == 0 ? some(List.of("spot", "night")) : Set.of();
        final Set<String> marks = new HashSet<>(taints);
        labels.entrySet().forEach(label -> marks.add(WorkerMarks.label(label)));
        final Worker worker = router.addWorker(spec(id).labelled(labels).tainted(taints));
        final Set<String> adapters = some(List.of("a", "b", "c"));
        worker.adapters(adapters);
        return new Modelled(worker, adapters, marks, taints);
    }

    private Modelled withOtherAdapters(Modelled before) {
        final Set<String> adapters = some(List.of("a", "b", "c"));
        before.worker().adapters(adapters);
        return new Modelled(before.worker(), adapters, before.marks(), before.taints());
    }

    private Asked asked(List<Modelled> fleet) {
        final Asked asked = new Asked();
        asked.mode = any(List.of(RoutingMode.values()));
        asked.adapter = random.nextInt(2) == 0 ? any(ADAPTERS) : null;
        if (random.nextInt(3) == 0) {
            asked.required.add(any(LABELS));
        }
        if (random.nextInt(3) == 0) {
            asked.preferred.add(any(LABELS));
        }
        if (random.nextInt(3) == 0) {
            asked.tolerated.add(any(LABELS));
        }
        for (int i = random.nextInt(4); i > 0 && !fleet.isEmpty(); i--) {
            asked.excluded.add(any(fleet).worker());
        }
        if (!fleet.isEmpty() && random.nextInt(4) == 0) {
            asked.pin = any(fleet).worker();
        }
        return asked;
    }

    private Set<Worker> allowed(List<Modelled> fleet, Asked asked, LoraMode lora) {
        final List<Modelled> usable =
                fleet.stream()
                        .filter(m -> m.worker().available())
                        .filter(m -> !asked.excluded.contains(m.worker()))
                        .filter(m -> asked.pin == null || asked.pin == m.worker())
                        .filter(m -> m.worker().prefillTokens() <= 1_000)
                        .filter(m -> m.marks().containsAll(asked.required))
                        .filter(m -> m.taints().stream().allMatch(t -> isTolerated(asked, t)))
                        .toList();
        final Set<Worker> with =
                usable.stream()
                        .filter(m -> asked.adapter == null || m.adapters().contains(asked.adapter))
                        .map(Modelled::worker)
                        .collect(Collectors.toSet());
        final boolean narrowed =
                lora == LoraMode.REQUIRED || (lora == LoraMode.PREFERRED && !with.isEmpty());
        return narrowed ? with : usable.stream().map(Modelled::worker).collect(Collectors.toSet());
    }

    private static boolean isTolerated(Asked asked, String taint) {
        return asked.tolerated.contains(taint)
                || asked.required.contains(taint)
                || asked.preferred.contains(taint);
    }
}
