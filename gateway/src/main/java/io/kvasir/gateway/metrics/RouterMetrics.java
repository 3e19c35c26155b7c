package io.kvasir.gateway.metrics;

import io.kvasir.router.RouterStatus;
import io.kvasir.router.TierStatus;

import java.util.Map;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/** What the routers of one pool say of themselves. */
final class RouterMetrics {
    private final PoolSeries pool;

    /** Adds the metrics to a page. */
    RouterMetrics(PoolSeries pool) {
        this.pool = pool;
        pool.gauge(
                "resource_used",
                "How much of a limit is used",
                pool.router(),
                (status, out) ->
                        status.usages().forEach(u -> out.call((double) u.used(), u.resource())),
                "resource");
        pool.page()
                .gauge(
                        pool.prefix() + "resource_limit",
                        "The limit; " + pool.prefix() + "resource_used beside it",
                        pool.models()
                                .each(
                                        pool.router(),
                                        (status, out) ->
                                                status.usages()
                                                        .forEach(
                                                                u ->
                                                                        out.call(
                                                                                (double) u.limit(),
                                                                                u.resource()))),
                        pool.models().labels("resource"));
        countBy(
                "refused_total",
                "What was not taken, by cause",
                status -> status.refusals().byCause(),
                "cause");
        pool.count(
                "tier_refused_total",
                "What the indexes of tiers below the device did not take, by cause",
                pool.router(),
                RouterMetrics::tierRefusals,
                "tier",
                "cause");
        pool.gauge(
                "tier_index_bytes",
                "Memory that the indexes of tiers below the device use",
                pool.router(),
                RouterMetrics::tierBytes,
                "tier");
        count(
                "failures_total",
                "Events and bookings that could not be applied because of an error",
                RouterStatus::failures);
        count(
                "bookings_expired_total",
                "Bookings that booking-timeout-ms has ended",
                RouterStatus::expiredLeases);
        count(
                "leases_forgotten_total",
                "Bookings that were never released by the gateway: a defect of it",
                RouterStatus::forgottenLeases);
        count(
                "bookings_pathless_total",
                "Requests that count with all their blocks, because there is no room for what they"
                        + " share",
                RouterStatus::pathlessBookings);
        count(
                "load_corrections_total",
                "How often a worker's load was not what is booked on it, and was corrected",
                RouterStatus::loadCorrections);
        countBy(
                "selection_policy_failures_total",
                "How often a part of the selection policy has failed, and the router went on"
                        + " without it",
                status -> status.policyFailures().byPart(),
                "part");
        ReplicaMetrics.register(pool);
        SnapshotMetrics.register(pool);
        EventPlaneMetrics.register(pool);
    }

    private static void tierRefusals(RouterStatus status, Point out) {
        for (TierStatus tier : status.tiers()) {
            final String name = Labels.lower(tier.tier());
            tier.refused().forEach((cause, n) -> out.call((double) n, name, cause));
        }
    }

    private static void tierBytes(RouterStatus status, Point out) {
        for (TierStatus tier : status.tiers()) {
            out.call((double) tier.usedBytes(), Labels.lower(tier.tier()));
        }
    }

    private void count(String name, String help, ToLongFunction<RouterStatus> value) {
        pool.count(
                name,
                help,
                pool.router(),
                (status, out) -> out.call((double) value.applyAsLong(status)));
    }

    private void countBy(
            String name,
            String help,
            Function<RouterStatus, Map<String, Long>> values,
            String label) {
        pool.count(
                name,
                help,
                pool.router(),
                (status, out) ->
                        values.apply(status).forEach((key, n) -> out.call((double) n, key)),
                label);
    }
}
