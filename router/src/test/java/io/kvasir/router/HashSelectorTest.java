package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Mode consistent-hash: keys keep their workers, and no worker gets more than its share. */
class HashSelectorTest {
    private static final int BLOCK_SIZE = 16;
    private static final int WORKERS = 20;
    private static final int KEYS = 10_000;

    private final Random random = new Random(Seeds.next("HashSelectorTest"));
    private final Decision decision = new Decision();
    private final List<Worker> workers = new ArrayList<>();
    private KvRouter router;

    private static KvRouter router(double factor) {
        return KvRouter.builder()
                .tickedBy(() -> 0)
                .blockSize(BLOCK_SIZE)
                .maxWorkers(64)
                .maxBlocks(1_024, 1_024)
                .mode(RoutingMode.CONSISTENT_HASH)
                .set(RouterSettings.HASH_LOAD_FACTOR, factor)
                .build();
    }

    @BeforeEach
    void start() {
        router = router(1.25);
        for (int i = 0; i < WORKERS; i++) {
            workers.add(router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i)));
        }
    }

    @AfterEach
    void close() {
        router.close();
    }

    private Worker choose(String session, Worker... excluded) throws RouteException {
        return choose(router, session, excluded);
    }

    private Worker choose(KvRouter among, String session, Worker... excluded)
            throws RouteException {
        final RouteRequest request = among.newRequest().tokens(new int[40], 40).session(session);
        for (Worker each : excluded) {
            request.exclude(each);
        }
        among.select(request, decision);
        return decision.worker();
    }

    private Map<String, Worker> all(Worker... excluded) throws RouteException {
        final Map<String, Worker> chosen = new HashMap<>();
        for (int key = 0; key < KEYS; key++) {
            chosen.put("key " + key, choose("key " + key, excluded));
        }
        return chosen;
    }

    private static void assertSpread(Map<String, Worker> chosen, int over) {
        final Map<Worker, Integer> counts = new HashMap<>();
        chosen.values().forEach(worker -> counts.merge(worker, 1, Integer::sum));
        assertEquals(over, counts.size());
        final double mean = (double) chosen.size() / over;
        double chi = 0;
        for (int count : counts.values()) {
            chi += (count - mean) * (count - mean) / mean;
        }
        // keys and names are constants: this passes always or never; mean over - 1
        final double chiSquare = chi;
        assertTrue(chi < over - 1 + 5 * Math.sqrt(2 * (over - 1)), () -> "χ² " + chiSquare);
    }

    @Test
    void keysAreSpreadEvenly() throws RouteException {
        assertSpread(all(), WORKERS);
    }

    @Test
    void onlyTheKeysOfAWorkerThatLeavesMoveAndAreSpread() throws RouteException {
        final Map<String, Worker> before = all();
        final Worker left = workers.get(7);
        left.available(false);
        final Map<String, Worker> after = all();
        final Map<String, Worker> moved = new HashMap<>();
        before.forEach(
                (key, worker) -> {
                    if (worker == left) {
                        moved.put(key, after.get(key));
                    } else {
                        assertSame(worker, after.get(key));
                    }
                });
        assertSpread(moved, WORKERS - 1);
        left.available(true);
        assertEquals(before, all(), "it takes its own back, and nothing else moves");
    }

    @Test
    void excludingIsAsLeaving() throws RouteException {
        final Worker left = workers.get(3);
        final Map<String, Worker> without = all(left);
        left.available(false);
        assertEquals(all(), without);
    }

    @Test
    void aWorkerThatComesTakesItsShareAlone() throws RouteException {
        final Map<String, Worker> before = all();
        final Worker come = router.addWorker(WorkerSpec.of(99, "w99", "http://w99"));
        int moved = 0;
        for (Map.Entry<String, Worker> each : all().entrySet()) {
            if (each.getValue() == come) {
                moved++;
            } else {
                assertSame(before.get(each.getKey()), each.getValue());
            }
        }
        final double share = KEYS / (WORKERS + 1.0);
        assertEquals(share, moved, 5 * Math.sqrt(share));
    }

    @Test
    void routersAgreeWhateverTheOrderOfTheirWorkers() throws RouteException {
        try (KvRouter other = router(1.25)) {
            for (int i = WORKERS - 1; i >= 0; i--) {
                other.addWorker(WorkerSpec.of(i + 7, "w" + i, "http://elsewhere"));
            }
            for (int key = 0; key < 500; key++) {
                assertEquals(choose("key " + key).name(), choose(other, "key " + key).name());
            }
        }
    }

    @Test
    void ranksOfOneWorkerAreWorkersOfTheirOwn() throws RouteException {
        try (KvRouter ranks = router(1.25)) {
            for (int rank = 0; rank < 4; rank++) {
                ranks.addWorker(new WorkerSpec(1, "w", "http://w", rank, null));
            }
            final int[] chosen = new int[4];
            for (int key = 0; key < 4_000; key++) {
                chosen[choose(ranks, "key " + key).dpRank()]++;
            }
            for (int count : chosen) {
                assertEquals(1_000, count, 150);
            }
        }
    }

    @Test
    void noWorkerGetsMoreThanItsShareOfTheRequests() throws RouteException {
        for (double factor : new double[] {1, 1.25, 3}) {
            try (KvRouter bounded = router(factor)) {
                for (int i = 0; i < 7; i++) {
                    bounded.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
                }
                for (int n = 1; n <= 400; n++) {
                    final Worker chosen = choose(bounded, random.nextInt(4) == 0 ? "x" + n : "hot");
                    bounded.board().add(chosen.slot(), 0, 1, 1);
                    final long most = (long) Math.ceil(factor * n / 7);
                    assertTrue(
                            chosen.activeRequests() <= most,
                            () -> chosen.activeRequests() + " of at most " + most);
                }
            }
        }
    }

    @Test
    void aHotKeySpillsToTheSameNextOne() throws RouteException {
        final Worker first = choose("hot");
        router.board().add(first.slot(), 0, 1, 10);
        final Worker second = choose("hot");
        assertNotSame(first, second);
        assertSame(second, choose("hot", first), "where it would go without the first");
        router.board().add(first.slot(), 0, 0, -10);
        assertSame(first, choose("hot"));
    }

    @Test
    void withoutASessionTheFirstBlockIsTheKey() throws RouteException {
        final int[] one = random.ints(5 * BLOCK_SIZE).toArray();
        final int[] same = one.clone();
        for (int i = BLOCK_SIZE; i < same.length; i++) {
            same[i] = random.nextInt();
        }
        router.select(router.newRequest().tokens(one, one.length), decision);
        final Worker chosen = decision.worker();
        router.select(router.newRequest().tokens(same, same.length), decision);
        assertSame(chosen, decision.worker());
        final Map<Worker, Integer> others = new HashMap<>();
        for (int i = 0; i < 500; i++) {
            final int[] prompt = {i, i + 1, i + 2}; // shorter than a block
            router.select(router.newRequest().tokens(prompt, 3), decision);
            others.merge(decision.worker(), 1, Integer::sum);
        }
        assertEquals(WORKERS, others.size());
        router.select(router.newRequest(), decision); // nothing to hash
    }

    @Test
    void onlyCandidatesAreChosen() throws RouteException {
        for (int round = 0; round < 2_000; round++) {
            final Worker changed = workers.get(random.nextInt(WORKERS));
            changed.available(random.nextBoolean());
            router.board().add(changed.slot(), 0, 1, random.nextInt(3) - 1);
            final Worker excluded = workers.get(random.nextInt(WORKERS));
            final boolean any = workers.stream().anyMatch(w -> w.available() && w != excluded);
            if (any) {
                final Worker chosen = choose("key " + round, excluded);
                assertTrue(chosen.available());
                assertNotSame(excluded, chosen);
            } else {
                final int key = round;
                assertThrows(RouteException.class, () -> choose("key " + key, excluded));
            }
        }
    }
}
