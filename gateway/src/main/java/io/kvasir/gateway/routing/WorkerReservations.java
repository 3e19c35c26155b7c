package io.kvasir.gateway.routing;

import io.kvasir.core.memory.ClosedException;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.gateway.upstream.WorkerTaints;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.disagg.Leg;
import io.kvasir.router.queue.QueueException;
import io.kvasir.router.queue.QueueRank;
import io.kvasir.router.queue.QueueTicket;
import io.kvasir.router.queue.QueuedRequest;

import org.eclipse.jetty.http.HttpHeader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.InstantSource;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Books prompts on workers of both pools of one model and records why; keeps the routers' scratch
 * memory for reuse. Thread-safe.
 */
public final class WorkerReservations {
    private static final Logger LOG = LoggerFactory.getLogger(WorkerReservations.class);

    /** A worker booked for one attempt. */
    public record Booking(Lease lease, DecisionRecord decision, Upstream upstream) {}

    /**
     * What the worker that would be chosen would have to do.
     *
     * @param tokensToCompute until the prompt is computed, those of prompts before it included
     * @param uncachedTokens of the prompt alone
     * @param activeRequests booked on it
     * @param worker it
     */
    public record Outlook(
            double tokensToCompute, int uncachedTokens, long activeRequests, Worker worker) {}

    private record Scratch(RouteRequest request, Decision decision) {}

    private static final int KEPT_SCRATCHES = 64;
    private static final String NO_WORKERS =
            "no worker can serve requests at this moment; try again later";

    private final UpstreamRegistry registry;
    private final DecisionLog log;
    private final GatewayMetrics metrics;
    private final InstantSource clock;
    private final Map<WorkerPool, ArrayBlockingQueue<Scratch>> free =
            new EnumMap<>(WorkerPool.class);

    /** Reserves on the workers of a registry. */
    public WorkerReservations(
            UpstreamRegistry registry,
            DecisionLog log,
            GatewayMetrics metrics,
            InstantSource clock) {
        this.registry = registry;
        this.log = log;
        this.metrics = metrics;
        this.clock = clock;
        for (WorkerPool pool : WorkerPool.values()) {
            free.put(pool, new ArrayBlockingQueue<>(KEPT_SCRATCHES));
        }
    }

    /**
     * Decides and books.
     *
     * @param part what the worker is booked for
     * @param excluded workers that failed this request before
     * @throws ApiException if no worker can be chosen, or the router is closed
     */
    public Booking reserve(
            RequestPart part,
            RoutedPrompt prompt,
            List<Worker> excluded,
            String requestId,
            String route,
            int attempt)
            throws ApiException {
        final long begin = System.nanoTime();
        final KvRouter router = router(part);
        final Scratch scratch = scratch(part, router);
        try {
            fill(scratch.request.reset().id(requestId), part, prompt, excluded);
            final Lease lease = router.reserve(scratch.request, scratch.decision);
            final Booking booking =
                    bookingOrNull(
                            part,
                            prompt,
                            requestId,
                            route,
                            attempt,
                            lease,
                            scratch.decision,
                            begin);
            return booking != null
                    ? booking
                    : reserve(part, prompt, excluded, requestId, route, attempt);
        } catch (RouteException e) {
            throw refusal(requestId, part, prompt, e);
        } catch (ClosedException e) {
            throw ApiException.routerClosed();
        } finally {
            giveBack(part, scratch);
        }
    }

    /**
     * Records a booking; null where its worker was removed or registered in this moment. Closes the
     * lease of what it does not return.
     */
    private Booking bookingOrNull(
            RequestPart part,
            RoutedPrompt prompt,
            String requestId,
            String route,
            int attempt,
            Lease lease,
            Decision made,
            long beginNs) {
        boolean taken = false;
        try {
            final Upstream upstream = registry.of(lease.worker());
            if (upstream == null || !fits(upstream, prompt)) {
                return null; // a later decision does not choose it
            }
            if (prompt.decodeTokens() > 0) {
                lease.outputTokens(prompt.decodeTokens());
            }
            final DecisionRecord decision =
                    new DecisionRecord(
                            requestId,
                            clock.instant(),
                            route,
                            attempt,
                            part.leg(),
                            registry.model(),
                            prompt.prompts(),
                            made);
            log.add(decision);
            final Booking booking = new Booking(lease, decision, upstream);
            routed(part, booking, Math.max(0, System.nanoTime() - beginNs));
            taken = true;
            return booking;
        } finally {
            if (!taken) {
                lease.close();
            }
        }
    }

    private void routed(RequestPart part, Booking booking, long durationNs) {
        metrics.routed(
                booking.decision.mode().spelling(),
                booking.decision.worker(),
                part.prefills() ? booking.decision.tokens() : 0,
                booking.decision.predictedCachedTokens(),
                durationNs);
        if (part.prefills()) {
            metrics.byModel()
                    .routed(
                            registry.model(),
                            booking.decision.choice(part.pool() == WorkerPool.PREFILL));
        }
    }

