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

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.InstantSource;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;

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
            final Upstream upstream = registry.of(lease.worker());
            if (upstream == null || !fits(upstream, prompt)) {
                // removed or registered in this moment: a later decision does not choose it
                lease.close();
                return reserve(part, prompt, excluded, requestId, route, attempt);
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
                            scratch.decision);
            log.add(decision);
            metrics.routed(
                    decision.mode().spelling(),
                    decision.worker(),
                    part.prefills() ? decision.tokens() : 0,
                    decision.predictedCachedTokens(),
                    System.nanoTime() - begin);
            return new Booking(lease, decision, upstream);
        } catch (RouteException e) {
            LOG.atDebug()
                    .addKeyValue(RequestRecord.LOG_KEY, requestId)
                    .log("{}: not routed: {}", requestId, LogText.of(e.getMessage()));
            throw needsText(e, prompt) ? prompt.needsTextOrNull() : refusal(e, part, prompt);
        } catch (ClosedException e) {
            throw ApiException.routerClosed();
        } finally {
            giveBack(part, scratch);
        }
    }

    private ApiException refusal(RouteException e, RequestPart part, RoutedPrompt prompt) {
        final boolean nowhere =
                e.kind() == RouteException.Kind.NO_ADAPTER
                        && registry.workersWith(part.pool(), prompt.lora()) == 0
                        && registry.listsAdapters(part.pool());
        return nowhere
                ? ApiException.client(
                        404,
                        "model",
                        "model_not_found",
                        e.kind().name().toLowerCase(Locale.ROOT),
                        e.getMessage())
                : refusal(e.kind(), textForClient(e));
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
            router.select(scratch.request, scratch.decision);
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

    private static ApiException refusal(RouteException.Kind kind, String text) {
        final int status =
                switch (kind) {
                    case INVALID -> 400;
                    case OVERLOADED -> 429;
                    case NO_WORKERS,
                            ALL_EXCLUDED,
                            ALL_WORKERS_BUSY,
                            NONE_ELIGIBLE,
                            NO_ADAPTER,
                            NONE_SUITABLE,
                            PINNED_UNAVAILABLE ->
                            503;
                };
        return ApiException.ofRouter(
                status, kind.name().toLowerCase(Locale.ROOT), kind.retryable(), text);
    }

    /**
     * The router's message names workers and knobs, which are the operator's, but where it says
     * what the client asked for.
     */
    private static String textForClient(RouteException cause) {
        return switch (cause.kind()) {
            case OVERLOADED -> "too many requests are being served at this moment; try again later";
            case ALL_WORKERS_BUSY -> "every worker is busy at this moment; try again later";
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
                .severalPrompts(prompt.several());
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
