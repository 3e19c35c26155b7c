package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicIntegerArray;

class SubmissionQueueTest {
    @Test
    void whatCameBeforeTheEndIsDrainedAndNothingComesAfterIt() {
        final SubmissionQueue<Integer> queue = new SubmissionQueue<>(3);
        assertTrue(queue.offer(1));
        assertTrue(queue.offer(2));
        assertEquals(1, queue.poll());
        assertFalse(queue.isClosed());
        queue.close();
        queue.close();
        assertTrue(queue.isClosed());
        assertFalse(queue.offer(3));
        assertEquals(2, queue.drain());
        assertNull(queue.drain());
        assertFalse(queue.offer(4));
    }

    @Test
    void offersThatRaceWithTheEndAreDrainedOrRefused() throws InterruptedException {
        final int producers = 3;
        final int each = 50;
        for (int round = 0; round < 300; round++) {
            final SubmissionQueue<Integer> queue = new SubmissionQueue<>(producers * each);
            final AtomicIntegerArray taken = new AtomicIntegerArray(producers * each);
            final CountDownLatch first = new CountDownLatch(producers);
            final List<Thread> threads = new ArrayList<>();
            for (int p = 0; p < producers; p++) {
                final int from = p * each;
                threads.add(
                        Thread.ofPlatform()
                                .start(
                                        () -> {
                                            for (int i = from; i < from + each; i++) {
                                                taken.set(i, queue.offer(i) ? 1 : 0);
                                                first.countDown();
                                            }
                                        }));
            }
            first.await();
            queue.close();
            final List<Integer> drained = new ArrayList<>();
            for (Integer i = queue.drain(); i != null; i = queue.drain()) {
                drained.add(i);
            }
            for (Thread thread : threads) {
                thread.join();
            }
            for (int i : drained) {
                assertEquals(1, taken.get(i), "round " + round + ", " + i);
                taken.set(i, 0);
            }
            for (int i = 0; i < taken.length(); i++) {
                assertEquals(0, taken.get(i), "round " + round + ", " + i + " was taken and lost");
            }
        }
    }
}
