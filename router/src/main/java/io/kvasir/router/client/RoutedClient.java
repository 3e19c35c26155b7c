package io.kvasir.router.client;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.Worker;
import io.kvasir.router.policy.RoutingMode;

import java.util.Objects;
import java.util.concurrent.Flow;
import java.util.function.ToIntFunction;

/**
 * Routes requests and sends them: for each it chooses a worker, books the load, has the answer
 * streamed to the caller, reports the first token and the tokens generated, and releases the
 * booking when the answer ends, fails or is cancelled.
 *
 * <p>Any thread; a {@link RouteRequest} belongs to one at a time and may be used again once the
 * call returns. The stream follows the rules of {@link Flow}: it passes on the engine's parts and
 * the caller's demand as they are, without a queue of its own. A request is sent once; a caller
 * that retries excludes the worker that failed ({@link RouteRequest#exclude}).
 *
 * @param <Q> a request
 * @param <R> a part of the answer
 */
public final class RoutedClient<Q, R> {
    private final KvRouter router;
    private final EngineClient<Q, R> engines;
    private final ToIntFunction<? super R> tokens;

    /**
     * A client over a router; it owns neither the router nor the engines.
     *
     * @param router chooses
     * @param engines send
     * @param tokens tokens that a part of an answer adds; 0 for one without any
     */
    public RoutedClient(
            KvRouter router, EngineClient<Q, R> engines, ToIntFunction<? super R> tokens) {
        this.router = Objects.requireNonNull(router, "router");
        this.engines = Objects.requireNonNull(engines, "engines");
        this.tokens = Objects.requireNonNull(tokens, "tokens");
    }

    /**
     * Routes by the request's mode, or by the router's own, and sends.
     *
     * @param route the prompt and its overrides
     * @param request what is sent
     * @param answer takes the answer; {@link Flow.Subscriber#onError} with a {@link RouteException}
     *     where no worker can be chosen, else with what the engine failed with; an {@link Error} of
     *     the engine client is thrown on, once the booking has ended
     * @throws io.kvasir.core.memory.ClosedException if the router is closed
     */
    public void generate(RouteRequest route, Q request, Flow.Subscriber<? super R> answer) {
        Objects.requireNonNull(answer, "answer");
        final Lease lease;
        try {
            lease = router.reserve(route, new Decision());
        } catch (RouteException e) {
            refuse(answer, e);
            return;
        }
        final RoutedStream<R> stream = new RoutedStream<>(lease, tokens, answer);
        try {
            Objects.requireNonNull(
                            engines.generate(lease.worker(), request),
                            "the engine client has given no publisher")
                    .subscribe(stream);
        } catch (Error e) {
            stream.abandon(e);
            throw e;
        } catch (Throwable e) { // also a checked one that is not declared
            stream.failed(e);
        }
    }

    /**
     * Sends to the worker with the lowest cost; see {@link #generate}.
     *
     * @param route the prompt and its overrides; its mode is set
     * @param request what is sent
     * @param answer takes the answer
     */
    public void kv(RouteRequest route, Q request, Flow.Subscriber<? super R> answer) {
        generate(route.mode(RoutingMode.KV), request, answer);
    }

    /**
     * Sends to a worker by chance; see {@link #generate}.
     *
     * @param route the prompt and its overrides; its mode is set
     * @param request what is sent
     * @param answer takes the answer
     */
    public void random(RouteRequest route, Q request, Flow.Subscriber<? super R> answer) {
        generate(route.mode(RoutingMode.RANDOM), request, answer);
    }

    /**
     * Sends to one worker after the other; see {@link #generate}.
     *
     * @param route the prompt and its overrides; its mode is set
     * @param request what is sent
     * @param answer takes the answer
     */
    public void roundRobin(RouteRequest route, Q request, Flow.Subscriber<? super R> answer) {
        generate(route.mode(RoutingMode.ROUND_ROBIN), request, answer);
    }

    /**
     * Sends to one worker; see {@link #generate}.
     *
     * @param route the prompt and its overrides; its mode and pin are set
     * @param worker the worker
     * @param request what is sent
     * @param answer takes the answer
     */
    public void direct(
            RouteRequest route, Worker worker, Q request, Flow.Subscriber<? super R> answer) {
        Objects.requireNonNull(worker, "worker");
        generate(route.mode(RoutingMode.DIRECT).pin(worker), request, answer);
    }

    static void refuse(Flow.Subscriber<?> answer, Throwable why) {
        answer.onSubscribe(NoSubscription.INSTANCE);
        answer.onError(why);
    }
}
