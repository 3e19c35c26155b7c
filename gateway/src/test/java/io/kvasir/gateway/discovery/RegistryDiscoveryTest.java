package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerAdapters;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.config.WorkerInput;
import io.kvasir.gateway.config.WorkerRole;
import io.kvasir.gateway.upstream.Discovery;
import io.kvasir.gateway.upstream.DiscoveryContract;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceRole;
import io.kvasir.registry.InstanceState;
import io.kvasir.registry.MemoryStore;
import io.kvasir.registry.ModelInput;
import io.kvasir.registry.ModelType;
import io.kvasir.registry.Registration;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

class RegistryDiscoveryTest extends DiscoveryContract {
    private static final String NAMESPACE = "ns";

    private final MemoryStore store = new MemoryStore(Duration.ofMinutes(1));
    private Discovery discovery = new RegistryDiscovery(store, NAMESPACE, Set.of(MODEL), false);

    @Override
    protected Discovery started(Discovery.Listener listener, List<DiscoveredWorker> workers) {
        for (DiscoveredWorker worker : workers) {
            final WorkerConfig w = worker.worker();
            final Registration.Builder r = instance(w.name(), w.url().toString());
            r.dpRanks(w.dataParallelSize());
            if (w.events() != null) {
                r.events(new Registration.Events(w.events(), w.replay(), false, w.topic(), "auto"));
            }
            put(r.generation(1).build());
        }
        discovery.start(listener);
        return discovery;
    }

    @AfterEach
    void close() {
        discovery.close();
    }

    private static Registration.Builder instance(String name, String url) {
        return Registration.builder(
                        new InstanceId(NAMESPACE, "c", "e", name), MODEL, URI.create(url))
                .generation(1);
    }

    private void put(Registration registration) {
        store.force(registration.id().key(), registration.encode());
    }

    private List<String> names() {
        return known.all().stream().map(DiscoveredWorker::name).toList();
    }

    @Test
    void thoseThatComeAndGoAreSeen() throws Exception {
        started(known, List.of());
        put(instance("a", "http://h:1").build());
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        store.expire(instance("a", "http://h:1").build().id().key());
        Eventually.holds("goes", () -> names().isEmpty());
    }

    @Test
    void aGatewayOnAnEventPlaneTakesEventsFromThereAndOthersFromTheWorker() throws Exception {
        final Registration both =
                instance("a", "http://h:1")
                        .events("tcp://h:2", null)
                        .onPlane(new Registration.OnPlane(7, 1))
                        .build();
        final WorkerConfig direct = RegisteredWorkers.of(both, false).worker();
        assertEquals("tcp://h:2", direct.events(0));
        assertNull(direct.plane(0));
        final WorkerConfig onPlane = RegisteredWorkers.of(both, true).worker();
        assertNull(onPlane.events(0));
        assertEquals(new EventPlaneWorker(7, 1), onPlane.plane(0));
        final Registration plain = instance("b", "http://h:1").events("tcp://h:2", null).build();
        assertEquals("tcp://h:2", RegisteredWorkers.of(plain, true).worker().events(0));
    }

    @Test
    void aServerOfAnEnginesLaterRanksSaysTheRankOfItsEvents() {
        final Registration said =
                instance("a", "http://h:1")
                        .dpRanks(2)
                        .events(new Registration.Events("tcp://h:2", null, false, "", "auto", 4))
                        .onPlane(new Registration.OnPlane(7, 1))
                        .build();
        final Registration read = Registration.decode(said.encode());
        assertEquals(4, RegisteredWorkers.of(read, false).worker().eventRank());
        assertEquals(
                new EventPlaneWorker(7, 1), RegisteredWorkers.of(read, true).worker().plane(0));
    }

    @Test
    void adaptersLabelsAndTaintsAreThoseOfTheWorker() {
        final Registration said =
                instance("a", "http://h:1")
                        .labels(Map.of("zone", "x"))
                        .adapters(
                                new Registration.Adapters(
                                        Set.of("sql", "fr,a"), Map.of("a=b:c", 3L)))
                        .taints(Set.of("spot"))
                        .build();
        final WorkerConfig worker = RegisteredWorkers.of(said, false).worker();
        assertEquals(
                new WorkerAdapters(Set.of("sql", "fr,a"), Map.of(3L, "a=b:c")), worker.adapters());
        assertEquals(Map.of("zone", "x"), worker.labels());
        assertEquals(Set.of("spot"), worker.taints());
        final WorkerConfig plain =
                RegisteredWorkers.of(instance("b", "http://h:1").build(), false).worker();
        assertEquals(WorkerAdapters.NONE, plain.adapters());
        assertEquals(Set.of(), plain.taints());
    }

