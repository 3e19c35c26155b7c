package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.Eligibility.Verdict;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.SessionMode;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Cores;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Requests of a session and the worker that had the last one. */
class SessionAffinityTest {
    private static final int BLOCK_SIZE = 16;
    private static final long TTL_NS = TimeUnit.SECONDS.toNanos(60);

    /** But direct, which goes to the worker that the request names. */
    private static final List<RoutingMode> MODES =
            Arrays.stream(RoutingMode.values()).filter(m -> m != RoutingMode.DIRECT).toList();

    private final long seed = Seeds.next("SessionAffinityTest");
    private final Random random = new Random(seed);
    private final Decision decision = new Decision();
    private final List<Worker> workers = new ArrayList<>();
    private final Set<Worker> full = new HashSet<>();
    private KvRouter router;
    private long nowNs = -5;

    private void start(SessionMode mode, int count) {
        router =
                KvRouter.builder()
                        .tickedBy(() -> nowNs)
                        .blockSize(BLOCK_SIZE)
                        .maxWorkers(128)
                        .maxBlocks(1_024, 1_024)
                        .set(RouterSettings.SESSION_TTL, Duration.ofSeconds(60))
                        .set(RouterSettings.SESSION_MODE, mode)
                        .eligibility(
                                one ->
                                        full.contains(one.worker())
                                                ? Verdict.BUSY
                                                : Verdict.ELIGIBLE)
                        .random(RandomSource.seeded(seed))
                        .build();
        for (int i = 0; i < count; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    private RouteRequest request(String session) {
        return router.newRequest().tokens(new int[64], 64).session(session);
    }

    /** Books a request and ends it. */
    private Worker route(RouteRequest request) throws RouteException {
        try (Lease lease = router.reserve(request, decision)) {
            return lease.worker();
        }
    }

    private void load(Worker worker, long blocks) {
        router.board().add(worker.slot(), 0, blocks, 1);
    }

    @ParameterizedTest
    @EnumSource(
            value = RoutingMode.class,
            names = {"DIRECT", "CONSISTENT_HASH"},
            mode = EnumSource.Mode.EXCLUDE)
    void aSessionStaysInAnyModeThatDoesNotSayWhere(RoutingMode mode) throws RouteException {
        start(SessionMode.HARD, 100);
        final Worker first = route(request("a").mode(mode));
        assertFalse(decision.bySession());
        for (int i = 0; i < 50; i++) {
            load(first, 1_000);
            assertSame(first, route(request("a").mode(mode)));
            assertTrue(decision.bySession());
            assertTrue(decision.explain().contains("by its session"), decision.explain());
            route(request(null).mode(mode));
            assertFalse(decision.bySession());
        }
        assertEquals(1, router.sessions());
    }

    @ParameterizedTest
    @EnumSource
    void aSessionThatIsHashedIsNotRemembered(SessionMode mode) throws RouteException {
        start(mode, 8);
        final Worker hashed = route(request("a").mode(RoutingMode.CONSISTENT_HASH));
        assertEquals(0, router.sessions());
        final Worker other = workers.get(hashed == workers.get(0) ? 1 : 0);
        route(request("a").pin(other));
        for (int i = 0; i < 10; i++) {
            EngineMessages.awaitLoad(router, hashed, 0, 0); // else its bound may send it elsewhere
            assertSame(hashed, route(request("a").mode(RoutingMode.CONSISTENT_HASH)));
            assertFalse(decision.bySession());
        }
        assertSame(other, route(request("a")), "what it is bound to in other modes");
        assertTrue(decision.bySession());
    }

    @Test
    void lookingBindsNothing() throws RouteException {
        start(SessionMode.HARD, 8);
        router.select(request("a"), decision);
        router.bestWorker(request("a"));
        assertEquals(0, router.sessions());
        assertThrows(RouteException.class, () -> route(request("a").mode(RoutingMode.DIRECT)));
        assertEquals(0, router.sessions());
    }

    @Test
    void aSessionEndsAfterItsLastRequest() throws RouteException {
        start(SessionMode.HARD, 2);
        final Worker first = route(request("a"));
        final Worker other = workers.get(first == workers.get(0) ? 1 : 0);
        load(first, 100);
        for (int i = 0; i < 5; i++) {
            nowNs += TTL_NS - 1;
            assertSame(first, route(request("a")));
        }
        nowNs += TTL_NS;
        assertEquals(0, router.sessions());
        assertSame(other, route(request("a")), "the cheaper one");
    }

    @Test
    void theBusyExcludedOrDeadWorkerOfASessionIsNotChosenAndTheSessionMoves()
            throws RouteException {
        start(SessionMode.HARD, 3);
        final Worker first = route(request("a"));
        final Worker second = route(request("a").exclude(first)); // failed there
        assertNotSame(first, second);
        assertSame(second, route(request("a")), "it has moved");
        full.add(second);
        final Worker third = route(request("a"));
        assertNotSame(second, third);
        full.clear();
        assertSame(third, route(request("a")), "what it holds is there now");
        third.available(false);
        final Worker fourth = route(request("a"));
        assertNotSame(third, fourth);
        router.removeWorker(fourth);
        final Worker fifth = route(request("a"));
        assertNotSame(fourth, fifth);
        assertEquals(1, router.sessions());
    }

    @Test
    void theNextTenantOfASlotInheritsNoSession() throws RouteException {
        start(SessionMode.HARD, 2);
        final Worker first = route(request("a"));
        router.removeWorker(first);
        Eventually.holds("the end of it", () -> router.bookingPipeline().backlog() == 0);
        Worker next = null;
        for (int i = 10; next == null || next.slot() != first.slot(); i++) {
            next = router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
        }
        router.select(request("a"), decision);
        assertFalse(decision.bySession());
    }

    @Test
    void whatIsBusyExcludedOrDeadIsNeverChosen() throws RouteException {
        for (SessionMode mode : SessionMode.values()) {
            full.clear();
            workers.clear();
            start(mode, 20);
            for (int round = 0; round < 3_000; round++) {
                final Worker changed = workers.get(random.nextInt(20));
                changed.available(random.nextInt(3) > 0);
                if (random.nextBoolean()) {
                    full.remove(changed);
                } else {
                    full.add(changed);
                }
                final Worker excluded = workers.get(random.nextInt(20));
                final RouteRequest request =
                        request("s" + random.nextInt(40))
                                .exclude(excluded)
                                .mode(MODES.get(random.nextInt(MODES.size())));
                if (workers.stream().noneMatch(w -> w != excluded && usable(w))) {
                    assertThrows(RouteException.class, () -> route(request));
                    continue;
                }
                final Worker chosen = route(request);
                assertTrue(usable(chosen));
                assertNotSame(excluded, chosen);
            }
            if (mode == SessionMode.HARD) {
                router.close();
            }
        }
    }

    private boolean usable(Worker worker) {
        return worker.available() && !full.contains(worker);
    }

    @Test
    void aPinIsAboveASession() throws RouteException {
        start(SessionMode.HARD, 2);
        final Worker first = route(request("a"));
        final Worker other = workers.get(first == workers.get(0) ? 1 : 0);
        assertSame(other, route(request("a").pin(other)));
        assertSame(first, route(request("b").pin(first).mode(RoutingMode.DIRECT)), "direct, too");
    }

    @Test
    void aSoftSessionMovesWhereItsWorkerHasMoreLoadThanItsPromptIsWorth() throws RouteException {
        start(SessionMode.SOFT, 2);
        final Worker first = route(request("a"));
        final Worker other = workers.get(first == workers.get(0) ? 1 : 0);
        EngineMessages.awaitLoad(router, first, 0, 0);
        load(first, 4); // the prompt has 4 blocks
        for (RoutingMode mode :
                new RoutingMode[] {RoutingMode.KV, RoutingMode.RANDOM, RoutingMode.LEAST_LOADED}) {
            router.select(request("a").mode(mode), decision);
            assertSame(first, decision.worker());
            assertTrue(decision.bySession());
        }
        load(first, 1);
        assertSame(other, route(request("a")));
        EngineMessages.awaitLoad(router, other, 0, 0);
        load(first, -5);
        load(other, 3);
        assertSame(other, route(request("a")), "it has moved");
    }

    @Test
    void followingSessionsAllocatesNothing() {
        start(SessionMode.SOFT, 100);
        final Lease lease = new Lease();
        final int[] next = {0};
        final RouteRequest[] requests = new RouteRequest[64];
        for (int i = 0; i < 64; i++) {
            requests[i] = request("session " + i);
        }
        assertEquals(
                0,
                Allocations.bytesPerRound(
                        3_000,
                        () -> {
                            while (router.bookingPipeline().backlog() > 32) {
                                Cores.giveWay(); // an open loop without engines
                            }
                            try {
                                router.reserve(requests[next[0]++ & 63], decision, lease);
                            } catch (RouteException e) {
                                throw new AssertionError(e);
                            }
                            lease.close();
                        }));
        assertEquals(64, router.sessions());
    }
}
