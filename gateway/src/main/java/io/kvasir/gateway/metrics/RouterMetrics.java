package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;

import java.util.function.Function;

/** What the routers of one pool say of themselves. */
final class RouterMetrics {
    private RouterMetrics() {}

    /**
     * Adds the metrics to a page.
     *
     * @param prefix of the metrics' names
     * @param pool ends their help
     * @param router its status; null as long as there is no such router: then there is no series
     */
    static void register(
            MetricRegistry page,
            ModelPoints models,
            String prefix,
            String pool,
            Function<FleetSnapshot.OfModel, RouterStatus> router) {
        page.gauge(
                prefix + "resource_used",
                "How much of a limit is used" + pool,
                models.each(
                        router,
                        (status, out) ->
                                status.usages()
                                        .forEach(u -> out.call((double) u.used(), u.resource()))),
                models.labels("resource"));
        page.gauge(
                prefix + "resource_limit",
                "The limit; " + prefix + "resource_used beside it",
                models.each(
                        router,
                        (status, out) ->
                                status.usages()
                                        .forEach(u -> out.call((double) u.limit(), u.resource()))),
                models.labels("resource"));
        page.count(
                prefix + "refused_total",
                "What was not taken, by cause" + pool,
                models.each(
                        router,
                        (status, out) ->
                                status.refusals()
                                        .byCause()
                                        .forEach((cause, n) -> out.call((double) n, cause))),
                models.labels("cause"));
        page.count(
                prefix + "tier_refused_total",
                "What the indexes of tiers below the device did not take, by cause" + pool,
                models.each(
                        router,
                        (status, out) ->
                                status.tiers()
                                        .forEach(
                                                tier ->
                                                        tier.refused()
                                                                .forEach(
                                                                        (cause, n) ->
                                                                                out.call(
                                                                                        (double) n,
                                                                                        Labels
                                                                                                .lower(
                                                                                                        tier
                                                                                                                .tier()),
                                                                                        cause)))),
                models.labels("tier", "cause"));
        page.gauge(
                prefix + "tier_index_bytes",
                "Memory that the indexes of tiers below the device use" + pool,
                models.each(
                        router,
                        (status, out) ->
                                status.tiers()
                                        .forEach(
                                                tier ->
                                                        out.call(
                                                                (double) tier.usedBytes(),
                                                                Labels.lower(tier.tier())))),
                models.labels("tier"));
        page.count(
                prefix + "failures_total",
                "Events and bookings that could not be applied because of an error" + pool,
                models.each(router, (status, out) -> out.call((double) status.failures())),
                models.labels());
        page.count(
                prefix + "bookings_expired_total",
                "Bookings that booking-timeout-ms has ended" + pool,
                models.each(router, (status, out) -> out.call((double) status.expiredLeases())),
                models.labels());
        page.count(
                prefix + "leases_forgotten_total",
                "Bookings that were never released by the gateway: a defect of it" + pool,
                models.each(router, (status, out) -> out.call((double) status.forgottenLeases())),
                models.labels());
        page.count(
                prefix + "bookings_pathless_total",
                "Requests that count with all their blocks, because there is no room for what they"
                        + " share"
                        + pool,
                models.each(router, (status, out) -> out.call((double) status.pathlessBookings())),
                models.labels());
        page.count(
                prefix + "load_corrections_total",
                "How often a worker's load was not what is booked on it, and was corrected" + pool,
                models.each(router, (status, out) -> out.call((double) status.loadCorrections())),
                models.labels());
        page.count(
                prefix + "selection_policy_failures_total",
                "How often a part of the selection policy has failed, and the router went on"
                        + " without it"
                        + pool,
                models.each(
                        router,
                        (status, out) ->
                                status.policyFailures()
                                        .byPart()
                                        .forEach((part, n) -> out.call((double) n, part))),
                models.labels("part"));
        ReplicaMetrics.register(
                page, models, prefix, pool, of(router, RouterStatus::replicaOrNull));
        new SnapshotMetrics(page, models, prefix, pool, router);
        EventPlaneMetrics.register(
                page, models, prefix, pool, of(router, RouterStatus::planeOrNull));
    }

    /** A part of a router's status; null where there is no router, or no such part. */
    private static <T> Function<FleetSnapshot.OfModel, T> of(
            Function<FleetSnapshot.OfModel, RouterStatus> router, Function<RouterStatus, T> part) {
        return model -> {
            final RouterStatus status = router.apply(model);
            return status == null ? null : part.apply(status);
        };
    }
}
