package io.kvasir.pipeline.booking;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Latches;

import java.util.concurrent.CountDownLatch;

/** The writer of a booking pipeline, held back: what is published meanwhile stays in the ring. */
final class HeldWriter {

    private final CountDownLatch release = new CountDownLatch(1);

    private HeldWriter() {}

    /**
     * Holds the writer back from now on, at most for as long as {@link Latches} waits.
     *
     * @param slot worker slot without bookings, whose tenant ends by it
     */
    static HeldWriter of(BookingPipeline pipeline, int slot) {
        final HeldWriter held = new HeldWriter();
        final CountDownLatch waiting = new CountDownLatch(1);
        assertTrue(
                pipeline.workerGone(
                        slot,
                        () -> {
                            waiting.countDown();
                            Latches.await(held.release);
                        }));
        Latches.await(waiting);
        return held;
    }

    void release() {
        release.countDown();
    }

    /** Waits until the writer has applied what is in the ring. */
    static void awaitApplied(BookingPipeline pipeline) {
        Eventually.holds(() -> pipeline.backlog() == 0);
    }
}
