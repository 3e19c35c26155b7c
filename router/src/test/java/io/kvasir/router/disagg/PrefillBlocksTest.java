package io.kvasir.router.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;

/** The blocks of a prefill end once, whatever comes first. */
class PrefillBlocksTest {
    private final PrefillBlocks blocks = new PrefillBlocks();
    private final Counted held = new Counted();

    /** Counts how the blocks ended. */
    private static final class Counted implements PrefillBlocks.Held {
        private final AtomicInteger fetched = new AtomicInteger();
        private final AtomicInteger freed = new AtomicInteger();

        @Override
        public void fetched() {
            fetched.incrementAndGet();
        }

        @Override
        public void free() {
            freed.incrementAndGet();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "answered free, 0, 1",
        "free answered, 0, 1",
        "answered fetched, 1, 0",
        "fetched answered, 1, 0",
        "answered fetched free, 1, 0",
        "answered free fetched, 0, 1",
        "fetched answered free, 1, 0",
        "free answered fetched, 0, 1",
        "fetched free answered, 1, 0",
        "free fetched answered, 0, 1",
        "free free answered, 0, 1",
        "answered free free, 0, 1",
        "answered fetched fetched, 1, 0",
        "fetched answered fetched, 1, 0",
        "answered, 0, 0",
        "free, 0, 0",
        "fetched, 0, 0"
    })
    void theFirstOfFetchedAndFreeCountsOnce(String order, int fetched, int freed) {
        for (String step : order.split(" ", -1)) {
            switch (step) {
                case "answered" -> blocks.answered(held);
                case "fetched" -> blocks.fetched();
                default -> blocks.free();
            }
        }
        assertEquals(fetched, held.fetched.get());
        assertEquals(freed, held.freed.get());
    }

    @ParameterizedTest
    @CsvSource({"false", "true"})
    void aSecondAnswerIsADefectThatChangesNothing(boolean ended) {
        if (ended) {
            blocks.free();
        }
        blocks.answered(held);
        final Counted second = new Counted();
        assertThrows(IllegalStateException.class, () -> blocks.answered(second));
        blocks.free();
        assertEquals(1, held.freed.get());
        assertEquals(0, second.freed.get());
    }

    @Test
    void blocksWhoseFreeingThrowsAreNotFreedAgain() {
        final AtomicInteger calls = new AtomicInteger();
        blocks.answered(
                new PrefillBlocks.Held() {
                    @Override
                    public void fetched() {}

                    @Override
                    public void free() {
                        calls.incrementAndGet();
                        throw new IllegalStateException("unreachable");
                    }
                });
        assertThrows(IllegalStateException.class, blocks::free);
        blocks.free();
        assertEquals(1, calls.get());
    }

    @Test
    void blocksThatAreFreedWithinTheirAnswerAreFreedOnce() {
        final AtomicInteger calls = new AtomicInteger();
        blocks.free();
        blocks.answered(
                new PrefillBlocks.Held() {
                    @Override
                    public void fetched() {}

                    @Override
                    public void free() {
                        calls.incrementAndGet();
                        blocks.free();
                        blocks.fetched();
                    }
                });
        assertEquals(1, calls.get());
    }

    @Test
    void threadsThatAnswerFetchAndFreeAtOnceEndTheBlocksOnce() throws Exception {
        for (int round = 0; round < 2_000; round++) {
            final PrefillBlocks shared = new PrefillBlocks();
            final Counted counted = new Counted();
            final CyclicBarrier go = new CyclicBarrier(3);
            final CountDownLatch ended = new CountDownLatch(3);
            final List<Runnable> steps =
                    List.of(() -> shared.answered(counted), shared::fetched, shared::free);
            for (Runnable step : steps) {
                Thread.ofVirtual()
                        .start(
                                () -> {
                                    try {
                                        go.await();
                                        step.run();
                                    } catch (Exception e) {
                                        throw new AssertionError(e);
                                    } finally {
                                        ended.countDown();
                                    }
                                });
            }
            ended.await();
            assertEquals(1, counted.fetched.get() + counted.freed.get());
        }
    }
}
