package io.kvasir.gateway.routing;

import io.kvasir.gateway.openai.ApiException;

import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Platform threads for work that costs CPU: JSON, chat templates, tokenizers, hashes. The operating
 * system takes turns among them and the threads that do I/O, which virtual threads would not. Large
 * bodies have a thread of their own, so that small ones never wait for one.
 */
public final class PromptExecutor implements AutoCloseable {
    /** A body from here on is a large one: some half a second of tokenizing. */
    public static final int LARGE_BODY_BYTES = 1 << 20;

    /** The same where a native library encodes. */
    public static final int LARGE_NATIVE_BODY_BYTES = 64 << 10;

    /** Some ten milliseconds of work at most. */
    private static final int QUICK_BODY_BYTES = 16 << 10;

    /** Room for templates and values as deeply nested as they may be. */
    private static final long STACK_BYTES = 16 << 20;

    private final ThreadPoolExecutor small;
    private final ThreadPoolExecutor large;
    private final int largeBytes;

    /**
     * @param threads for small bodies
     * @param queue requests of each kind that may wait
     * @param largeBytes size of a body from which on it is a large one
     */
    public PromptExecutor(int threads, int queue, int largeBytes) {
        this.largeBytes = largeBytes;
        small = pool("kvasir-prompt-", threads, queue);
        large = pool("kvasir-large-prompt-", 1, queue);
    }

    /** As many as there are cores, but one, which I/O has. */
    public static int usualThreads() {
        return Math.max(1, Runtime.getRuntime().availableProcessors() - 1);
    }

    private static ThreadPoolExecutor pool(String name, int threads, int queue) {
        return new ThreadPoolExecutor(
                threads,
                threads,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(queue),
                Thread.ofPlatform().name(name, 0).daemon().stackSize(STACK_BYTES).factory());
    }

    /** Work that waits or is done. */
    public static final class Job {
        private final ThreadPoolExecutor pool;
        private final FutureTask<Void> task;

        private Job(ThreadPoolExecutor pool, Runnable work) {
            this.pool = pool;
            this.task = new FutureTask<>(work, null);
        }

        /** Takes it out of the queue, or interrupts it. */
        public void cancel() {
            task.cancel(true);
            pool.remove(task);
        }
    }

    /**
     * Has work done.
     *
     * @param bodyBytes what it is about
     * @throws ApiException 429 if as much waits as may
     */
    public Job submit(int bodyBytes, Runnable work) throws ApiException {
        final Job job = new Job(bodyBytes < largeBytes ? small : large, work);
        try {
            job.pool.execute(job.task);
        } catch (RejectedExecutionException e) {
            throw ApiException.overloaded("too many prompts wait to be read", "prompt-queue");
        }
        return job;
    }

    /** Whether work on so many bytes begins and ends at once, as far as that can be said. */
    public boolean isQuick(int bodyBytes) {
        return bodyBytes < QUICK_BODY_BYTES && small.getQueue().isEmpty();
    }

    /** Requests that wait for a thread. */
    public int waiting() {
        return small.getQueue().size() + large.getQueue().size();
    }

    /** Interrupts what is under way; work that waits is dropped. */
    @Override
    public void close() {
        small.shutdownNow();
        large.shutdownNow();
    }
}
