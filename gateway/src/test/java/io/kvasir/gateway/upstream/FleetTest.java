package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import io.kvasir.core.closing.Closing;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Workers of several models in one gateway. */
class FleetTest {
    /** An address of no machine. */
    private static final String UNBINDABLE = ",events=tcp://192.0.2.1:7,bind=true";

    private List<PoolRouters> routers;
    private List<UpstreamRegistry> registries;
    private Fleet fleet;
    private Discovery.Listener source;
    private Discovery.Listener other;

    private void start(GatewayConfig.Builder builder) {
        final List<GatewayConfig> models = builder.build().models();
        routers = PoolRouters.open(models);
        registries = new ArrayList<>();
        for (int i = 0; i < models.size(); i++) {
            registries.add(new UpstreamRegistry(models.get(i), routers.get(i)));
        }
        fleet = new Fleet(registries);
        source = fleet.listener("test");
        other = fleet.listener("other");
    }

    private static GatewayConfig.Builder config(String... specs) {
        return Gateways.config()
                .set(GatewaySettings.MODELS, Arrays.stream(specs).map(ModelConfig::parse).toList());
    }

    private void start() {
        start(config("name=n"));
    }

    @AfterEach
    void close() {
        if (fleet != null) {
            fleet.close();
            Closing.all(routers);
        }
    }

    private static DiscoveredWorker worker(String model, String name, String... keys) {
        return DiscoveredWorker.of(
                model, WorkerConfig.parse("http://h:1,name=" + name + String.join("", keys)));
    }

    /** Names of the workers of both pools of a model, by order of registration. */
    private List<String> names(int model) {
        return registries.get(model).upstreams().stream().map(Upstream::name).toList();
    }