    @Test
    void aNewGenerationIsAnotherWorkerAndAnOlderOneNone() throws Exception {
        started(known, List.of());
        put(instance("a", "http://h:1").generation(5).build());
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        put(instance("a", "http://h:1").generation(4).build());
        put(instance("b", "http://h:2").build());
        Eventually.holds("both", () -> names().equals(List.of("a", "b")));
        assertEquals(5, known.all().getFirst().generation());
        put(instance("a", "http://h:1").generation(6).build());
        Eventually.holds("newer", () -> known.all().getFirst().generation() == 6);
    }

    @Test
    void oneThatDrainsStaysAndGetsNothingNewUntilItIsGone() throws Exception {
        started(known, List.of());
        final Registration a = instance("a", "http://h:1").build();
        put(a);
        Eventually.holds("comes", () -> names().equals(List.of("a")));
        put(a.withState(InstanceState.DRAINING));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        assertEquals(List.of("a"), names());
        put(a);
        Eventually.holds("is used again", () -> known.draining().isEmpty());
        put(a.withState(InstanceState.DRAINING));
        store.expire(a.id().key());
        Eventually.holds("is gone", () -> names().isEmpty());
    }

    @Test
    void oneThatDrainsWhenItIsFirstSeenIsNotUsed() {
        put(instance("a", "http://h:1").build().withState(InstanceState.DRAINING));
        put(instance("b", "http://h:2").build());
        started(known, List.of());
        assertEquals(List.of("b"), names());
    }

    @Test
    void aPrefillPoolHasTheNameOfItsDecodePool() {
        put(
                instance("p", "http://h:1")
                        .types(Set.of(ModelType.PREFILL))
                        .handoff(new Registration.Handoff("sglang", "h:9"))
                        .build());
        put(
                instance("d", "http://h:2")
                        .types(EnumSet.of(ModelType.CHAT, ModelType.DECODE))
                        .handoff(new Registration.Handoff("sglang", null))
                        .build());
        started(known, List.of());
        assertEquals(List.of("d", "p"), names());
        assertEquals(WorkerRole.DECODE, known.all().getFirst().role());
        assertEquals(WorkerRole.PREFILL, known.all().getLast().role());
        assertEquals("h:9", known.all().getLast().worker().disaggregation().bootstrap().toString());
    }

