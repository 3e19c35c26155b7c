package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** Ticks come, whatever one of them does. */
class RouterTickerTest {
    private static final String NAME = "RouterTickerTest";
    private static final Duration NEVER = Duration.ofDays(1);

    private final List<Throwable> errors = new CopyOnWriteArrayList<>();
    private final AtomicInteger ticks = new AtomicInteger();

    private RouterTicker started(Duration period, RouterTicker.Tick tick) {
        final RouterTicker ticker = new RouterTicker(NAME, period, () -> 7, tick, errors::add);
        ticker.start();
        return ticker;
    }

    @Test
    void aTickThatFailsIsAnErrorToBeSeenAndTheNextOneComes() {
        final IllegalStateException failure = new IllegalStateException("made up by the test");
        try (RouterTicker _ =
                started(
                        Duration.ofMillis(1),
                        nowNs -> {
                            assertEquals(7, nowNs);
                            if (ticks.getAndIncrement() == 0) {
                                throw failure;
                            }
                            return true;
                        })) {
            Eventually.holds("ticks after the failure", () -> ticks.get() > 2);
        }
        assertEquals(List.of(failure), errors);
    }

    @Test
    void oneThatFailedIsTriedAgainWhateverThePeriod() {
        final Error failure = new AssertionError("made up by the test");
        try (RouterTicker _ =
                started(
                        NEVER,
                        _ -> {
                            if (ticks.getAndIncrement() < 3) {
                                throw failure;
                            }
                            return false;
                        })) {
            Eventually.holds("the one that succeeds", () -> ticks.get() == 4);
        }
        assertEquals(List.of(failure, failure, failure), errors);
    }

    @Test
    void whatWasThereBeforeAWakeIsSeenByATick() {
        final Queue<Integer> work = new ConcurrentLinkedQueue<>();
        try (RouterTicker ticker =
                started(
                        NEVER,
                        _ -> {
                            while (work.poll() != null) {
                                ticks.incrementAndGet();
                            }
                            return false;
                        })) {
            for (int i = 1; i <= 20_000; i++) {
                work.add(i);
                ticker.wake();
                if (i % 3 == 0) { // it waits again, or is about to
                    final int added = i;
                    Eventually.holds("the work that was added", () -> ticks.get() == added);
                }
            }
            Eventually.holds("the last of it", () -> ticks.get() == 20_000);
        }
        assertEquals(List.of(), errors);
    }

    @Test
    void closingEndsTheThreadWhateverItWaitsFor() {
        final RouterTicker waits = started(NEVER, _ -> false);
        final RouterTicker pauses = started(NEVER, _ -> true);
        final RouterTicker fails =
                started(
                        NEVER,
                        _ -> {
                            throw new IllegalStateException("made up by the test");
                        });
        Eventually.holds("three threads", () -> threads() == 3);
        waits.close();
        pauses.close();
        fails.close();
        Eventually.holds("no thread", () -> threads() == 0);
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals(NAME))
                .count();
    }
}