    private Upstream named(String name) {
        return fleet.upstreams().stream()
                .filter(upstream -> upstream.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    /** Every worker is where its model says, in its router, and nowhere else. */
    private void assertConsistent() {
        final Set<String> names = new HashSet<>();
        final List<Upstream> all = new ArrayList<>();
        for (int i = 0; i < registries.size(); i++) {
            final UpstreamRegistry registry = registries.get(i);
            final Set<Worker> workers = new HashSet<>();
            for (Upstream upstream : registry.upstreams()) {
                assertTrue(names.add(upstream.name()), upstream.name());
                assertEquals(registry.model(), upstream.model());
                for (Worker rank : upstream.ranks()) {
                    assertSame(upstream, registry.of(rank));
                    workers.add(rank);
                }
                all.add(upstream);
            }
            final Set<Worker> inRouters = new HashSet<>();
            for (WorkerPool pool : WorkerPool.values()) {
                final KvRouter router = registry.routerOrNull(pool);
                if (router != null) {
                    inRouters.addAll(router.workers());
                }
            }
            assertEquals(workers, inRouters);
        }
        assertEquals(Set.copyOf(all), Set.copyOf(fleet.upstreams()));
        assertEquals(all.size(), fleet.upstreams().size());
    }

    @Test
    void aWorkerIsOneOfItsModel() {
        start();
        source.view(
                List.of(
                        worker("m", "a"),
                        worker("n", "b"),
                        worker("m", "c", ",role=prefill"),
                        worker("n", "d", ",role=prefill,dp=2")));
        assertEquals(List.of("a", "c"), names(0));
        assertEquals(List.of("b", "d"), names(1));
        assertEquals(
                List.of("a", "b", "c", "d"),
                fleet.upstreams().stream().map(Upstream::name).toList());
        assertConsistent();
    }

    @Test
    void aWorkerOfAnUnknownModelIsLeftOutAndNamedOnce() {
        start();
        final String hostile = "o\n\u001b[2J" + "x".repeat(10_000);
        try (CapturedLog log = new CapturedLog(Fleet.class, Level.INFO)) {
            for (int i = 0; i < 3; i++) {
                source.view(List.of(worker("m", "a"), worker(hostile, "b"), worker("n", "c")));
            }
            final List<String> said =
                    log.textsFrom(Level.INFO).stream()
                            .filter(line -> line.contains("not used"))
                            .toList();
            assertEquals(1, said.size(), "" + said);
            assertTrue(said.getFirst().length() < 1000, said.getFirst());
            assertFalse(said.getFirst().contains("\u001b"), said.getFirst());
            source.view(List.of(worker("m", "a"), worker("n", "c")));
            source.view(List.of(worker("m", "a"), worker(hostile, "b"), worker("n", "c")));
            assertEquals(
                    2,
                    log.textsFrom(Level.INFO).stream()
                            .filter(line -> line.contains("not used"))
                            .count(),
                    "it came again");
        }
        assertEquals(List.of("a"), names(0));
        assertEquals(List.of("c"), names(1));
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> source.added(worker("o", "b")));
        assertTrue(
                refused.getMessage().contains("b serves o, this gateway routes to workers of m, n"),
                refused.getMessage());
        assertEquals(0, fleet.failures().get("test").get(), "it may be another gateway's");
    }

    @Test
    void aKnownWorkerThatChangesToAnUnknownModelIsRemoved() {
        start();
        source.view(List.of(worker("m", "a"), worker("n", "b")));
        source.view(List.of(worker("m", "a"), worker("o", "b")));
        assertEquals(List.of(), names(1));
        assertConsistent();
    }

    @Test
    void aNameThatMovesToAnotherModelLeavesTheFormerOne() throws Exception {
        start();
        source.view(List.of(worker("m", "w"), worker("m", "x")));
        final Upstream before = named("w");
        final KvRouter main = routers.get(0).main();
        final Lease lease =
                main.reserve(
                        main.newRequest().tokens(new int[64], 64).pin(before.ranks().getFirst()),
                        new Decision());
        assertTrue(source.added(worker("n", "w")));
        final Upstream after = named("w");
        assertNotEquals(before.id(), after.id());
        assertEquals(List.of("x"), names(0));
        assertEquals(List.of("w"), names(1));
        assertNull(registries.get(0).of(lease.worker()), "its requests end on what they hold");
        lease.close();
        assertEquals(0, routers.get(0).activeLeases());
        assertFalse(source.added(worker("n", "w")), "the same description changes nothing");
        assertConsistent();
    }

    @Test
    void namesThatChangePlacesBetweenModelsInOneViewAreEachWhereTheViewSays() {
        start();
        source.view(List.of(worker("m", "a"), worker("n", "b"), worker("m", "c")));
        source.view(List.of(worker("n", "a"), worker("m", "b"), worker("n", "c", ",role=decode")));
        assertEquals(List.of("b"), names(0));
        assertEquals(List.of("a", "c"), names(1));
        assertConsistent();
    }

    @Test
    void theLastOfTwoSourcesHasTheName() {
        start();
        source.view(List.of(worker("m", "w")));
        other.view(List.of(worker("n", "w")));
        assertEquals(List.of("w"), names(1));
        source.view(List.of());
        assertEquals(List.of("w"), names(1), "it is the other source's by now");
        other.view(List.of());
        assertEquals(0, fleet.upstreams().size());
        assertConsistent();
    }

    @Test
    void aDrainIsOfANameWhateverItsModel() {
        start();
        source.view(List.of(worker("m", "a"), worker("n", "b")));
        source.draining("b", true);
        assertTrue(registries.get(0).capabilities().canServe());
        assertFalse(registries.get(1).capabilities().canServe());
        assertTrue(fleet.drain("b", false));
        assertTrue(registries.get(1).capabilities().canServe());
        assertFalse(fleet.drain("o", true));
    }

    @Test
    void aDrainHoldsForAWorkerThatIsRegisteredLater() {
        start(config().set(RouterSettings.MAX_WORKERS, 1));
        source.view(List.of(worker("m", "a"), worker("m", "w")));
        assertNull(named("w"), "there is no room yet");
        source.draining("w", true);
        source.view(List.of(worker("m", "w")));
        assertTrue(named("w").draining());
        fleet.drain("w", false);
        source.view(List.of(worker("m", "w")));
        assertFalse(named("w").draining(), "an operator has resumed it");
        other.removed("w");
        source.view(List.of(worker("m", "w")));
        assertTrue(named("w").draining(), "an operator has removed it, its source has not");
    }

    @Test
    void aDrainIsOfTheWorkerThatTheNameStoodFor() {
        start();
        source.view(List.of(worker("m", "w"), worker("m", "x")));
        source.draining("w", true);
        source.draining("x", true);
        source.draining("x", false);
        source.view(List.of(worker("m", "w", ",dp=2")));
        assertFalse(named("w").draining(), "it is another one");
        source.view(List.of(worker("m", "w"), worker("m", "x")));
        assertFalse(named("w").draining(), "a drain does not come back");
        assertFalse(named("x").draining());
    }

    @Test
    void poolsOfOneNameAreEachModelsOwn() {
        start();
        source.view(List.of(worker("m", "p", ",role=prefill"), worker("n", "d", ",role=decode")));
        assertFalse(registries.get(0).canSplit(), "the decode worker has another model");
        assertFalse(registries.get(1).canSplit());
        assertNull(registries.get(1).routerOrNull(WorkerPool.PREFILL));
        source.added(worker("n", "q", ",role=prefill"));
        assertTrue(registries.get(1).canSplit());
        assertFalse(registries.get(0).canSplit());
        assertEquals(List.of("q"), workers(1, WorkerPool.PREFILL));
        assertEquals(List.of("p"), workers(0, WorkerPool.PREFILL));
    }

    private List<String> workers(int model, WorkerPool pool) {
        return registries.get(model).workers(pool).stream().map(Worker::name).toList();
    }

    @Test
    void everyModelHasRoomOfItsOwnAndAFullOneTakesNoMore() {
        start(config("name=n,max-workers=1").set(RouterSettings.MAX_WORKERS, 2));
        source.view(List.of(worker("m", "a"), worker("m", "b"), worker("n", "c")));
        final IllegalArgumentException full =
                assertThrows(IllegalArgumentException.class, () -> source.added(worker("n", "a")));
        assertTrue(full.getMessage().contains("max-workers=1"), full.getMessage());
        assertEquals(List.of("a", "b"), names(0), "the one that cannot move stays");
        assertThrows(IllegalArgumentException.class, () -> source.added(worker("m", "c")));
        source.added(worker("n", "c", ",labels=zone:a"));
        assertEquals(List.of("c"), names(1), "its own room is free for it");
        source.removed("c");
        source.added(worker("n", "a"));
        assertEquals(List.of("b"), names(0));
        assertConsistent();
    }

    @Test
    void whatHasNoRoomBesideTheFormerWorkersOfItsSourceHasItAfterThem() {
        start(config().set(RouterSettings.MAX_WORKERS, 2));
        source.view(List.of(worker("m", "a"), worker("m", "b")));
        source.view(List.of(worker("m", "c"), worker("m", "d")));
        assertEquals(List.of("c", "d"), names(0));
        source.view(List.of(worker("m", "d"), worker("m", "e", ",dp=2")));
        assertEquals(List.of("d"), names(0), "there is room for one more");
        assertEquals(1, fleet.failures().get("test").get(), "what is left out is said once");
        source.view(List.of(worker("m", "e", ",dp=2")));
        assertEquals(List.of("e"), names(0));
        assertConsistent();
    }

    @Test
    void whatIsLeftOutIsSaidAgainOnlyWhereItOrTheReasonIsAnother() {
        start(config().set(RouterSettings.MAX_WORKERS, 2));
        final DiscoveredWorker wide = worker("m", "c", ",dp=2");
        final DiscoveredWorker odd = worker("m", "d", UNBINDABLE);
        source.view(List.of(worker("m", "a"), worker("m", "b"), wide, odd));
        assertLeftOut(2);
        source.view(List.of(worker("m", "a"), worker("m", "e"), wide, odd));
        assertEquals(List.of("a", "e"), names(0));
        assertLeftOut(2);
        source.view(List.of(worker("m", "a"), worker("m", "c", ",dp=3")));
        assertLeftOut(3);
        source.view(List.of(worker("m", "a"), wide));
        assertLeftOut(4);
        source.view(List.of(wide));
        assertEquals(List.of("c"), names(0));
        assertLeftOut(4);
    }

    @Test
    void whatASourceRefusesIsSaidInItsWords() {
        start();
        try (CapturedLog log = new CapturedLog(Fleet.class, Level.WARN)) {
            source.refused("endpoint s/x is left out: no port is named http");
            assertEquals(
                    List.of("workers from test: endpoint s/x is left out: no port is named http"),
                    log.textsFrom(Level.WARN));
        }
        assertLeftOut(1);
    }

    @Test
    void manyWithoutRoomAreOneLineAndNotSaidAgainWhenOthersChangeOrTheyRegisterAnew() {
        start(config().set(RouterSettings.MAX_WORKERS, 2));
        final List<DiscoveredWorker> all = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            all.add(worker("m", "w" + i));
        }
        try (CapturedLog log = new CapturedLog(Fleet.class, Level.WARN)) {
            source.view(all);
            source.view(all.subList(1, 9));
            all.replaceAll(w -> new DiscoveredWorker(w.model(), 7, w.worker()));
            source.view(all.subList(1, 9));
            assertEquals(
                    List.of(
                            "workers from test: 7 workers are left out: the main pool has no room"
                                    + " for another worker (dp ranks counted), max-workers=2; raise"
                                    + " it or remove a worker: w2, w3, w4 and 4 more"),
                    log.textsFrom(Level.WARN));
        }
        assertLeftOut(1);
    }

