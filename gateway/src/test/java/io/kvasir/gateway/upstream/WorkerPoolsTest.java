package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.IndexUse;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.SingleFlight;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

class WorkerPoolsTest {
    private final List<Settings> made = new ArrayList<>();
    private PoolRouters routers;
    private UpstreamRegistry registry;
    private Fleet fleet;
    private Discovery.Listener source;

    private static KvRouter router(Settings settings) {
        return KvRouter.builder().settings(settings).build();
    }

    private void start(GatewayConfig.Builder configured, Function<Settings, KvRouter> maker) {
        final GatewayConfig config = configured.build();
        routers =
                new PoolRouters(
                        config,
                        builder -> {
                            made.add(builder.settings());
                            return maker.apply(builder.settings());
                        });
        registry = new UpstreamRegistry(config, routers);
        fleet = new Fleet(List.of(registry));
        source = fleet.listener("test");
    }

    private void start() {
        start(Gateways.config(), WorkerPoolsTest::router);
    }

    @AfterEach
    void close() {
        fleet.close();
        routers.close();
    }

    private Upstream add(String name, String keys) {
        source.added(
                DiscoveredWorker.of(
                        "m", WorkerConfig.parse("http://h:1,name=" + name + "," + keys)));
        return named(name);
    }

    private Upstream named(String name) {
        return registry.upstreams().stream()
                .filter(upstream -> upstream.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    private List<String> names(WorkerPool pool) {
        return registry.workers(pool).stream().map(Worker::name).toList();
    }

    @Test
    void aRoleDecidesThePool() {
        start();
        add("b", "role=both");
        add("p", "role=prefill,dp=2");
        add("d", "role=decode");
        assertEquals(List.of("b", "d"), names(WorkerPool.MAIN));
        assertEquals(List.of("p", "p"), names(WorkerPool.PREFILL));
        assertEquals(
                List.of("b", "p", "d"), registry.upstreams().stream().map(Upstream::name).toList());
        for (WorkerPool pool : WorkerPool.values()) {
            assertEquals(registry.workers(pool), registry.routerOrNull(pool).workers());
            for (Worker worker : registry.workers(pool)) {
                assertEquals(pool, registry.of(worker).pool());
                assertTrue(registry.of(worker).ranks().contains(worker));
            }
        }
    }

    @Test
    void withoutPrefillWorkersThereIsOneRouter() {
        start();
        add("b", "role=both");
        add("d", "role=decode");
        assertNull(registry.routerOrNull(WorkerPool.PREFILL));
        assertEquals(1, made.size());
        assertEquals(List.of(), registry.workers(WorkerPool.PREFILL));
        assertFalse(registry.canSplit());
    }

    @Test
    void thePrefillRouterHasSettingsOfItsOwn(@TempDir Path folder) {
        start(
                Gateways.config()
                        .set(RouterSettings.MODE, RoutingMode.RANDOM)
                        .set(RouterSettings.OVERLAP_WEIGHT, 7.0)
                        .set(RouterSettings.COUNTERS_DIR, folder)
                        .set(GatewaySettings.PREFILL_MODE, RoutingMode.ROUND_ROBIN)
                        .set(GatewaySettings.PREFILL_OVERLAP_WEIGHT, 2.0),
                WorkerPoolsTest::router);
        add("p", "role=prefill");
        final Settings prefill = made.get(1);
        assertEquals(RoutingMode.ROUND_ROBIN, prefill.get(RouterSettings.MODE));
        assertEquals(2.0, prefill.get(RouterSettings.OVERLAP_WEIGHT));
        assertFalse(prefill.get(RouterSettings.TRACK_ACTIVE_BLOCKS));
        assertTrue(Files.exists(folder.resolve("prefill")));
        assertEquals(RoutingMode.RANDOM, routers.main().mode());
        assertEquals(7.0, made.get(0).get(RouterSettings.OVERLAP_WEIGHT));
        assertTrue(made.get(0).get(RouterSettings.TRACK_ACTIVE_BLOCKS));
    }

    @Test
    void whatAConfigurationMayHaveIsWhatThePrefillRouterIsMadeOf() {
        final GatewayConfig.Builder config =
                Gateways.config()
                        .set(RouterSettings.SINGLE_FLIGHT, SingleFlight.WAIT)
                        .set(GatewaySettings.PREFILL_OVERLAP_WEIGHT, 0.0);
        final IllegalArgumentException wrong =
                assertThrows(IllegalArgumentException.class, config::build);
        assertTrue(wrong.getMessage().contains("the prefill pool"), wrong.getMessage());
        start(config.set(RouterSettings.PREFIX_INDEX, IndexUse.ON), WorkerPoolsTest::router);
        add("p", "role=prefill");
        assertEquals(List.of("p"), names(WorkerPool.PREFILL));
        assertNotNull(routers.queueOrNull(WorkerPool.PREFILL));
    }

    @Test
    void requestsAreSplitWhileAPrefillAndADecodeWorkerCanBeUsed() {
        start();
        add("b", "role=both");
        assertFalse(registry.canSplit());
        Upstream prefill = add("p", "role=prefill");
        assertFalse(registry.canSplit(), "one that does both takes nothing over");
        final Upstream decode = add("d", "role=decode");
        assertTrue(registry.canSplit());

        decode.drain(true);
        assertFalse(registry.canSplit());
        decode.drain(false);
        assertTrue(registry.canSplit());

        prefill.refused("connection refused");
        assertFalse(registry.canSplit());
        for (int i = 0; i < 100 && !registry.canSplit(); i++) {
            prefill.probed();
        }
        assertTrue(registry.canSplit());

        source.removed("p");
        assertFalse(registry.canSplit());
        assertNotNull(registry.routerOrNull(WorkerPool.PREFILL), "it stays once made");
        prefill = add("p", "role=prefill");
        assertTrue(registry.canSplit());
        assertEquals(2, made.size());

        prefill.drain(true);
        source.removed("d");
        prefill.drain(false);
        assertFalse(registry.canSplit());
    }

    @Test
    void onlyWorkersOfOneProtocolSplitARequest() {
        start();
        add("p", "role=prefill,handoff=sglang");
        add("d", "role=decode,handoff=vllm");
        assertFalse(registry.canSplit());
        assertTrue(registry.capabilities().whole());
        add("t", "role=decode,handoff=trtllm");
        assertFalse(registry.canSplit());
        add("s", "role=decode,handoff=sglang");
        assertTrue(registry.canSplit());
        assertEquals(
                0,
                registry.prefillsWithoutDecode() & named("p").ranks().getFirst().taints(),
                "the prefill worker is used");
        source.removed("s");
        assertTrue(
                (registry.prefillsWithoutDecode() & named("p").ranks().getFirst().taints()) != 0);
    }

    @Test
    void whatWorkersCanDoTogetherFollowsTheirRolesAndProtocols() {
        start();
        assertFalse(registry.capabilities().canServe());
        add("p", "role=prefill,handoff=sglang");
        assertFalse(registry.capabilities().canServe());
        assertTrue(registry.capabilities().hasPrefill());
        add("t", "role=decode,handoff=trtllm");
        assertFalse(registry.capabilities().canServe(), "its prompts come from nowhere");
        add("s", "role=decode,handoff=sglang");
        assertTrue(registry.capabilities().canServe());
        assertFalse(registry.capabilities().whole());
        source.removed("p");
        assertFalse(registry.capabilities().canServe());
        add("v", "role=decode");
        assertTrue(registry.capabilities().whole(), "it computes prompts itself");
    }

    @Test
    void aNameThatChangesItsRoleMovesToTheOtherPool() throws Exception {
        start();
        final Upstream before = add("w", "role=decode");
        final KvRouter main = routers.main();
        final int[] prompt = new int[64];
        final Lease lease =
                main.reserve(main.newRequest().tokens(prompt, prompt.length), new Decision());
        final Upstream after = add("w", "role=prefill");
        assertEquals(List.of(), names(WorkerPool.MAIN));
        assertEquals(List.of("w"), names(WorkerPool.PREFILL));
        assertNotSame(before, after);
        assertTrue(after.id() > before.id());
        assertNull(registry.of(lease.worker()), "its requests end on what they hold");
        lease.close();
        assertEquals(0, routers.activeLeases());
        assertSame(after, add("w", "role=prefill"), "the same description changes nothing");
        add("w", "role=both");
        assertEquals(List.of("w"), names(WorkerPool.MAIN));
        assertEquals(List.of(), names(WorkerPool.PREFILL));
    }

    @Test
    void everyPoolHasRoomOfItsOwn() {
        start(Gateways.config().set(RouterSettings.MAX_WORKERS, 2), WorkerPoolsTest::router);
        add("p", "role=prefill,dp=2");
        add("a", "role=both");
        add("b", "role=decode");
        final IllegalArgumentException full =
                assertThrows(IllegalArgumentException.class, () -> add("q", "role=prefill"));
        assertTrue(full.getMessage().contains("max-workers=2"), full.getMessage());
        assertTrue(full.getMessage().contains("prefill pool"), full.getMessage());
        assertThrows(IllegalArgumentException.class, () -> add("c", "role=both"));
        assertThrows(IllegalArgumentException.class, () -> add("a", "role=prefill"));
        assertEquals(List.of("a", "b"), names(WorkerPool.MAIN), "the one that cannot move stays");
        source.removed("p");
        add("a", "role=prefill");
        assertEquals(List.of("a"), names(WorkerPool.PREFILL));
    }

    @Test
    void ejectionsOfOnePoolAreNotMadeUpForByTheOther() {
        start(
                Gateways.config()
                        .set(GatewaySettings.BREAKER_FAULTS, 1)
                        .set(GatewaySettings.PANIC_PERCENT, 50),
                WorkerPoolsTest::router);
        final List<Upstream> prefill = List.of(add("p", "role=prefill"), add("q", "role=prefill"));
        final List<Upstream> main =
                List.of(add("a", "role=both"), add("b", "role=both"), add("d", "role=decode"));
        main.get(0).faulted(1, "status 500");
        assertFalse(main.get(0).inUse());
        prefill.get(0).faulted(1, "status 500");
        assertFalse(prefill.get(0).inUse());
        prefill.get(1).faulted(2, "status 500");
        assertTrue(prefill.get(0).inUse(), "no prefill worker is left but ejected ones");
        assertTrue(prefill.get(1).inUse());
        assertFalse(main.get(0).inUse(), "its pool has others");
        assertTrue(registry.canSplit());
    }

    @Test
    void aWorkerIsDrainedInItsPool() {
        start();
        add("b", "role=both");
        final Upstream prefill = add("p", "role=prefill");
        assertTrue(fleet.drain("p", true));
        assertFalse(prefill.ranks().getFirst().available());
        assertTrue(named("b").ranks().getFirst().available());
        assertTrue(fleet.drain("p", false));
        assertTrue(prefill.ranks().getFirst().available());
        assertTrue(fleet.drain("b", true));
        assertTrue(prefill.ranks().getFirst().available());
        assertFalse(registry.capabilities().canServe());
    }

    @Test
    void whereThereIsNoMemoryForThePrefillPoolTheWorkerIsRefusedAndTheRestLivesOn() {
        final AtomicInteger failures = new AtomicInteger(2);
        start(
                Gateways.config(),
                settings -> {
                    if (made.size() > 1 && failures.getAndDecrement() > 0) {
                        throw new OutOfMemoryError("no off-heap memory");
                    }
                    return router(settings);
                });
        final Upstream before = add("w", "role=both");
        final IllegalArgumentException refused =
                assertThrows(IllegalArgumentException.class, () -> add("w", "role=prefill"));
        assertTrue(refused.getMessage().contains("prefill pool"), refused.getMessage());
        assertTrue(refused.getMessage().contains("no off-heap memory"), refused.getMessage());
        assertSame(before, named("w"), "it is not removed before there is room for its successor");
        assertTrue(before.inUse());

        source.view(
                List.of(
                        DiscoveredWorker.of("m", WorkerConfig.parse("http://h:1,name=w")),
                        DiscoveredWorker.of(
                                "m", WorkerConfig.parse("http://h:2,name=p,role=prefill"))));
        assertEquals(1, fleet.failures().get("test").get());
        assertEquals(List.of("w"), names(WorkerPool.MAIN));
        assertNull(registry.routerOrNull(WorkerPool.PREFILL));

        add("p", "role=prefill");
        assertEquals(List.of("p"), names(WorkerPool.PREFILL));
    }

    @Test
    void aPoolThatFailsOnceItIsMadeIsClosed() {
        final AtomicReference<KvRouter> other = new AtomicReference<>();
        start(
                Gateways.config(),
                settings -> {
                    if (made.size() == 1) {
                        return router(settings);
                    }
                    other.set(
                            router(
                                    settings.toBuilder()
                                            .set(RouterSettings.BLOCK_SIZE, 32)
                                            .build()));
                    return other.get(); // which does not take the settings of the pool
                });
        assertThrows(IllegalArgumentException.class, () -> routers.ready(WorkerPool.PREFILL));
        assertNull(routers.of(WorkerPool.PREFILL));
        assertNull(routers.queueOrNull(WorkerPool.PREFILL));
        assertClosed(other.get());
    }

    @Test
    void aClosedRegistryTakesNoWorker() {
        start();
        add("b", "role=both");
        fleet.close();
        assertThrows(IllegalArgumentException.class, () -> add("p", "role=prefill"));
        assertEquals(1, made.size());
        routers.close();
        assertThrows(ClosedException.class, () -> routers.ready(WorkerPool.PREFILL));
        assertEquals(1, made.size());
    }

    @Test
    void aPoolThatIsBeingMadeIsClosedWithTheOthers() throws Exception {
        final CountDownLatch making = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final AtomicReference<KvRouter> late = new AtomicReference<>();
        start(
                Gateways.config(),
                settings -> {
                    final KvRouter router = router(settings);
                    if (made.size() > 1) {
                        late.set(router);
                        making.countDown();
                        awaitUninterrupted(goOn);
                    }
                    return router;
                });
        final Thread adding = Thread.ofPlatform().start(() -> addIfOpen("p", "role=prefill"));
        making.await();
        final Thread closing =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    fleet.close();
                                    routers.close();
                                });
        while (closing.getState() != Thread.State.BLOCKED) {
            Cores.giveWay();
        }
        goOn.countDown();
        closing.join();
        adding.join();
        assertClosed(late.get());
        assertThrows(IllegalArgumentException.class, () -> add("q", "role=prefill"));
    }

