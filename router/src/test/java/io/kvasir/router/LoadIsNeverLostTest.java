package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RandomSource;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/** What is booked weighs, also when the blocks of the running prompts fill the path table. */
class LoadIsNeverLostTest {
    private static final int WORKERS = 4;
    private static final int PATH_BLOCKS = 64;

    private final long seed = Seeds.next("LoadIsNeverLostTest");
    private final Random random = new Random(seed);
    private final KvRouter router =
            KvRouter.builder()
                    .maxBlocks(PATH_BLOCKS, 1_024)
                    .maxActiveRequests(512)
                    .random(RandomSource.seeded(seed))
                    .build();
    private final Decision decision = new Decision();
    private final List<Lease> leases = new ArrayList<>();

    @AfterEach
    void close() {
        router.close();
    }

    private void addWorkers() {
        for (int i = 0; i < WORKERS; i++) {
            router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
        }
    }

    private int[] tokens(int blocks) {
        return random.ints(blocks * 16L, 0, 50_000).toArray();
    }

    private Worker reserve(int[] tokens) throws RouteException {
        leases.add(router.reserve(router.newRequest().tokens(tokens, tokens.length), decision));
        Eventually.holds("bookings applied", () -> router.bookingPipeline().backlog() == 0);
        return decision.worker();
    }

    @Test
    void promptsBeyondTheTableWeighWhatTheyAre() throws RouteException {
        addWorkers();
        for (int i = 0; i < 40; i++) {
            reserve(tokens(10)); // the table has room for six of them
        }
        assertEquals(40 * 160, router.workers().stream().mapToLong(Worker::prefillTokens).sum());
        assertEquals(40 * 10, router.workers().stream().mapToLong(Worker::activeBlocks).sum());
        for (Worker worker : router.workers()) {
            assertEquals(10, worker.activeRequests(), "each as many as the others");
        }
        assertTrue(leases.stream().allMatch(Lease::isOpen));
        leases.forEach(Lease::close);
        Eventually.holds("bookings ended", () -> router.bookingPipeline().backlog() == 0);
        for (Worker worker : router.workers()) {
            assertEquals(0, worker.activeRequests());
            assertEquals(0, worker.activeBlocks());
            assertEquals(0, worker.prefillTokens());
        }
    }

    @Test
    void requestsForOnePrefixDoNotHerdOnItsHolderWhenTheTableIsFull() throws RouteException {
        addWorkers();
        for (int i = 0; i < 16; i++) {
            reserve(tokens(PATH_BLOCKS / 4));
        }
        final int[] prefix = tokens(20);
        final Worker holder = router.workers().get(1);
        router.openDirect(holder, EngineMessages.source(holder.name(), 16))
                .onMessage(0, EngineMessages.stored(prefix, 20, 16, 0));
        Eventually.holds("the prefix is indexed", holder::ready);
        final int[] sent = new int[WORKERS];
        for (int i = 0; i < 100; i++) {
            final int[] tail = tokens(4);
            final int[] prompt = Arrays.copyOf(prefix, prefix.length + tail.length);
            System.arraycopy(tail, 0, prompt, prefix.length, tail.length);
            sent[reserve(prompt).slot()]++;
        }
        for (int slot = 0; slot < WORKERS; slot++) {
            assertTrue(sent[slot] >= 5, "all share the work: " + Arrays.toString(sent));
        }
        assertTrue(sent[holder.slot()] > 25, "most of it with the holder");
    }

    @Test
    void bookingsEndWhateverAListenerThrows() throws RouteException {
        addWorkers();
        router.addRoomListener(
                _ -> {
                    throw new IllegalStateException("a defect of the listener");
                });
        for (int i = 0; i < 3 * 512; i++) { // the table has room for 512
            reserve(tokens(1));
            leases.removeLast().close();
        }
        Eventually.holds("bookings ended", () -> router.bookingPipeline().backlog() == 0);
        assertEquals(0, router.activeRequests().activeRequests());
        for (Worker worker : router.workers()) {
            assertEquals(0, worker.activeRequests());
            assertEquals(0, worker.activeBlocks());
            assertEquals(0, worker.prefillTokens());
        }
        assertTrue(router.status().failures() >= 3 * 512, "each is counted");
    }
}
