package io.kvasir.gateway.routing;

import io.kvasir.gateway.config.HandoffProtocol;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.gateway.upstream.WorkerPool;
import io.kvasir.gateway.upstream.WorkerTaints;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.disagg.Leg;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.WorkerCost;

/** What a worker is booked for: a whole request, or one of the two legs of a split one. */
public final class RequestPart {
    /** A request that one worker answers by itself. */
    public static final RequestPart WHOLE = new RequestPart(null, null, null);

    /** The prompt of a split request. */
    public static final RequestPart PREFILL = new RequestPart(Leg.PREFILL, null, null);

    private final Leg leg; // null: whole
    private final HandoffProtocol protocol; // of a decode leg
    private final WorkerCost cost; // null for none

    private RequestPart(Leg leg, HandoffProtocol protocol, WorkerCost cost) {
        this.leg = leg;
        this.protocol = protocol;
        this.cost = cost;
    }

    /**
     * A request that one worker answers by itself, where it counts more than the worker's load.
     *
     * @param cost of the worker beside it
     */
    public static RequestPart whole(WorkerCost cost) {
        return new RequestPart(null, null, cost);
    }

    /**
     * The prompt of a split request, where it counts more than the worker's load.
     *
     * @param cost of the worker beside it
     */
    public static RequestPart prefill(WorkerCost cost) {
        return new RequestPart(Leg.PREFILL, null, cost);
    }

    /**
     * The answer of a split request, chosen by load alone among the decode workers of a protocol.
     *
     * @param protocol of the prefill worker
     */
    public static RequestPart decodeAfter(HandoffProtocol protocol) {
        return decodeAfter(protocol, null);
    }

    /**
     * The same, where it counts how far the blocks have to be moved.
     *
     * @param protocol of the prefill worker
     * @param transfer cost of fetching the blocks; null where it counts nothing
     */
    public static RequestPart decodeAfter(HandoffProtocol protocol, WorkerCost transfer) {
        return new RequestPart(Leg.DECODE, protocol, transfer);
    }

    /** Null for a whole request. */
    Leg leg() {
        return leg;
    }

    /** Whose workers it is for. */
    WorkerPool pool() {
        return leg == Leg.PREFILL ? WorkerPool.PREFILL : WorkerPool.MAIN;
    }

    /** Whether the worker computes the prompt. */
    boolean prefills() {
        return leg != Leg.DECODE;
    }

    /**
     * Says which workers it may go to, and what decides between them.
     *
     * @param taints of workers that the request as a whole is not for
     */
    void fill(
            RouteRequest request,
            RoutingHeaders overrides,
            UpstreamRegistry registry,
            long taints) {
        overrides.fill(request);
        overrides.constraints().fill(request);
        request.addCost(cost);
        switch (leg) {
            case null -> request.excludeTainted(WorkerTaints.NEEDS_PREFILL | taints);
            case PREFILL -> {
                pinPrefill(request, overrides.prefillPin());
                request.excludeTainted(registry.prefillsWithoutDecode());
                if (overrides.mode() == RoutingMode.DIRECT) {
                    request.mode(null); // names the worker that answers
                }
            }
            case DECODE ->
                    request.overlapWeight(0)
                            .trackPrefillTokens(false)
                            .excludeTainted(
                                    WorkerTaints.DOES_BOTH | WorkerTaints.ofOthersThan(protocol));
        }
    }

    /** In place of the worker that answers. */
    private static void pinPrefill(RouteRequest request, PinnedWorker workerOrNull) {
        request.pin(null);
        if (workerOrNull != null) {
            workerOrNull.fill(request);
        }
    }
}