    private static void assertClosed(KvRouter router) {
        assertThrows(
                ClosedException.class,
                () -> router.select(router.newRequest().tokens(new int[1], 1), new Decision()));
    }

    private void addIfOpen(String name, String keys) {
        try {
            add(name, keys);
        } catch (IllegalArgumentException | ClosedException e) {
            assertNotNull(e.getMessage());
        }
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void tenThousandWorkersComeAndLeaveAndNothingIsLeft() {
        start();
        add("stays", "role=decode");
        for (int i = 0; i < 10_000; i++) {
            final String role = i % 3 == 0 ? "both" : i % 3 == 1 ? "prefill" : "decode";
            assertNotNull(add("w" + i % 5, "role=" + role + ",topic=t" + i));
            if (i % 2 == 0) {
                assertTrue(source.removed("w" + i % 5));
            }
        }
        for (int i = 0; i < 5; i++) {
            source.removed("w" + i);
        }
        assertEquals(List.of("stays"), names(WorkerPool.MAIN));
        assertEquals(List.of(), names(WorkerPool.PREFILL));
        for (WorkerPool pool : WorkerPool.values()) {
            assertEquals(registry.workers(pool), registry.routerOrNull(pool).workers());
        }
        assertEquals(2, made.size());
        assertFalse(registry.canSplit());
    }

    /** Each registration copied and counted all that were there: 10,000 times 10,000. */
    @Tag("trials")
    @Test
    void oneMoreOfThousandsOfWorkersCopiesAndCountsNoOther() {
        final int count = Trials.of(3_000, 10_000);
        start(Gateways.config().set(RouterSettings.MAX_WORKERS, count), WorkerPoolsTest::router);
        final List<DiscoveredWorker> view = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final String role = i % 2 == 0 ? "prefill" : "decode";
            view.add(
                    DiscoveredWorker.of(
                            "m", WorkerConfig.parse("http://h:1,name=w" + i + ",role=" + role)));
        }
        final long bytes = Allocations.bytesOf(() -> source.view(view));
        assertEquals(count, registry.upstreams().size());
        assertEquals(count / 2, registry.workers(WorkerPool.PREFILL).size());
        assertTrue(registry.canSplit());
        System.out.println("bytes for " + count + " workers: " + bytes);
        assertTrue(bytes < count * (10_000L + 2L * count), "bytes=" + bytes); // copies: 12 * count
        source.view(view.subList(0, 2));
        assertEquals(2, registry.upstreams().size());
        assertEquals(List.of("w0"), names(WorkerPool.PREFILL));
        assertEquals(List.of("w1"), names(WorkerPool.MAIN));
    }
}
