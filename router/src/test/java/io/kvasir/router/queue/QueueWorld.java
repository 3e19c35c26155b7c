package io.kvasir.router.queue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Eventually;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** A router of blocks of 16 tokens and its queue, on a clock that stands still. */
final class QueueWorld implements AutoCloseable {
    static final int BLOCK_SIZE = 16;

    /** A request that notes what became of it. */
    final class Waiter implements QueuedRequest {
        final int[] tokens;
        final Worker pin;
        final AtomicInteger outcomes = new AtomicInteger();
        volatile Lease lease;
        volatile Worker worker;
        volatile int overlapBlocks;
        volatile long waitedNs;
        volatile Exception refusal;
        volatile Thread by;
        volatile QueueTicket ticket;
        QueueRank rank = QueueRank.USUAL;
        private final Consumer<RouteRequest> asks;

        Waiter(int[] tokens, Worker pin) {
            this(tokens, pin, _ -> {});
        }

        Waiter(int[] tokens, Worker pin, Consumer<RouteRequest> asks) {
            this.tokens = tokens;
            this.pin = pin;
            this.asks = asks;
        }

        @Override
        public void fill(RouteRequest request) {
            asks.accept(request.tokens(tokens, tokens.length).pin(pin));
        }

        @Override
        public void admitted(Lease booked, Decision decision, long ns) {
            lease = booked;
            worker = booked.worker();
            overlapBlocks = decision.overlapBlocks();
            waitedNs = ns;
            by = Thread.currentThread();
            admitted.add(this);
            outcomes.incrementAndGet();
        }

        @Override
        public void refused(Exception why) {
            refusal = why;
            outcomes.incrementAndGet();
        }

        boolean isWaiting() {
            return outcomes.get() == 0 && ticket.isWaiting();
        }

        QueueException.Kind kind() {
            return ((QueueException) refusal).kind();
        }
    }

    final KvRouter router;
    final RouterQueue queue;
    final List<Waiter> admitted = new ArrayList<>(); // of tests with one thread
    final AtomicLong nowNs = new AtomicLong(1_000);
    private int prompts;

    private QueueWorld(RouterConfig.Builder config) {
        router = config.tickedBy(nowNs::get).build();
        queue = RouterQueue.steppedBy(router, nowNs::get);
    }

    /** One whose workers have room while at most so many tokens are booked there. */
    static QueueWorld ofTokens(long tokens) {
        return of(RouterSettings.QUEUE_PREFILL_TOKENS, tokens);
    }

    static <T> QueueWorld of(Setting<T> setting, T value) {
        return new QueueWorld(config().set(setting, value));
    }

    static QueueWorld of(RouterConfig.Builder config) {
        return new QueueWorld(config);
    }

    static RouterConfig.Builder config() {
        return KvRouter.builder()
                .blockSize(BLOCK_SIZE)
                .maxWorkers(16)
                .maxBlocks(16_384, 32_768)
                .maxActiveRequests(256);
    }

    /** Changes a setting of the router, and lets the queue find out. */
    <T> void change(Setting<T> setting, T value) {
        router.change(router.settings().with(setting, value));
        queue.step();
    }

    Worker worker(int id) {
        return router.addWorker(WorkerSpec.of(id, "w" + id, "http://w" + id));
    }

    /** A prompt that begins like no other one. */
    int[] prompt(int count) {
        final int[] tokens = new int[count];
        tokens[0] = ++prompts;
        return tokens;
    }

    Waiter admit(int count) {
        return admit(count, QueueRank.USUAL);
    }

    Waiter admit(int count, QueueRank rank) {
        return admit(new Waiter(prompt(count), null), rank);
    }

    /** Of a request that asks something more of its worker. */
    Waiter admit(int count, Consumer<RouteRequest> asks) {
        return admit(new Waiter(prompt(count), null, asks), QueueRank.USUAL);
    }

    Waiter admit(Waiter waiter, QueueRank rank) {
        waiter.rank = rank;
        waiter.ticket = queue.admit(waiter, rank);
        return waiter;
    }

    /** Has what a lease is about be computed, and the queue find out. */
    void computed(Waiter waiter) {
        final long left = waiter.worker.prefillTokens() - computes(waiter);
        waiter.lease.prefillComplete();
        Eventually.holds(
                "a computed prompt", () -> isSettled() && waiter.worker.prefillTokens() == left);
        queue.step();
    }

    /** Whether the booking writer has done all, and said so. */
    boolean isSettled() {
        return router.bookingPipeline().backlog() == 0;
    }

    private static int computes(Waiter waiter) {
        return waiter.tokens.length; // of what nothing is cached
    }

    /** Ends a booking whose prompt was not computed, and has the queue find out. */
    void ended(Waiter waiter) {
        final long left = waiter.worker.prefillTokens() - computes(waiter);
        waiter.lease.close();
        Eventually.holds(
                "an ended booking", () -> isSettled() && waiter.worker.prefillTokens() == left);
        queue.step();
    }

    /** Lets time pass, and the queue find out. */
    void pass(long ns) {
        nowNs.addAndGet(ns);
        queue.step();
    }

    @Override
    public void close() {
        queue.close();
        router.close();
    }
}
