package io.kvasir.gateway.routing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.openai.ApiException;

import org.junit.jupiter.api.Test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

class PromptExecutorTest {
    private static final int LARGE = PromptExecutor.LARGE_BODY_BYTES;

    private static void await(CountDownLatch latch) {
        try {
            assertTrue(latch.await(1, TimeUnit.MINUTES));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void smallBodiesDoNotWaitForLargeOnes() throws Exception {
        final CountDownLatch release = new CountDownLatch(1);
        final CountDownLatch small = new CountDownLatch(10);
        try (PromptExecutor executor = new PromptExecutor(1, 16, PromptExecutor.LARGE_BODY_BYTES)) {
            for (int i = 0; i < 4; i++) {
                executor.submit(LARGE, () -> await(release));
            }
            for (int i = 0; i < 10; i++) {
                executor.submit(LARGE - 1, small::countDown);
            }
            await(small);
            release.countDown();
        }
    }

    @Test
    void workRunsOnPlatformThreadsWithRoomForDeepTemplates() throws Exception {
        final AtomicBoolean virtual = new AtomicBoolean(true);
        final CountDownLatch done = new CountDownLatch(1);
        try (PromptExecutor executor = new PromptExecutor(1, 1, PromptExecutor.LARGE_BODY_BYTES)) {
            executor.submit(
                    1,
                    () -> {
                        virtual.set(Thread.currentThread().isVirtual());
                        done.countDown();
                    });
            await(done);
        }
        assertFalse(virtual.get());
    }

    @Test
    void aFullQueueNamesItsSetting() throws Exception {
        final CountDownLatch release = new CountDownLatch(1);
        try (PromptExecutor executor = new PromptExecutor(1, 2, PromptExecutor.LARGE_BODY_BYTES)) {
            final CountDownLatch begun = new CountDownLatch(1);
            executor.submit(
                    1,
                    () -> {
                        begun.countDown();
                        await(release);
                    });
            await(begun);
            executor.submit(1, () -> {});
            final PromptExecutor.Job last = executor.submit(1, () -> {});
            final ApiException full =
                    assertThrows(ApiException.class, () -> executor.submit(1, () -> {}));
            assertEquals(429, full.status());
            assertTrue(full.getMessage().contains("prompt-queue"), full.getMessage());
            last.cancel();
            assertEquals(1, executor.waiting());
            executor.submit(1, () -> {});
            release.countDown();
        }
    }

    @Test
    void cancellingInterruptsOnlyItsOwnWork() throws Exception {
        final CountDownLatch begun = new CountDownLatch(1);
        final CountDownLatch interrupted = new CountDownLatch(1);
        final CountDownLatch next = new CountDownLatch(1);
        try (PromptExecutor executor = new PromptExecutor(1, 4, PromptExecutor.LARGE_BODY_BYTES)) {
            final PromptExecutor.Job job =
                    executor.submit(
                            1,
                            () -> {
                                begun.countDown();
                                try {
                                    Thread.sleep(60_000);
                                } catch (InterruptedException e) {
                                    interrupted.countDown();
                                }
                            });
            executor.submit(
                    1,
                    () -> {
                        if (!Thread.currentThread().isInterrupted()) {
                            next.countDown();
                        }
                    });
            await(begun);
            job.cancel();
            await(interrupted);
            await(next);
        }
    }
}