    private ApiException refusal(
            String requestId, RequestPart part, RoutedPrompt prompt, RouteException cause) {
        LOG.atDebug()
                .addKeyValue(RequestRecord.LOG_KEY, requestId)
                .log("{}: not routed: {}", requestId, LogText.of(cause.getMessage()));
        metrics.notRouted(registry.model(), part.pool(), cause.kind());
        return needsText(cause, prompt) ? prompt.needsTextOrNull() : refusal(cause, part, prompt);
    }

    /** Whether requests wait for workers of a part, or follow one another. */
    public boolean waits(RequestPart part) {
        return registry.queueOrNull(part.pool()) != null;
    }

    /** Takes a booking that was waited for, or why there is none. */
    public interface Waiter {
        /**
         * It is booked.
         *
         * @param waitedNs how long it has waited
         */
        void booked(Booking booking, long waitedNs);

        /** It is not, and waits no longer. */
        void refused(ApiException why);
    }

    /**
     * Decides and books the first attempt of a request, at once or when a worker has room.
     *
     * @param part one of which requests {@link #waits wait}
     * @param rank how it stands among those that wait
     * @param waiter called once, before this returns or later on another thread, unless it is given
     *     up before
     * @return by which it is given up
     */
    public QueueTicket admit(
            RequestPart part,
            RoutedPrompt prompt,
            String requestId,
            String route,
            QueueRank rank,
            Waiter waiter) {
        return registry.queueOrNull(part.pool())
                .admit(new Waiting(part, prompt, requestId, route, waiter), rank);
    }

    /** One request in a queue. */
    private final class Waiting implements QueuedRequest {
        private final RequestPart part;
        private final RoutedPrompt prompt;
        private final String requestId;
        private final String route;
        private final Waiter waiter;
        private final long beginNs = System.nanoTime();

        Waiting(
                RequestPart part,
                RoutedPrompt prompt,
                String requestId,
                String route,
                Waiter waiter) {
            this.part = part;
            this.prompt = prompt;
            this.requestId = requestId;
            this.route = route;
            this.waiter = waiter;
        }

        @Override
        public void fill(RouteRequest request) {
            WorkerReservations.this.fill(request.id(requestId), part, prompt, List.of());
        }

        @Override
        public void admitted(Lease lease, Decision decision, long waitedNs) {
            Booking booking;
            try {
                booking =
                        bookingOrNull(
                                part,
                                prompt,
                                requestId,
                                route,
                                1,
                                lease,
                                decision,
                                beginNs + waitedNs);
                if (booking == null) {
                    booking = reserve(part, prompt, List.of(), requestId, route, 1);
                }
            } catch (ApiException e) {
                waiter.refused(e);
                return;
            } catch (RuntimeException e) {
                refused(e);
                return;
            }
            booking.decision.queued(waitedNs);
            metrics.queued(part.pool(), waitedNs);
            try {
                waiter.booked(booking, waitedNs);
            } catch (RuntimeException | Error e) { // such as of an executor that has ended
                booking.lease.close();
                booking.decision.end("abandoned", 0, System.nanoTime() - beginNs);
                throw e;
            }
        }

        @Override
        public void refused(Exception why) {
            waiter.refused(
                    switch (why) {
                        case QueueException full -> notQueued(full);
                        case RouteException none -> refusal(requestId, part, prompt, none);
                        case ClosedException _ -> ApiException.routerClosed();
                        default -> {
                            LOG.atError()
                                    .addKeyValue(RequestRecord.LOG_KEY, requestId)
                                    .setCause(LogText.of(why))
                                    .log("{} failed in the queue", requestId);
                            yield ApiException.internal(
                                    "internal error; the gateway's log has request " + requestId);
                        }
                    });
        }
    }

    private static ApiException notQueued(QueueException why) {
        return switch (why.kind()) {
            case CLOSED -> ApiException.draining();
            case QUEUE_FULL, QUEUE_TOKENS_FULL, DISPLACED -> notQueued(429, why);
            case WAITED_TOO_LONG, DEADLINE -> notQueued(503, why);
        };
    }

    private static ApiException notQueued(int status, QueueException why) {
        return ApiException.notQueued(
                status,
                why.kind().spelling(),
                new ApiException.Limits(
                        why.limitName(), why.limit(), why.observed(), seconds(why.retryAfterNs())),
                why.getMessage());
    }

    private ApiException refusal(RouteException e, RequestPart part, RoutedPrompt prompt) {
        final boolean nowhere =
                e.kind() == RouteException.Kind.NO_ADAPTER
                        && registry.workersWith(part.pool(), prompt.lora()) == 0
                        && registry.listsAdapters(part.pool());
        return nowhere
                ? ApiException.client(
                        404, "model", "model_not_found", e.kind().spelling(), e.getMessage())
                : refusal(e);
    }

    private static boolean fits(Upstream upstream, RoutedPrompt prompt) {
        return !upstream.takesTokens() || prompt.hasTokenForm();
    }

