package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Modes that go by load alone. */
class LoadSelectorTest {
    private static final int BLOCK_SIZE = 16;

    private KvRouter router = router(Seeds.next("LoadSelectorTest"));
    private final Decision decision = new Decision();
    private final List<Lease> leases = new ArrayList<>(); // forgotten ones would be released
    private int booked;

    @AfterEach
    void close() {
        router.close();
    }

    private static KvRouter router(long seed) {
        return KvRouter.builder()
                .tickedBy(() -> 0)
                .blockSize(BLOCK_SIZE)
                .maxWorkers(256)
                .random(RandomSource.seeded(seed))
                .build();
    }

    private List<Worker> workers(int count) {
        final List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
        return workers;
    }

    /** Books a prompt that nothing else has. */
    private void book(Worker worker, int blocks) throws RouteException {
        final int[] prompt = new int[blocks * BLOCK_SIZE];
        prompt[0] = ++booked;
        final long requests = worker.activeRequests();
        final long before = worker.activeBlocks();
        leases.add(
                router.reserve(
                        router.newRequest().tokens(prompt, prompt.length).pin(worker), decision));
        EngineMessages.awaitLoad(router, worker, requests + 1, before + blocks);
    }

    private Worker choose(RoutingMode mode, Worker... excluded) throws RouteException {
        final RouteRequest request = router.newRequest().tokens(new int[64], 64).mode(mode);
        for (Worker each : excluded) {
            request.exclude(each);
        }
        router.select(request, decision);
        return decision.worker();
    }

    private Map<Worker, Integer> chosen(RoutingMode mode, int times) throws RouteException {
        final Map<Worker, Integer> chosen = new HashMap<>();
        for (int i = 0; i < times; i++) {
            chosen.merge(choose(mode), 1, Integer::sum);
        }
        return chosen;
    }

    @Test
    void requestsAndLoadAreDifferentThings() throws RouteException {
        final List<Worker> workers = workers(2);
        book(workers.get(0), 1);
        book(workers.get(0), 1);
        book(workers.get(1), 30);
        assertSame(workers.get(1), choose(RoutingMode.LEAST_CONNECTIONS));
        assertSame(workers.get(0), choose(RoutingMode.LEAST_LOADED));
        for (int i = 0; i < 20; i++) {
            assertSame(workers.get(1), choose(RoutingMode.POWER_OF_TWO), "fewer requests");
        }
        book(workers.get(1), 30); // as many now
        for (int i = 0; i < 20; i++) {
            assertSame(workers.get(0), choose(RoutingMode.POWER_OF_TWO), "less load");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"POWER_OF_TWO", "LEAST_LOADED", "LEAST_CONNECTIONS"})
    void theBusyOneIsNotChosenAndTheOthersAreAlike(RoutingMode mode) throws RouteException {
        router.close();
        router = router(20_26); // one seed: the bound of chi-square holds always or never
        final List<Worker> workers = workers(8);
        book(workers.get(3), 4);
        final Map<Worker, Integer> chosen = chosen(mode, 7_000);
        assertFalse(chosen.containsKey(workers.get(3)));
        assertEquals(7, chosen.size());
        double chi = 0;
        for (int times : chosen.values()) {
            chi += (times - 1_000.0) * (times - 1_000.0) / 1_000;
        }
        assertTrue(chi < 38, () -> "6 degrees of freedom, 1 in a million beyond 38: " + chosen);
    }

    @ParameterizedTest
    @EnumSource(names = {"POWER_OF_TWO", "LEAST_LOADED", "LEAST_CONNECTIONS"})
    void onlyCandidatesAreChosenInFleetsWithHoles(RoutingMode mode) throws RouteException {
        final List<Worker> workers = workers(200);
        for (int i = 0; i < 200; i++) {
            if (i % 3 == 0) {
                router.removeWorker(workers.get(i));
            } else if (i % 3 == 1) {
                workers.get(i).available(false);
            }
        }
        final Worker excluded = workers.get(197);
        final Map<Worker, Integer> chosen = new HashMap<>();
        for (int i = 0; i < 3_000; i++) {
            chosen.merge(choose(mode, excluded), 1, Integer::sum);
        }
        assertEquals(65, chosen.size());
        chosen.keySet().forEach(worker -> assertEquals(2, worker.id() % 3));
        assertFalse(chosen.containsKey(excluded));
    }

    @ParameterizedTest
    @EnumSource(names = {"POWER_OF_TWO", "LEAST_LOADED", "LEAST_CONNECTIONS"})
    void oneIsTakenAndNoneIsRefused(RoutingMode mode) throws RouteException {
        final Worker only = workers(1).getFirst();
        assertSame(only, choose(mode));
        only.available(false);
        assertThrows(RouteException.class, () -> choose(mode));
    }

    @Test
    void modesAreWrittenWithDashes() {
        assertEquals("power-of-two", RoutingMode.POWER_OF_TWO.spelling());
        assertSame(RoutingMode.LEAST_LOADED, RoutingMode.parse("Least_Loaded"));
        assertSame(RoutingMode.LEAST_CONNECTIONS, RoutingMode.parse("least-connections"));
        final IllegalArgumentException unknown =
                assertThrows(IllegalArgumentException.class, () -> RoutingMode.parse("fastest"));
        assertTrue(
                unknown.getMessage()
                        .endsWith(
                                "one of: kv, round-robin, random, power-of-two, least-loaded,"
                                        + " least-connections, consistent-hash, direct"),
                unknown.getMessage());
    }
}
