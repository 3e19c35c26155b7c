package io.kvasir.services.slots;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

class SlotTrackerTest {
    private static final GroupKey MODEL = new GroupKey("m", "default");
    private static final int RANKS = 8;
    private static final int REQUESTS = 64;

    private long nowNs = 1;
    private final SlotTracker tracker =
            new SlotTracker(
                    SlotsConfig.of("127.0.0.1", 0)
                            .withSizes(RANKS, REQUESTS, 1 << 16)
                            .withRequestTimeout(Duration.ofMinutes(5)),
                    () -> nowNs);

    @AfterEach
    void close() {
        tracker.close();
    }

    private static int status(Executable call) {
        return assertThrows(ServiceException.class, call).status();
    }

    private RankLoad only() {
        final List<RankLoad> loads = tracker.loads();
        assertEquals(1, loads.size());
        return loads.getFirst();
    }

    @Test
    void aRequestThatIsNeverFreedEndsByItself() throws ServiceException {
        tracker.register(MODEL, 7, 4, 0, 1);
        tracker.add(MODEL, "r", 7, 0, new long[] {11, 12}, 8);
        nowNs += Duration.ofSeconds(299).toNanos();
        tracker.expire();
        assertEquals(new RankLoad(MODEL, 7, 0, 8, 2, 1), only());
        nowNs += Duration.ofSeconds(2).toNanos();
        tracker.expire();
        assertEquals(new RankLoad(MODEL, 7, 0, 0, 0, 0), only());
        tracker.free(MODEL, "r"); // late
        tracker.add(MODEL, "r", 7, 0, new long[] {11}, 1);
        assertEquals(new RankLoad(MODEL, 7, 0, 1, 1, 1), only());
    }

    @Test
    void whenAllPlacesAreTakenOneMoreIsRefusedUntilOneIsFree() throws ServiceException {
        tracker.register(MODEL, 7, 4, 0, 1);
        for (int i = 0; i < REQUESTS; i++) {
            tracker.add(MODEL, "r" + i, 7, 0, new long[] {i}, 1);
        }
        assertEquals(503, status(() -> tracker.add(MODEL, "more", 7, 0, new long[0], 1)));
        assertEquals(new RankLoad(MODEL, 7, 0, REQUESTS, REQUESTS, REQUESTS), only());
        tracker.free(MODEL, "r3");
        tracker.add(MODEL, "more", 7, 0, new long[0], 5);
        assertEquals(new RankLoad(MODEL, 7, 0, REQUESTS + 4, REQUESTS - 1, REQUESTS), only());
    }

    @Test
    void ranksBeyondTheLimitAreRefusedAsAWhole() throws ServiceException {
        tracker.register(MODEL, 1, 4, 0, RANKS - 1);
        assertEquals(503, status(() -> tracker.register(MODEL, 2, 4, 0, 2)));
        assertEquals(503, status(() -> tracker.register(MODEL, 2, 4, 0, 0xFFFF_FFFEL)));
        tracker.register(MODEL, 2, 4, 5, 1);
        tracker.unregister(MODEL, 1);
        tracker.register(MODEL, 3, 4, 0, RANKS - 1);
        assertEquals(RANKS, tracker.loads().size());
    }

    @Test
    void aRemovedWorkersRequestsEndAndItsSlotsBeginEmpty() throws ServiceException {
        tracker.register(MODEL, 7, 4, 0, 2);
        tracker.add(MODEL, "a", 7, 1, new long[] {1, 2, 3}, 9);
        tracker.unregister(MODEL, 7);
        assertEquals(List.of(), tracker.loads());
        assertEquals(404, status(() -> tracker.free(MODEL, "a")));
        tracker.register(MODEL, 8, 16, 0, 2);
        assertTrue(tracker.loads().stream().allMatch(load -> load.decodeBlocks() == 0));
        assertEquals(404, status(() -> tracker.prefillComplete(MODEL, "a")));
        assertEquals(1, tracker.potentialLoads(MODEL, new long[] {1}, 0).get(1).decodeBlocks());
    }

    /** The same with sets: blocks in use are the different prefixes of a rank's requests. */
    @Test
    void randomStoriesGiveTheLoadsThatSetsGive() throws ServiceException {
        final Random random = new Random(Seeds.next("SlotTrackerTest"));
        final long[][] prompts = new long[12][];
        for (int i = 0; i < prompts.length; i++) {
            // sequence hashes: a block's hash is one of all before it
            prompts[i] = new long[random.nextInt(9)];
            long hash = 0;
            for (int j = 0; j < prompts[i].length; j++) {
                hash = 31 * hash + random.nextInt(2) + 1;
                prompts[i][j] = hash;
            }
        }
        tracker.register(MODEL, 7, 4, 0, 2);
        tracker.register(MODEL, -1, 4, 0, 1);
        final Map<String, Running> running = new HashMap<>();
        for (int step = 0; step < 3_000; step++) {
            final String id = "r" + random.nextInt(40);
            switch (random.nextInt(4)) {
                case 0, 1 -> {
                    final long worker = random.nextBoolean() ? 7 : -1;
                    final int rank = worker == 7 ? random.nextInt(2) : 0;
                    final long[] prompt = prompts[random.nextInt(prompts.length)];
                    if (running.containsKey(id)) {
                        assertEquals(
                                409, status(() -> tracker.add(MODEL, id, worker, rank, prompt, 3)));
                    } else {
                        tracker.add(MODEL, id, worker, rank, prompt, step);
                        running.put(id, new Running(worker, rank, prompt, step));
                    }
                }
                case 2 -> {
                    if (running.containsKey(id)) {
                        tracker.prefillComplete(MODEL, id);
                        running.computeIfPresent(id, (k, r) -> r.decoding());
                    } else {
                        assertEquals(404, status(() -> tracker.prefillComplete(MODEL, id)));
                    }
                }
                default -> {
                    tracker.free(MODEL, id);
                    running.remove(id);
                }
            }
            if (step % 50 == 0) {
                compare(running, prompts[random.nextInt(prompts.length)]);
            }
        }
    }

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Running(long worker, int rank, long[] prompt, long prefill) {
        Running decoding() {
            return new Running(worker, rank, prompt, 0);
        }
    }

    private void compare(Map<String, Running> running, long[] query) throws ServiceException {
        final List<RankLoad> expected = new ArrayList<>();
        final List<RankLoad> potential = new ArrayList<>();
        for (long[] rank : new long[][] {{7, 0}, {7, 1}, {-1, 0}}) {
            final Set<Long> blocks = new HashSet<>();
            long tokens = 0;
            int count = 0;
            for (Running request : running.values()) {
                if (request.worker() == rank[0] && request.rank() == rank[1]) {
                    for (long hash : request.prompt()) {
                        blocks.add(hash);
                    }
                    tokens += request.prefill();
                    count++;
                }
            }
            expected.add(new RankLoad(MODEL, rank[0], rank[1], tokens, blocks.size(), count));
            int shared = 0;
            while (shared < query.length && blocks.contains(query[shared])) {
                shared++;
            }
            potential.add(
                    new RankLoad(
                            MODEL,
                            rank[0],
                            rank[1],
                            tokens + 5,
                            blocks.size() + query.length - shared,
                            count));
        }
        assertEquals(expected, tracker.loads());
        assertEquals(potential, tracker.potentialLoads(MODEL, query, 5));
    }
}