    /** Whether the request cannot be had from these workers at any time. */
    private boolean needsText(RouteException cause, RoutedPrompt prompt) {
        return cause.kind() != RouteException.Kind.INVALID
                && prompt.needsTextOrNull() != null
                && !registry.hasTextWorkers();
    }

    /**
     * Says what a worker would have to do; books nothing and records nothing.
     *
     * @param excluded workers that are not asked about
     * @throws ApiException if no worker can be chosen, or the router is closed
     */
    public Outlook outlook(RequestPart part, RoutedPrompt prompt, List<Worker> excluded)
            throws ApiException {
        final KvRouter router = router(part);
        final Scratch scratch = scratch(part, router);
        try {
            fill(scratch.request.reset(), part, prompt, excluded);
            router.peek(scratch.request, scratch.decision);
            return new Outlook(
                    scratch.decision.tokensToCompute(),
                    scratch.decision.requestTokens() - scratch.decision.predictedCachedTokens(),
                    scratch.decision.worker().activeRequests(),
                    scratch.decision.worker());
        } catch (RouteException e) {
            throw refusal(e, part, prompt);
        } catch (ClosedException e) {
            throw ApiException.routerClosed();
        } finally {
            giveBack(part, scratch);
        }
    }

    private KvRouter router(RequestPart part) throws ApiException {
        final KvRouter router = registry.routerOrNull(part.pool());
        if (router == null) {
            throw refusal(RouteException.Kind.NO_WORKERS, NO_WORKERS);
        }
        return router;
    }

    private Scratch scratch(RequestPart part, KvRouter router) {
        final Scratch kept = free.get(part.pool()).poll();
        return kept == null ? new Scratch(router.newRequest(), new Decision()) : kept;
    }

    private void giveBack(RequestPart part, Scratch scratch) {
        scratch.request.reset();
        free.get(part.pool()).offer(scratch);
    }

    /** With the time after which a full worker is tried again, where that is known. */
    private static ApiException refusal(RouteException cause) {
        final RouteException.Limit limit = cause.limitOrNull();
        if (limit != null) {
            return ApiException.beyondLimit(
                    cause.kind().spelling(),
                    new ApiException.Limits(
                            limit.name(),
                            limit.value(),
                            limit.observed(),
                            seconds(cause.retryNs())),
                    "no worker is expected to answer in time at this moment: "
                            + limit.name()
                            + "="
                            + limit.value()
                            + ", expected="
                            + limit.observed());
        }
        final ApiException refusal = refusal(cause.kind(), textForClient(cause));
        return cause.retryNs() > 0
                ? refusal.with(HttpHeader.RETRY_AFTER, Long.toString(seconds(cause.retryNs())))
                : refusal;
    }

    /** Whole seconds, rounded up. */
    private static long seconds(long ns) {
        return Math.ceilDiv(ns, TimeUnit.SECONDS.toNanos(1));
    }

    private static ApiException refusal(RouteException.Kind kind, String text) {
        final int status =
                switch (kind) {
                    case INVALID -> 400;
                    case OVERLOADED -> 429;
                    case NO_WORKERS,
                            ALL_EXCLUDED,
                            ALL_WORKERS_BUSY,
                            NO_ROOM,
                            NONE_ELIGIBLE,
                            NO_ADAPTER,
                            NONE_SUITABLE,
                            PINNED_UNAVAILABLE ->
                            503;
                };
        return ApiException.ofRouter(status, kind.spelling(), kind.retryable(), text);
    }

    /**
     * The router's message names workers and knobs, which are the operator's, but where it says
     * what the client asked for.
     */
    private static String textForClient(RouteException cause) {
        return switch (cause.kind()) {
            case OVERLOADED -> "too many requests are being served at this moment; try again later";
            case ALL_WORKERS_BUSY, NO_ROOM ->
                    "every worker is busy at this moment; try again later";
            case NO_WORKERS -> NO_WORKERS;
            case ALL_EXCLUDED -> "every worker that could be tried has failed this request";
            case NONE_ELIGIBLE -> "no worker may serve this request at this moment";
            case PINNED_UNAVAILABLE -> "the worker that was asked for cannot be used";
            case NO_ADAPTER, NONE_SUITABLE, INVALID -> cause.getMessage();
        };
    }

    private void fill(
            RouteRequest request, RequestPart part, RoutedPrompt prompt, List<Worker> excluded) {
        request.tokens(prompt.tokens(), prompt.tokens().length)
                .lora(prompt.lora())
                .salt(prompt.salt())
                .firstTokenUnseen(prompt.firstTokenUnseen() && part.leg() != Leg.PREFILL)
                .severalPrompts(!prompt.isWhole())
                .readsNoCache(prompt.computedAnew());
        part.fill(
                request,
                prompt.overrides(),
                registry,
                prompt.hasTokenForm() || !registry.hasTokensWorkers()
                        ? 0
                        : WorkerTaints.TAKES_TOKENS);
        for (Worker worker : excluded) {
            request.exclude(worker);
        }
    }
}