    @Test
    void aSourceThatIsBackIsSaidToBe() {
        start();
        try (CapturedLog log = new CapturedLog(Fleet.class, Level.WARN)) {
            source.recovered(Duration.ofMillis(1_200));
            assertEquals(
                    List.of("workers from test: can be read again, after 1200 ms"),
                    log.textsFrom(Level.WARN));
        }
        assertLeftOut(0);
    }

    private void assertLeftOut(long times) {
        assertEquals(times, fleet.failures().get("test").get());
    }

    @Test
    void aWorkerWithAnotherNameHasThePlaceOfTheFormerOneOnTheEventPlane() {
        start(onEventPlane());
        source.view(List.of(worker("m", "a", ",event-worker=7")));
        source.view(List.of(worker("m", "b", ",event-worker=7")));
        assertEquals(List.of("b"), names(0));
        assertEquals(0, fleet.failures().get("test").get());
        assertConsistent();
    }

    private static GatewayConfig.Builder onEventPlane() {
        return config("name=n")
                .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.ZMQ)
                .set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.of("tcp://127.0.0.1:1"));
    }

    private static String bound(String port) {
        return ",events=tcp://127.0.0.1:" + port + ",bind=true";
    }

    private List<DiscoveredWorker> refused(int takenPort) {
        return List.of(
                worker("m", "w", UNBINDABLE),
                worker("n", "w", UNBINDABLE),
                worker("m", "w", ",role=prefill" + UNBINDABLE),
                worker("m", "w", bound("" + takenPort)),
                worker("m", "w", ",lora=" + "x".repeat(1_000)),
                worker("m", "w", ",event-worker=7"));
    }

    private void assertRefused(DiscoveredWorker successor) {
        assertThrows(
                IllegalArgumentException.class,
                () -> source.added(successor),
                () -> "" + successor.worker());
        final long failures = fleet.failures().get("test").get();
        source.view(List.of(successor, worker("m", "x", ",event-worker=7")));
        assertEquals(failures + 1, fleet.failures().get("test").get());
    }

    @Test
    void aWorkerStaysAsItWasWhereItsSuccessorIsRefused() throws Exception {
        start(onEventPlane());
        source.view(List.of(worker("m", "w"), worker("m", "x", ",event-worker=7")));
        final Upstream before = named("w");
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            for (DiscoveredWorker successor : refused(taken.getLocalPort())) {
                assertRefused(successor);
                assertSame(before, named("w"), "" + successor.worker());
            }
        }
        assertConsistent();
    }

    @Test
    void aWorkerWhoseAddressIsBoundIsRegisteredAgainWhereItsSuccessorIsRefused() throws Exception {
        start(onEventPlane());
        final DiscoveredWorker former = worker("m", "w", bound("*"), ",labels=zone:a");
        source.view(List.of(former, worker("m", "x", ",event-worker=7")));
        fleet.watch(upstream -> () -> {});
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            for (DiscoveredWorker successor : refused(taken.getLocalPort())) {
                assertRefused(successor);
                assertEquals(Map.of("zone", "a"), named("w").labels());
                assertTrue(named("w").inUse(), "it need not answer first");
                assertConsistent();
            }
            fleet.drain("w", true);
            assertRefused(worker("m", "w", bound("" + taken.getLocalPort())));
            assertTrue(named("w").draining());
        }
        assertFalse(source.added(former), "it is the one that is there");
    }

    @Test
    void aWorkerMayBindTheAddressOfTheOneThatItReplaces() throws Exception {
        start();
        final int port = FreePorts.run(1);
        source.added(worker("m", "w", bound("" + port)));
        source.added(worker("m", "w", ",labels=zone:a", bound("" + port)));
        source.added(worker("m", "w", ",role=prefill", bound("" + port)));
        source.added(worker("n", "w", ",events=tcp://*:" + port + ",bind=true"));
        source.added(worker("n", "w", ",labels=zone:a", bound("" + port)));
        source.added(worker("n", "w"));
        source.added(worker("n", "w", bound("" + port)));
        assertEquals(List.of("w"), names(1));
        assertConsistent();
    }

    @Test
    void ejectionsOfOneModelAreNotMadeUpForByTheOther() {
        start(
                config("name=n")
                        .set(GatewaySettings.BREAKER_FAULTS, 1)
                        .set(GatewaySettings.PANIC_PERCENT, 50));
        source.view(
                List.of(
                        worker("m", "a"),
                        worker("m", "b"),
                        worker("n", "c"),
                        worker("n", "d"),
                        worker("n", "e")));
        named("a").faulted(1, "status 500");
        assertFalse(named("a").inUse());
        named("b").faulted(2, "status 500");
        assertTrue(named("a").inUse(), "no other worker of its model is left");
        named("c").faulted(1, "status 500");
        assertFalse(named("c").inUse(), "its model has others");
    }

    @Test
    void theFormerWorkersOfAModelServeUntilOneOfItsNewOnesCan() throws Exception {
        start();
        final Map<String, Upstream> watched = new ConcurrentHashMap<>();
        source.view(List.of(worker("m", "a"), worker("n", "b")));
        fleet.watch(
                upstream -> {
                    watched.put(upstream.name(), upstream);
                    return () -> {};
                });
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            final Future<?> view =
                    threads.submit(() -> source.view(List.of(worker("m", "a"), worker("n", "c"))));
            Eventually.holds("the new one is there", () -> watched.containsKey("c"));
            assertNotNull(named("b"), "the worker of the other model is no successor");
            watched.get("c").probed();
            view.get();
        }
        assertNull(named("b"));
        assertEquals(List.of("c"), names(1));
        assertEquals(List.of("a"), names(0));
    }

    @ParameterizedTest
    @ValueSource(strings = {",labels=zone:z1", ",role=decode", ",taints=spot"})
    void aWorkerThatIsDescribedAnewIsUsedWithoutAProbe(String keys) {
        start();
        fleet.watch(upstream -> () -> {});
        source.view(List.of(worker("m", "a"), worker("m", "b")));
        named("a").probed();
        source.view(List.of(worker("m", "a", keys), worker("m", "b", keys)));
        assertTrue(named("a").inUse(), "it is the engine that has answered");
        assertEquals(UpstreamHealth.State.UP, named("a").health().state());
        assertTrue(named("a").ranks().getFirst().available());
        assertTrue(registries.get(0).capabilities().canServe());
        assertFalse(named("b").inUse(), "it has not answered by any description");
        assertTrue(named("a").probed(), "what is known of its engine is learned again");
        assertConsistent();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "out of use"})
    void aWorkerThatIsDescribedAnewKeepsItsAdapters(String state) {
        start();
        fleet.watch(upstream -> () -> {});
        source.view(List.of(worker("m", "a", ",lora=configured")));
        named("a").probed();
        named("a").adapters(Set.of("listed"), Map.of(7L, "listed"));
        named("a").loraNumbers(Map.of(8L, "said"));
        if (!state.isEmpty()) {
            named("a").refused(state);
        }
        source.view(List.of(worker("m", "a", ",lora=other", ",labels=zone:z1")));
        assertTrue(named("a").listsAdapters());
        assertEquals(Set.of("listed", "other"), named("a").ranks().getFirst().adapters());
        assertEquals(Map.of(7L, "listed", 8L, "said"), named("a").loraNumbers());
        assertFalse(new AdapterProbe(named("a"), Gateways.config().build()).isDue(false));
        assertFalse(named("a").listsAdapters(), "lora-mode is off");
        assertEquals(Set.of("other"), named("a").ranks().getFirst().adapters());
        named("a").adapters(Set.of("listed"), Map.of(7L, "listed"));
        source.added(described("m", "http://h:2,name=a", 0)); // by a view it is waited for
        assertFalse(named("a").listsAdapters(), "another engine");
        assertEquals(Set.of(), named("a").ranks().getFirst().adapters());
        assertEquals(Map.of(), named("a").loraNumbers());
    }

    private static List<Integer> learned(Upstream upstream) {
        return List.of(
                upstream.engineBlockSize(),
                upstream.engineBlocks(),
                upstream.maxModelLength(),
                upstream.cachedTokens(usage("{\"usage\":{\"prompt_tokens\":9}}")));
    }

    private static UsageReader usage(String answer) {
        final UsageReader usage = new UsageReader();
        final byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
        assertTrue(usage.read(bytes, 0, bytes.length));
        return usage;
    }

    @ParameterizedTest
    @ValueSource(strings = {",labels=zone:z1", ",lora=other", ",role=decode", ",role=prefill"})
    void aWorkerThatIsDescribedAnewKeepsWhatItsEngineHasSaid(String keys) {
        start();
        fleet.watch(upstream -> () -> {});
        source.view(List.of(worker("m", "a")));
        final Upstream before = named("a");
        before.probed();
        before.cache(16, 5000);
        before.maxModelLength(4096);
        before.tokenizer(Upstream.TokenizerCheck.AGREES, "samples agree");
        before.cachedTokens(
                usage(
                        "{\"usage\":{\"prompt_tokens\":9,"
                                + "\"prompt_tokens_details\":{\"cached_tokens\":8}}}"));
        source.view(List.of(worker("m", "a", keys)));
        assertNotSame(before, named("a"));
        assertEquals(List.of(16, 5000, 4096, 0), learned(named("a")));
        assertEquals(5000, named("a").ranks().getFirst().kvBlocks());
        assertEquals(Upstream.TokenizerCheck.AGREES, named("a").tokenizer());
        assertEquals("samples agree", named("a").tokenizerDetail());
        source.added(described("m", "http://h:2,name=a", 0)); // by a view it is waited for
        final int unknown = UsageReader.UNKNOWN;
        assertEquals(List.of(unknown, unknown, unknown, unknown), learned(named("a")));
        assertEquals(Upstream.TokenizerCheck.UNKNOWN, named("a").tokenizer());
    }

    @Test
    void aWorkerThatIsAnotherEngineIsUsedOnceItAnswers() {
        start();
        fleet.watch(upstream -> () -> {});
        final List<DiscoveredWorker> others =
                List.of(
                        described("m", "http://h:2,name=a", 0),
                        described("m", "http://h:1,name=a", 7),
                        described("n", "http://h:1,name=a", 0));
        for (DiscoveredWorker other : others) {
            source.view(List.of(worker("m", "a"), worker("m", "b")));
            named("a").probed();
            named("b").probed(); // serves meanwhile
            source.view(List.of(other, worker("m", "b")));
            assertFalse(named("a").inUse(), other::toString);
        }
    }

    @Test
    void aWorkerThatMovesServesWhereItWasUntilItAnswersWhereItIs() throws Exception {
        start();
        final Map<String, Upstream> watched = new ConcurrentHashMap<>();
        source.view(List.of(worker("m", "a")));
        fleet.watch(
                upstream -> {
                    watched.put(upstream.url().toString(), upstream);
                    return () -> {};
                });
        named("a").probed();
        final DiscoveredWorker moved = described("m", "http://h:2,name=a", 0);
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            final Future<?> view = threads.submit(() -> source.view(List.of(moved)));
            Eventually.holds("the new one is there", () -> watched.containsKey("http://h:2"));
            assertTrue(registries.get(0).capabilities().canServe(), "its model has a worker");
            watched.get("http://h:2").probed();
            view.get();
        }
        assertEquals("http://h:2", named("a").url().toString());
        assertTrue(named("a").inUse());
        assertConsistent();
    }

    private static DiscoveredWorker described(String model, String worker, long generation) {
        return new DiscoveredWorker(model, generation, WorkerConfig.parse(worker));
    }

    @Test
    void aWorkerThatIsOutOfUseAndDescribedAnewIsUsedOnceItAnswers() {
        start(config("name=n").set(GatewaySettings.BREAKER_FAULTS, 1));
        fleet.watch(upstream -> () -> {});
        final List<DiscoveredWorker> before =
                List.of(worker("m", "a"), worker("m", "b"), worker("m", "c"), worker("m", "d"));
        source.view(before);
        before.forEach(each -> named(each.name()).probed());
        named("a").refused("refused");
        named("b").faulted(1, "status 500");
        named("c").drain(true);
        final String keys = ",labels=zone:z1";
        source.view(
                List.of(
                        worker("m", "a", keys),
                        worker("m", "b", keys),
                        worker("m", "c", keys),
                        worker("m", "d", keys)));
        for (String name : List.of("a", "b", "c")) {
            assertFalse(named(name).inUse(), name);
            named(name).probed();
            assertTrue(named(name).inUse(), name);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ",role=prefill"})
    void aFormerWorkerThatAnotherSourceRegistersMeanwhileStays(String keys) throws Exception {
        start();
        final Map<String, Upstream> watched = new ConcurrentHashMap<>();
        source.view(List.of(worker("n", "b")));
        fleet.watch(
                upstream -> {
                    watched.put(upstream.name(), upstream);
                    return () -> {};
                });
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            final Future<?> view = threads.submit(() -> source.view(List.of(worker("n", "c"))));
            Eventually.holds("the new one is there", () -> watched.containsKey("c"));
            other.added(worker("n", "b", keys));
            watched.get("c").probed();
            view.get();
        }
        assertEquals(Set.of("b", "c"), Set.copyOf(names(1)));
        assertEquals("other", named("b").source());
        assertConsistent();
    }

    @Test
    void aClosedFleetTakesNoWorker() {
        start();
        source.added(worker("n", "a"));
        fleet.close();
        assertThrows(IllegalArgumentException.class, () -> source.added(worker("n", "b")));
        assertThrows(IllegalArgumentException.class, () -> source.added(worker("m", "a")));
        assertEquals(List.of("a"), names(1));
    }

    @Test
    void foldersAreEachModelsOwn(@TempDir Path folder) {
        start(
                config("name=prefill", "name=org/n")
                        .set(RouterSettings.COUNTERS_DIR, folder.resolve("counters"))
                        .set(RouterSettings.STATE_DIR, folder.resolve("state")));
        source.view(
                List.of(
                        worker("m", "a", ",role=prefill"),
                        worker("prefill", "b", ",role=prefill"),
                        worker("org/n", "c", ",role=prefill")));
        assertEquals(3, fleet.upstreams().size(), "" + fleet.failures());
        for (String model : List.of("", "models/prefill", "models/org%2Fn")) {
            for (String pool : List.of("", "prefill")) {
                final Path counters = folder.resolve("counters").resolve(model).resolve(pool);
                assertTrue(Files.exists(counters.resolve("kvasir.counters")), "" + counters);
                assertTrue(Files.isDirectory(folder.resolve("state").resolve(model).resolve(pool)));
            }
        }
    }

    @Test
    void whereTheRoutersOfOneModelCannotBeMadeNoneAreLeft(@TempDir Path folder) throws Exception {
        final Path taken = Files.createFile(folder.resolve("models"));
        final GatewayConfig.Builder config =
                config("name=n").set(RouterSettings.COUNTERS_DIR, folder);
        final GatewayException refused =
                assertThrows(
                        GatewayException.class, () -> PoolRouters.open(config.build().models()));
        assertTrue(refused.getMessage().contains("model n: "), refused.getMessage());
        Files.delete(taken);
        start(config); // the folder of the first is free again
    }

    @Test
    void tenModelsWithAThousandWorkersThatComeGoAndMove() throws Exception {
        final int models = 10;
        final int workers = 1000;
        final String[] further = new String[models - 1];
        for (int i = 0; i < further.length; i++) {
            further[i] = "name=m" + (i + 1);
        }
        start(
                config(further)
                        .set(GatewaySettings.MODEL, "m0")
                        .set(RouterSettings.MAX_WORKERS, workers));
        final Random random = new Random(Seeds.next("FleetTest"));
        final Map<String, DiscoveredWorker> wanted = new HashMap<>();
        for (int i = 0; i < workers; i++) {
            wanted.put("w" + i, worker("m" + i % models, "w" + i));
        }
        source.view(List.copyOf(wanted.values()));
        for (int i = 0; i < models; i++) {
            assertEquals(workers / models, registries.get(i).upstreams().size());
        }
        for (int round = 0; round < 5; round++) {
            for (int i = 0; i < workers / 10; i++) {
                final String name = "w" + random.nextInt(workers + 50);
                if (random.nextInt(3) == 0) {
                    wanted.remove(name);
                } else {
                    wanted.put(name, worker("m" + random.nextInt(models), name));
                }
            }
            source.view(List.copyOf(wanted.values()));
            assertConsistent();
            final Map<String, String> found = new HashMap<>();
            fleet.upstreams().forEach(u -> found.put(u.name(), u.model()));
            final Map<String, String> expected = new HashMap<>();
            wanted.forEach((name, w) -> expected.put(name, w.model()));
            assertEquals(expected, found);
        }
        assertEquals(0, fleet.failures().get("test").get());
    }

    @Test
    void twoSourcesThatMoveOneNameAtOnceLeaveItInOnePlace() throws Exception {
        start();
        final CountDownLatch go = new CountDownLatch(1);
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            final List<Future<?>> both = new ArrayList<>();
            for (Discovery.Listener each : List.of(source, other)) {
                both.add(
                        threads.submit(
                                () -> {
                                    go.await();
                                    for (int i = 0; i < 200; i++) {
                                        each.added(worker(i % 2 == 0 ? "m" : "n", "w"));
                                        each.added(worker("n", "x" + i % 3));
                                        each.removed("x" + i % 3);
                                    }
                                    return null;
                                }));
            }
            go.countDown();
            for (Future<?> each : both) {
                each.get();
            }
        }
        assertConsistent();
        assertEquals(List.of("w"), fleet.upstreams().stream().map(Upstream::name).toList());
    }
}