    @Test
    void otherModelsAndNamespacesAreLeftToOtherGateways() {
        final Registration other =
                Registration.builder(
                                new InstanceId(NAMESPACE, "c", "e", "a"),
                                "other",
                                URI.create("http://h:1"))
                        .generation(1)
                        .build();
        put(other);
        started(known, List.of(worker("http://h:2,name=b")));
        assertEquals(List.of("b"), names());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void instancesOfEveryModelOfTheGatewayAreSeenAndMoveByTheirRegistration() throws Exception {
        discovery = new RegistryDiscovery(store, NAMESPACE, Set.of(MODEL, "other"), false);
        put(instance("a", "http://h:1").build());
        put(ofOther("b", 1));
        discovery.start(known);
        assertEquals(List.of("a", "b"), names());
        assertEquals("other", known.all().getLast().model());
        put(ofOther("a", 2));
        Eventually.holds("moves", () -> known.all().getFirst().model().equals("other"));
        assertEquals(List.of(), known.failures);
    }

    private static Registration ofOther(String name, long generation) {
        return Registration.builder(
                        new InstanceId(NAMESPACE, "c", "e", name),
                        "other",
                        URI.create("http://h:1"))
                .generation(generation)
                .build();
    }

    @Test
    void whatAWorkerIsSentIsItsOwnWord() throws Exception {
        put(instance("ids", "http://h:1").input(ModelInput.TOKENS).build());
        put(instance("text", "http://h:2").build());
        started(known, List.of());
        Eventually.holds("both", () -> names().equals(List.of("ids", "text")));
        assertEquals(WorkerInput.TOKENS, known.all().getFirst().worker().input());
        assertEquals(WorkerInput.TEXT, known.all().getLast().worker().input());
        assertEquals(List.of(), known.failures);
    }

    @Test
    void whatCannotBeUsedIsSaidOnceAndOthersStay() throws Exception {
        put(instance("a", "http://h:1").role(InstanceRole.DECODE).input(ModelInput.TOKENS).build());
        put(instance("c", "http://h:1").handoff(new Registration.Handoff("x", null)).build());
        store.force("ns/c/e/z", "no registration".getBytes(StandardCharsets.UTF_8));
        started(known, List.of(worker("http://h:2,name=b")));
        Eventually.holds("said", () -> known.failureCount() == 3);
        discovery.reload();
        put(instance("d", "http://h:3").build());
        Eventually.holds("others", () -> names().equals(List.of("b", "d")));
        assertEquals(3, known.failureCount(), known.failures::toString);
        assertTrue(known.failures.toString().contains("input=tokens"), known.failures::toString);
        assertTrue(known.failures.toString().contains("handoff=x"), known.failures::toString);
        assertTrue(known.failures.toString().contains("ns/c/e/z"), known.failures::toString);
    }

    @Test
    void aRunStaysAsItWasWhileItsRegistrationCannotBeUsed() throws Exception {
        final Registration unusable =
                instance("a", "http://h:1").handoff(new Registration.Handoff("x", null)).build();
        started(known, List.of(worker("http://h:1,name=a")));
        final List<DiscoveredWorker> first = known.all();
        put(unusable.withState(InstanceState.DRAINING));
        Eventually.holds("drains", () -> known.draining().equals(Set.of("a")));
        put(unusable);
        Eventually.holds("is used again", () -> known.draining().isEmpty());
        assertEquals(first, known.all());
        assertEquals(1, known.failureCount(), known.failures::toString);
        assertTrue(
                known.failures.getFirst().contains("stays as it was: "), known.failures::toString);
        put(unusable.withGeneration(2));
        Eventually.holds("another run has nothing of it", () -> names().isEmpty());
        assertTrue(known.failures.getLast().contains("is left out: "), known.failures::toString);
    }

    @Test
    void ofTwoComponentsInstancesOfOneNameTheLaterCounts() throws Exception {
        put(instance("a", "http://h:1").generation(1).build());
        final Registration later =
                Registration.builder(
                                new InstanceId(NAMESPACE, "other", "e", "a"),
                                MODEL,
                                URI.create("http://h:2"))
                        .generation(2)
                        .build();
        put(later);
        started(known, List.of());
        assertEquals(URI.create("http://h:2"), known.all().getFirst().worker().url());
        assertEquals(1, known.failureCount(), known.failures::toString);
        store.expire(later.id().key());
        Eventually.holds(
                "the other",
                () -> known.all().getFirst().worker().url().equals(URI.create("http://h:1")));
    }

    @Test
    void aLostStoreIsSaidOnceAndTheLastViewHolds() throws Exception {
        started(known, List.of(worker("http://h:1,name=a")));
        store.away(true);
        Eventually.holds("said", () -> known.failureCount() == 1);
        store.expire(instance("a", "http://h:1").build().id().key()); // unseen
        discovery.reload();
        assertEquals(List.of("a"), names());
        put(instance("b", "http://h:2").build());
        store.away(false);
        Eventually.holds("read anew", () -> names().equals(List.of("b")));
        Eventually.holds("its end is said too", () -> known.recoveries.size() == 1);
        assertEquals(1, known.failureCount());
    }

    @Test
    void aStoreThatIsAwayAtTheStartIsNoReasonNotToStart() throws Exception {
        store.away(true);
        started(known, List.of(worker("http://h:1,name=a")));
        assertEquals(List.of(), names());
        store.away(false);
        Eventually.holds("found", () -> names().equals(List.of("a")));
    }

    @Test
    void aViewThatCouldNotBeAppliedForWantOfMemoryIsFollowedByTheNext() throws Exception {
        final AtomicBoolean isShort = new AtomicBoolean(true);
        discovery.start(
                new Discovery.Listener() {
                    @Override
                    public void view(List<DiscoveredWorker> workers) {
                        if (isShort.get()) {
                            throw new OutOfMemoryError("Java heap space");
                        }
                        known.view(workers);
                    }

                    @Override
                    public boolean added(DiscoveredWorker worker) {
                        return known.added(worker);
                    }

                    @Override
                    public boolean removed(String name) {
                        return known.removed(name);
                    }

                    @Override
                    public void draining(String name, boolean draining) {
                        known.draining(name, draining);
                    }

                    @Override
                    public void failed(String cause) {
                        known.failed(cause);
                    }
                });
        Eventually.holds("said", () -> known.failures.toString().contains("Java heap space"));
        isShort.set(false);
        put(instance("a", "http://h:1").build());
        Eventually.holds("comes", () -> names().equals(List.of("a")));
    }
}
